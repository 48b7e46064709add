"""What a repository requires, read without executing anything of it: in its lists, else by what its scripts import."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codemods.batch.environments.environments import canonical
from codemods.source.syntax import FAILURES
from codemods.source.toml import NotToml, read_toml


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
