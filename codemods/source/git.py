"""git, asked about a folder: it changes nothing, takes no lock from others and looks where it is told to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# What a hook hands down would make git look at another place than the one that it is asked about.
_INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE")


def run_git(
    folder: str | Path, *arguments: str, stdin: bytes = b"", timeout: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Return what git with ``arguments`` says in ``folder``, in English, whatever its status is.

    Raises :class:`OSError` where git cannot be run, and :class:`subprocess.TimeoutExpired` after ``timeout`` seconds.
    """
    env = {name: value for name, value in os.environ.items() if name not in _INHERITED}
    env |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    # A repository may name a program that git asks which files changed: nothing of it is run because we read.
    command = ["git", "-C", os.fspath(folder), "-c", "core.fsmonitor=false", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, env=env, check=False, timeout=timeout)


def blobs_in(answer: bytes) -> dict[str, bytes]:
    """Return the contents of objects by their names, from what ``git cat-file --batch`` says: missing ones are not."""
    contents: dict[str, bytes] = {}
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        head = answer[at:end].split()
        at = end + 1
        if len(head) == 3:
            size = int(head[2])
            contents[head[0].decode()] = answer[at : at + size]
            at += size + 1
    return contents
