"""Which interpreter a repository is run with: a path, a version that uv finds, or an environment made beside it."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from codemods.batch.campaign.settings import Runs, is_version
from codemods.batch.environments import environments, requirements
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.sources import redact

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
        listed = requirements.listed(root)
        lines = requirements.imported(root, entries, of(runs)) if listed is None else listed
        if listed is None and lines:
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
