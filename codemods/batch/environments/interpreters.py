"""Which interpreter a repository is run with: a path, a version that uv finds, or an environment made beside it.

What the environment needs is read without executing anything: in the lists of the repository, else from its imports.
"""

from __future__ import annotations

import ast
import configparser
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codemods.batch.campaign.settings import Runs, is_version
from codemods.batch.environments import environments
from codemods.batch.environments.environments import canonical
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.sources import redact
from codemods.source.syntax import FAILURES
from codemods.source.toml import NotToml, read_toml

_SECONDS = 60.0


def of(runs: Runs) -> str:
    """The interpreter of ``runs`` without any environment. Raises :class:`CampaignError` where there is none."""
    if runs.image:
        from verify.running.settings import PYTHON_OF_IMAGES

        return runs.python or PYTHON_OF_IMAGES
    return _found(runs.python) if is_version(runs.python) else runs.python or sys.executable


Entries = Sequence[tuple[str, str]]


def required(runs: Runs, root: Path, entries: Entries = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the environment of the repository in ``root`` is to have, empty where it needs none, and what to say of it.

    Where it lists nothing itself, it is what its ``entries`` (command and folder) import.
    """
    lines, told = runs.requirements, tuple[str, ...]()
    if runs.own_requirements:
        own = listed(root)
        lines = imported(root, entries, of(runs)) if own is None else own
        if own is None and lines:
            told = (f"it lists no requirements; by what it imports: {', '.join(lines)}",)
    if is_version(runs.python) and "torch" not in {*environments.names_of(lines), *environments.at_hand(of(runs))}:
        # The torch at hand is one for the Python at hand.
        lines = (*lines, "torch")
    return lines, told


def ready(
    runs: Runs, root: Path, folder: Path, tell: Callable[[str], None], entries: Entries = ()
) -> tuple[str, tuple[str, ...]]:
    """The interpreter for the repository in ``root``, with what is required, and what was done about that.

    Environments are kept in ``folder``. Where what a repository itself requires cannot be had, it is run without, and
    that is told. Raises :class:`Failed` where what the campaign requires cannot.
    """
    python = of(runs)
    if runs.image:
        return python, (f"environment: the image {runs.image}, {_fetched(runs.image, tell)}",)
    lines, told = required(runs, root, entries)
    if not lines:
        return python, ()
    try:
        made = environments.ready(python, lines, folder, folder / "uv-cache", tell)
    except Failed as error:
        if runs.own_requirements and not is_version(runs.python):
            return python, (f"run without what it requires: {error}",)
        raise
    return made.python, tuple(f"environment: {text}" for text in (*told, *made.told))


def _fetched(image: str, tell: Callable[[str], None]) -> str:
    """The digest of ``image``, which is fetched where it is not here. Raises :class:`Failed`."""
    from verify.isolation import engines

    try:
        engine = engines.find()
        if not engine.identity(image):
            tell("fetching its image")
            engine.fetch(image)
        return engine.identity(image)
    except (engines.NoContainers, OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from None


@functools.cache
def _found(version: str) -> str:
    command = [environments.uv(), "python", "find", "--no-project", "--no-config", "--system", version]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, cwd="/", check=False, env=_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CampaignError(f"python = {version!r} under [verify]: uv cannot be asked: {error}") from None
    path = done.stdout.strip()
    if done.returncode or not path:
        said = " ".join(redact(done.stderr).split())[:200]
        raise CampaignError(
            f"python = {version!r} under [verify]: {said or 'there is none'}; uv python install {version} fetches it"
        )
    return path


def _environment() -> dict[str, str]:
    """Ours, with what pyenv has installed at the end of PATH: its shims know only the versions that are chosen."""
    root = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    installed = sorted(str(path) for path in root.glob("versions/*/bin"))
    return {**os.environ, "PATH": os.pathsep.join((os.environ.get("PATH", os.defpath), *installed))}


def listed(root: Path) -> tuple[str, ...] | None:
    """What the tree ``root`` lists: requirements.txt, else pyproject.toml, setup.cfg or setup.py; None without a list.

    Of the dependencies in pyproject.toml those that its uv.lock holds are taken in the version that is locked.
    """
    file = root / "requirements.txt"
    if file.is_file():
        return tuple(file.read_text(encoding="utf-8", errors="replace").splitlines())
    project = _table(root / "pyproject.toml").get("project", {})
    wanted = project.get("dependencies") if isinstance(project, dict) else None
    if not isinstance(wanted, list):
        return _in_setup_cfg(root / "setup.cfg") or _in_setup_py(root / "setup.py")
    lines = tuple(text for text in wanted if isinstance(text, str))
    locked = _locked_versions(root / "uv.lock")
    return tuple(_as_locked(line, locked) for line in lines)


def imported(root: Path, entries: Iterable[tuple[str, str]], python: str) -> tuple[str, ...]:
    """The packages of what the scripts of ``entries`` (command and folder) import and ``python`` lacks."""
    from verify.errors import VerifyError
    from verify.running.asking import wants_of
    from verify.running.interpreter import lacking_modules
    from verify.running.missing import PACKAGES
    from verify.running.settings import entry_command

    modules: set[str] = set()
    for text, folder in entries:
        try:
            command = entry_command(text, python, root / folder)
        except VerifyError:
            continue
        if command.script is not None:
            modules |= wants_of(command.script, root, command.cwd).modules
    return tuple(sorted(PACKAGES.get(name, name) for name in lacking_modules(python, modules)))


def _in_setup_cfg(file: Path) -> tuple[str, ...] | None:
    settings = configparser.ConfigParser(interpolation=None)
    try:
        settings.read(file, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return None
    lines = settings.get("options", "install_requires", fallback="").splitlines()
    return tuple(line for line in lines if line.strip()) or None


def _in_setup_py(file: Path) -> tuple[str, ...] | None:
    """``install_requires`` as it stands in a call of ``setup``, or under a name at the top level."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, *FAILURES):
        return None
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) == "setup"):
            continue
        for keyword in call.keywords:
            value = named.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
            if keyword.arg == "install_requires" and isinstance(value, (ast.List, ast.Tuple)):
                texts = (getattr(one, "value", None) for one in value.elts)
                return tuple(text for text in texts if isinstance(text, str))
    return None


def _table(file: Path) -> dict[str, Any]:
    try:
        return read_toml(file)
    except NotToml:
        return {}


def _locked_versions(file: Path) -> dict[str, str]:
    """The versions in a uv.lock by name; of several for one, by platform or Python, none."""
    found: dict[str, set[str]] = {}
    packages = _table(file).get("package", ()) if file.is_file() else ()
    for one in packages if isinstance(packages, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("version"), str):
            found.setdefault(canonical(one["name"]), set()).add(one["version"])
    return {name: versions.pop() for name, versions in found.items() if len(versions) == 1}


def _as_locked(line: str, locked: Mapping[str, str]) -> str:
    match = re.match(r"\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(?P<extras>\[[^\]]*\])?[^;@]*(?P<marker>;.*)?$", line)
    version = locked.get(canonical(match["name"])) if match is not None else None
    if match is None or version is None:
        return line
    return f"{match['name']}{match['extras'] or ''}=={version}{match['marker'] or ''}"
