"""A copy of the user's tree, where no overlay can be had.

Never by hard links: ``open(path, "w")`` writes through them into the original.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Callable

#: Bytes that are copied at most (what the file system shares instead of copying does not count), and entries.
MOST_BYTES = 4 << 30
MOST_ENTRIES = 200_000

_SKIPPED = frozenset(
    {
        *(".git", ".hg", ".svn", "__pycache__", "node_modules", ".tox", ".nox"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
    }
)
_FICLONE = 0x40049409  # linux/fs.h


class TooLarge(Exception):
    """The tree is too large to copy for a run; the text says so."""


class Copy:
    """One copy of a tree: ``root`` (real path) to ``target``, which must not exist yet.

    ``protected``: files outside ``target`` cannot be written by the script, so links to them may stay links; else what
    they lead to is copied if the user could write to it. ``alive`` is called now and then and ends the copying by an
    exception. Raises TooLarge, and OSError where the copy cannot be written. ``notes`` say what is not in the copy.
    """

    def __init__(self, root: str, target: str, *, protected: bool, alive: Callable[[], None]) -> None:
        self.root = root
        self.target = target
        self.protected = protected
        self.notes: list[str] = []
        self._alive = alive
        self._bytes = 0
        self._entries = 0
        self._unreadable = 0

    def make(self) -> None:
        """Copy, see the class."""
        self._folder(self.root, self.target, ())
        if self._unreadable:
            self.notes.append(f"{self._unreadable} files of the tree could not be read and are not in the copy")

    def _folder(self, source: str, target: str, within: tuple[str, ...]) -> None:
        """``within``: the real folders that links led to on the way here, so that no circle is walked."""
        # Writable while it is filled, its own mode afterwards.
        os.mkdir(target, 0o700)
        try:
            with os.scandir(source) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            self._unreadable += 1
            return
        for entry in listed:
            self._count(0)
            goal = os.path.join(target, entry.name)
            if entry.is_symlink():
                self._link(entry.path, goal, within)
            elif entry.is_dir(follow_symlinks=False):
                if not _left_out(entry):
                    self._folder(entry.path, goal, within)
            elif entry.is_file(follow_symlinks=False):
                self._file(entry.path, goal)
        with contextlib.suppress(OSError):
            shutil.copystat(source, target)

    def _link(self, path: str, goal: str, within: tuple[str, ...]) -> None:
        real = os.path.realpath(path)
        if real == self.root or real.startswith(self.root + os.sep):
            # Into the tree, however it is written: into the copy.
            inside = os.path.join(self.target, os.path.relpath(real, self.root))
            os.symlink(os.path.relpath(inside, os.path.dirname(goal)), goal)
        elif self.protected or not os.path.exists(real) or not _writable(real):
            os.symlink(real, goal)
        elif os.path.isfile(real):
            self._file(real, goal)
        elif os.path.isdir(real) and not any(real == one or one.startswith(real + os.sep) for one in within):
            self._folder(real, goal, (*within, real))
        else:
            self.notes.append(f"the link {os.path.relpath(path, self.root)} is not in the copy")

    def _file(self, source: str, target: str) -> None:
        try:
            with open(source, "rb") as original:
                # As it is now, not as the folder said: a file may grow while it is copied.
                about = os.fstat(original.fileno())
                if not stat.S_ISREG(about.st_mode):
                    return
                with open(target, "xb") as copy:
                    if not _shared(original.fileno(), copy.fileno()):
                        self._count(about.st_size)
                        shutil.copyfileobj(original, copy, 1 << 20)
        except PermissionError:
            self._unreadable += 1
            return
        with contextlib.suppress(OSError):
            shutil.copystat(source, target)

    def _count(self, size: int) -> None:
        self._alive()
        self._entries += 1 if size == 0 else 0
        self._bytes += size
        if self._bytes > MOST_BYTES or self._entries > MOST_ENTRIES:
            raise TooLarge(
                f"the tree is too large to copy for a run (over {MOST_BYTES >> 30} GiB or {MOST_ENTRIES:,} files): "
                "name a smaller folder, move data and checkpoints out of it, or verify where namespaces are allowed"
            )


def _left_out(entry: os.DirEntry[str]) -> bool:
    return entry.name in _SKIPPED or any(
        os.path.lexists(os.path.join(entry.path, mark)) for mark in ("pyvenv.cfg", "conda-meta")
    )


def _writable(path: str) -> bool:
    """Whether this user could change ``path`` or, without looking through all of it, something in it."""
    return os.access(path, os.W_OK) or os.stat(path).st_uid == os.getuid() or os.path.isdir(path)


def _shared(source: int, target: int) -> bool:
    """Have the file system share the data until one of them is written to, where it can."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True
