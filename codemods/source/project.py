"""Where the project of a file begins."""

from __future__ import annotations

import os
from pathlib import Path

MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What a folder holds that begins a project."""


def project_root(path: str | os.PathLike[str]) -> Path:
    """The nearest folder at or above ``path`` that holds .git, pyproject.toml, setup.py or setup.cfg.

    Without one it is the folder of the file (``path`` itself where that is a folder). The home directory and ``/`` are
    no projects, whatever they hold: a root there would make all of somebody's files one tree. (A file that lies
    directly in one of them still has that folder.) Links are not resolved, and nothing need exist.
    """
    start = os.path.abspath(path)
    if not os.path.isdir(start):
        start = os.path.dirname(start)
    home = os.path.expanduser("~")
    homes = (home, os.path.realpath(home))
    folder = start
    while folder not in homes and folder != os.path.dirname(folder):
        if begins_project(folder):
            return Path(folder)
        folder = os.path.dirname(folder)
    return Path(start)


def begins_project(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds .git, pyproject.toml, setup.py or setup.cfg."""
    return any(os.path.exists(os.path.join(folder, mark)) for mark in MARKS)
