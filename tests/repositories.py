"""Git repositories for tests, with nobody's configuration but their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep git from reading the configuration of the machine and of whoever runs the tests."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)


def git(folder: Path, *words: str, check: bool = True) -> str:
    """What ``git`` answers in ``folder``."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done.stdout


def fails(folder: Path, *words: str) -> bool:
    """Whether ``git`` fails there."""
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, check=False).returncode != 0


def repository(folder: Path, files: dict[str, bytes]) -> Path:
    """A repository in ``folder`` with one commit of ``files``."""
    folder.mkdir(exist_ok=True, parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    git(folder, "config", "core.autocrlf", "false")
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def snapshot(folder: Path) -> tuple[str, str, str, dict[str, bytes]]:
    """What must be the same where nothing was committed: branch, index, status, files."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }
    head = git(folder, "rev-parse", "HEAD", check=False) + git(folder, "symbolic-ref", "-q", "HEAD", check=False)
    return head, git(folder, "ls-files", "--stage"), git(folder, "status", "--porcelain"), files
