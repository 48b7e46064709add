"""Folders that a script finds empty but for some paths, and the doors to services outside: sockets and pipes."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

from . import kernel
from .mounts import by_handle, inside, read_mounts

_MOST_LINKS = 40


class Curtains:
    """The empty folders of one run, made in ``store`` (a path that leads to a folder of the run).

    ``writable`` are the mount points that the script may write below, ``exposed`` those that it may not in any case;
    ``points`` all of them, in the order of mounting.
    """

    def __init__(self, store: str) -> None:
        self.points: list[str] = []
        self.writable: set[str] = set()
        self.exposed: set[str] = set()
        self._store = store
        self._empty: list[str] = []
        self._filled: list[str] = []

    def draw(
        self, hidden: Sequence[str], shown: Sequence[str], exposed: Sequence[str], moved: Sequence[tuple[str, str]]
    ) -> None:
        """Empty ``hidden`` (real paths) but for ``shown`` and ``exposed``, links on the way to these included.

        ``moved`` are pairs of a folder to show and where to. What is not there is passed over. Raises OSError.
        """
        with contextlib.ExitStack() as handles:
            links: dict[str, str] = {}
            wanted: dict[str, tuple[int, str]] = {}
            for kind, paths in (("shown", shown), ("exposed", exposed)):
                for path in paths:
                    real, passed = _way(path)
                    links.update(passed)
                    handle = _opened(real)
                    if handle is not None:
                        handles.callback(os.close, handle)
                        wanted[real] = handle, kind
            for source, target in moved:
                handle = os.open(source, os.O_PATH | os.O_CLOEXEC)
                handles.callback(os.close, handle)
                wanted[target] = handle, "moved"
            for path in sorted({*hidden, *wanted}, key=lambda path: (path.count("/"), path)):
                if path in wanted:
                    self._show(path, *wanted[path])
                else:
                    self._hide(path)
            for path, target in links.items():
                if self._within(path) and not os.path.lexists(path):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    os.symlink(target, path)

    def make(self, path: str) -> None:
        """Have a folder at ``path`` if it would lie in one that is empty."""
        if self._within(path):
            os.makedirs(path, exist_ok=True)

    def lift(self) -> None:
        """Take all of it away again."""
        for point in reversed(self.points):
            with contextlib.suppress(OSError):
                kernel.unmount(point)
        self.points = []

    def _within(self, path: str) -> bool:
        """Whether ``path`` lies in one of the empty folders, and not in what is shown there."""
        found = [folder for folder in (*self._empty, *self._filled) if inside(path, folder)]
        return bool(found) and max(found, key=len) in self._empty

    def _hide(self, path: str) -> None:
        if self._within(path):
            os.makedirs(path, exist_ok=True)
            return
        fresh = os.path.join(self._store, f"empty-{len(self.points)}")
        os.mkdir(fresh)
        os.chmod(fresh, stat.S_IMODE(os.stat(path).st_mode) | 0o700)
        kernel.mount(fresh, path, None, kernel.MS_BIND)
        self.points.append(path)
        self.writable.add(path)
        self._empty.append(path)

    def _show(self, path: str, handle: int, kind: str) -> None:
        within = self._within(path)
        # What is shown already is as it should be: in a copy of the tree the copy, not what was copied.
        if kind == "shown" and (not within or os.path.lexists(path)):
            return
        if within:
            _place_for(path, folder=stat.S_ISDIR(os.stat(by_handle(handle)).st_mode))
        kernel.mount(by_handle(handle), path, None, kernel.MS_BIND | kernel.MS_REC)
        self.points.append(path)
        # In a copy there is room beside what it holds, for an environment that was not copied.
        (self._empty if kind == "moved" else self._filled).append(path)
        if kind == "moved":
            self.writable.add(path)
        if kind == "exposed":
            self.exposed.add(path)


def _way(path: str) -> tuple[str, dict[str, str]]:
    """The real path of ``path``, and the links on the way to it with what they say."""
    links: dict[str, str] = {}
    real, waiting = "/", [part for part in path.split("/") if part]
    while waiting:
        part = waiting.pop(0)
        step = os.path.normpath(os.path.join(real, part))
        if os.path.islink(step) and len(links) < _MOST_LINKS:
            links[step] = target = os.readlink(step)
            real = "/" if target.startswith("/") else real
            waiting = [*(one for one in target.split("/") if one), *waiting]
        else:
            real = step
    return real, links


def _opened(path: str) -> int | None:
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None


def _place_for(path: str, *, folder: bool) -> None:
    if folder:
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def bound_sockets() -> list[str]:
    """The absolute paths of all sockets that somebody in this network namespace listens at."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as lines:
            fields = [line.rstrip("\n").split(None, 7) for line in lines]
    except OSError:
        return []
    return list(dict.fromkeys(field[7] for field in fields if len(field) == 8 and field[7].startswith("/")))


def close_doors(sockets: Iterable[str], ours: Callable[[str], bool]) -> Iterator[str]:
    """Put an empty file over each of ``sockets``, and over each socket and pipe that is mounted by itself.

    ``ours`` says of the mount point that a path lies below whether it leads to nobody outside: the sockets and pipes
    in an overlay are others than those in what it is made of. Says which could not be closed.
    """
    mounts = read_mounts()
    for path in dict.fromkeys([*map(os.path.realpath, sockets), *(mount.point for mount in mounts)]):
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        home = max((mount.point for mount in mounts if inside(path, mount.point)), key=len, default="/")
        if (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)) and not ours(home):
            try:
                kernel.mount(os.devnull, path, None, kernel.MS_BIND)
            except OSError as error:
                yield f"{path} could not be closed ({os.strerror(error.errno or 0)})"
