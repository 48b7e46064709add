"""Temporary folders that are removed even if nobody is left to remove them."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

from verify.isolation.launcher.removal import remove

PREFIX = "codemod-verify-"
_LOCK = ".lock"
_OTHERS = ("/var/tmp", "/tmp")
_YOUNG = 60.0  # seconds; between making a folder and locking it lies far less


class TemporaryFolder:
    """A new folder in ``parent``, locked for as long as this process or one that inherits ``lock`` lives."""

    def __init__(self, parent: Path) -> None:
        self.path = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX, dir=parent)))
        self.lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        _try_lock(self.lock)

    def remove(self) -> None:
        """Remove it with all that is in it. Raises OSError where something cannot be removed."""
        os.close(self.lock)
        remove(str(self.path))


def make_folders() -> list[TemporaryFolder]:
    """A folder in the temporary folder, and one elsewhere if there is such a place.

    Two, because what is written below the one cannot be kept in it while an overlay lies over it. What earlier
    processes that were killed left behind is removed first.
    """
    parents = [Path(os.path.realpath(tempfile.gettempdir()))]
    for other in _OTHERS:
        real = Path(os.path.realpath(other))
        if real not in parents and real.is_dir() and os.access(real, os.W_OK):
            parents.append(real)
            break
    for parent in parents:
        _remove_stale(parent)
    return [TemporaryFolder(parent) for parent in parents]


def _remove_stale(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if about.st_uid != os.getuid() or time.time() - about.st_mtime < _YOUNG:
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR)
            try:
                if _try_lock(lock):
                    remove(str(folder))
            finally:
                os.close(lock)


def _try_lock(handle: int) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
