"""Removing what a script left behind, whatever it did to it."""

from __future__ import annotations

import contextlib
import os
import stat


def remove(folder: str) -> None:
    """Remove ``folder`` with everything in it: unreadable folders, trees deeper than any path may be long.

    Links are removed and not followed. Does nothing where there is no such folder. Raises OSError for what the system
    refuses even so, after the rest is gone.
    """
    if not _is_folder(folder):
        return
    # A folder at a time and never by recursion: what lies deeper is moved up to the top first, so that neither paths
    # nor stacks nor open files run out.
    trouble: OSError | None = None
    count = 0
    while True:
        _unlock(folder)
        deeper = [path for path in _clear(folder) if _is_folder(path)]
        if not deeper:
            break
        moved = 0
        for path in deeper:
            try:
                for inner in _clear(path):
                    _unlock(inner)
                    os.rename(inner, os.path.join(folder, f".removing-{os.getpid()}-{count}"))
                    count += 1
                    moved += 1
                os.rmdir(path)
                moved += 1
            except OSError as error:
                trouble = error
        if not moved:
            break
    try:
        os.rmdir(folder)
    except OSError as error:
        raise trouble or error from None


def _clear(folder: str) -> list[str]:
    """Remove the files of a folder and return its folders."""
    _unlock(folder)
    folders = []
    with os.scandir(folder) as entries:
        listed = list(entries)
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.path)
        else:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
    return folders


def _unlock(folder: str) -> None:
    # A link is not followed: only a folder gets here, and nobody else can swap it while the script is dead.
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
