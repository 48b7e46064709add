"""Names of files as a site that shows a repository wants them: from its root, whatever folder we were started in."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """Return the root of the repository around the working directory, or that directory where there is none.

    On a runner of GitHub's it is what ``GITHUB_WORKSPACE`` says, if we are inside of it.
    """
    here = Path.cwd()
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if workspace and here.is_relative_to(workspace):
        return Path(workspace)
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def from_root(path: str, base: Path) -> str | None:
    """Return the name from ``base`` of a file that is shown as ``path``, with ``/``; None if it lies elsewhere."""
    full = Path(os.path.abspath(path))
    return full.relative_to(base).as_posix() if full.is_relative_to(base) else None


def in_repository(path: str) -> str:
    """Return the name of a file from the root of the repository that it is in, or from its folder if it is in none."""
    full = Path(os.path.abspath(path))
    base = next((folder for folder in full.parents if (folder / ".git").exists()), full.parent)
    return full.relative_to(base).as_posix()
