"""The view that a script gets of the file system: overlays where it may write, the rest read-only."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence

from . import kernel
from .mounts import by_handle, inside, opened, read_mounts
from .places import SYSTEM, subfolders
from .veils import Curtains, close_doors

#: The source that our mounts name, to tell them from those that were there.
MARK = "codemod-verify"

# Whatever these show is made by the kernel; terminals must stay usable.
_KEPT_WRITABLE = {"proc", "devpts", "mqueue"}


class Sandbox:
    """A mount namespace with its overlays; this process lives in it from now on, until it exits.

    ``folders`` are of this run, on file systems to keep written files on, best first; ``kept`` are the folders that
    stay what they are, writable. ``room`` is how many bytes the script may write, ``shared_memory`` how many it may
    keep in /dev/shm; ``user``: in a user namespace. Handles stay open: paths may lead to something else once overlays
    lie over them.
    """

    def __init__(
        self, folders: Sequence[str], kept: Sequence[str], room: int, shared_memory: int, *, user: bool
    ) -> None:
        self.folders = list(folders)
        self.user = user
        self.room = room
        self.shared_memory = shared_memory
        self.handles = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for folder in self.folders]
        self.kept = {folder: os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in kept}
        self.overlaid: list[str] = []
        self.notes: list[str] = []
        self.curtains = Curtains(by_handle(self.handles[0]))
        self._memory: str | None = None
        self._count = 0

    def overlay(self, places: Sequence[str], needed: str) -> None:
        """Put overlays over ``places``, parents first; ``needed`` must be under one of them. Raises OSError."""
        with contextlib.ExitStack() as handles:
            # Before anything covers them: overlays on overlays only go two deep.
            lower = {place: handles.enter_context(opened(place)) for place in places}
            for place in places:
                self._place(place, needed, lower[place])
        last = max((place for place in places if inside(needed, place)), key=len)
        if last not in self.overlaid:
            raise OSError(errno.EROFS, "no overlay could be put over it", needed)

    def protect(self) -> None:
        """Make everything read-only that has no overlay and is not kept. Raises OSError."""
        for folder, handle in self.kept.items():
            self.curtains.make(folder)
            kernel.mount(by_handle(handle), folder, None, kernel.MS_BIND)
        for mount in read_mounts():
            ours = (mount.source == MARK and mount.point not in self.curtains.exposed) or mount.point in self.kept
            if mount.read_only or ours or mount.kind in _KEPT_WRITABLE or mount.point in self.curtains.writable:
                continue
            try:
                mount.make_read_only()
            except OSError as error:
                if not any(inside(mount.point, place) for place in SYSTEM):
                    raise
                self.notes.append(f"{mount.point} could not be made read-only ({os.strerror(error.errno or 0)})")
        if os.getuid() == 0:
            kernel.guard_settings()
        self._terminals()
        if os.path.isdir("/dev/shm"):
            kernel.mount(
                MARK,
                "/dev/shm",
                "tmpfs",
                kernel.MS_NOSUID | kernel.MS_NODEV,
                f"mode=1777,size={self.shared_memory}",
            )

    def _terminals(self) -> None:
        """Terminals of the program's own: in those of others root could write."""
        if "/dev" not in self.curtains.writable:
            return
        os.mkdir("/dev/pts")
        try:
            kernel.mount(
                MARK, "/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"
            )
        except OSError as error:
            self.notes.append(f"there are no terminals ({os.strerror(error.errno or 0)})")
            return
        os.symlink("pts/ptmx", "/dev/ptmx")

    def close_doors(self, sockets: Sequence[str]) -> None:
        """Close ``sockets``, and what is mounted by itself of sockets and pipes, unless an overlay has done so."""
        ours = {mount.point for mount in read_mounts() if mount.source == MARK} | self.curtains.writable
        self.notes += close_doors(sockets, ours.__contains__)

    def used(self) -> list[str]:
        """Paths of the folders that hold what was written, for this process alone."""
        return [by_handle(handle) for handle in self.handles]

    def close(self) -> None:
        """Free the files kept in memory, so that the folders can be removed."""
        for point in self.kept:
            with contextlib.suppress(OSError):
                kernel.unmount(point)
        self.curtains.lift()
        for point in [*reversed(self.overlaid), *([self._memory] if self._memory else [])]:
            with contextlib.suppress(OSError):
                kernel.unmount(point)
        for handle in (*self.handles, *self.kept.values()):
            os.close(handle)
        self.handles, self.kept = [], {}

    def _place(self, place: str, needed: str, lower: int) -> None:
        below = [
            mount.point
            for mount in read_mounts()
            if mount.point != place and inside(mount.point, place) and mount.source != MARK
        ]
        try:
            self._mount_somewhere(place, lower, below)
        except OSError as error:
            # In a user namespace nothing may be uncovered that a mount hides, so such a folder cannot be a lower
            # layer; the folders beside that mount can.
            if below and not inside(needed, place):
                parts = [part for part in subfolders(place) if not any(inside(point, part) for point in below)]
                for part in parts:
                    with contextlib.suppress(OSError), opened(part) as handle:
                        self._mount_somewhere(part, handle, [])
            self.notes.append(f"{place} is read-only: {os.strerror(error.errno or 0)}")

    def _mount_somewhere(self, place: str, lower: int, below: Sequence[str]) -> None:
        trouble: OSError | None = None
        for store in self._stores(place):
            try:
                self._mount(place, lower, store, below)
            except OSError as error:
                trouble = error
            else:
                self.overlaid.append(place)
                return
        raise trouble or OSError(errno.EXDEV, "no place to keep what is written", place)

    def _stores(self, place: str) -> list[str]:
        # An overlay's upper layer must not lie in its lower one.
        stores = [
            by_handle(handle)
            for folder, handle in zip(self.folders, self.handles, strict=False)
            if not inside(folder, place) and not inside(place, folder)
        ]
        if self._memory is None:
            try:
                self._memory = self._in_memory()
            except OSError:
                self._memory = ""
        return [*stores, *([self._memory] if self._memory else [])]

    def _in_memory(self) -> str:
        """A file system in memory, where no disk takes an upper layer (in a container the disk is an overlay)."""
        point = os.path.join(by_handle(self.handles[0]), "memory")
        os.mkdir(point)
        # A little more than is allowed, so that reaching what is allowed can be told from a full disk.
        kernel.mount(MARK, point, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode=700,size={self.room + (1 << 20)}")
        handle = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.handles.append(handle)
        return by_handle(handle)

    def _mount(self, place: str, lower: int, store: str, below: Sequence[str]) -> None:
        """Overlay ``place`` and put the mounts ``below`` it, which an overlay does not show, back where they were."""
        about = os.stat(place)
        self._count += 1
        layer = os.path.join(store, f"layer-{self._count}")
        upper, work = os.path.join(layer, "upper"), os.path.join(layer, "work")
        for folder in (layer, upper, work):
            os.mkdir(folder, 0o700)
        with contextlib.suppress(OSError):
            os.chown(upper, about.st_uid, about.st_gid)
        os.chmod(upper, stat.S_IMODE(about.st_mode))
        with contextlib.ExitStack() as handles:
            held = [(handles.enter_context(opened(point)), point) for point in _outermost(below)]
            layers = [by_handle(handles.enter_context(opened(path))) for path in (upper, work)]
            self._mount_overlay(place, by_handle(lower), *layers)
            if os.statvfs(place).f_flag & os.ST_RDONLY:
                kernel.unmount(place)
                raise OSError(errno.EROFS, "the overlay came out read-only", place)
            for handle, point in held:
                kernel.mount(by_handle(handle), point, None, kernel.MS_BIND | kernel.MS_REC)

    def _mount_overlay(self, place: str, lower: str, upper: str, work: str) -> None:
        layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
        trouble: OSError | None = None
        # With redirects a folder can be renamed, which a user namespace cannot have. Without syncing, the end of a run
        # does not wait for a disk that nobody reads from again. Older kernels know less.
        special = "userxattr" if self.user else "redirect_dir=on"
        for extra in (f",{special},volatile", f",{special}", ""):
            try:
                kernel.mount(MARK, place, "overlay", 0, layers + extra)
            except OSError as error:
                trouble = error
            else:
                return
        raise trouble or OSError(errno.ENOSYS, "no overlay", place)


def _outermost(points: Sequence[str]) -> list[str]:
    return [point for point in points if not any(point != other and inside(point, other) for other in points)]


def shared_memory_used() -> int:
    """Bytes in /dev/shm, which belong to processes but are not all in their resident size."""
    try:
        about = os.statvfs("/dev/shm")
    except OSError:
        return 0
    return (about.f_blocks - about.f_bfree) * about.f_frsize


def enter(*, network: bool) -> tuple[dict[str, bool], list[str]]:
    """Move this process into namespaces of its own: which it got, and notes on those it did not.

    The mount namespace is the one that matters, without it OSError is raised. ``network``: whether the script may keep
    the network.
    """
    user, group = os.getuid(), os.getgid()
    got = {"user": False, "mount": True, "network": False, "ipc": False}
    notes = []
    if not kernel.may_administrate():
        kernel.unshare(kernel.CLONE_NEWUSER, "user namespace")
        kernel.map_own_ids(user, group)
        got["user"] = True
    kernel.unshare(kernel.CLONE_NEWNS, "mount namespace")
    kernel.mount("", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    if not network:
        try:
            kernel.unshare(kernel.CLONE_NEWNET, "network namespace")
            kernel.stay_local()
            got["network"] = True
        except OSError as error:
            notes.append(f"the network could not be cut off ({os.strerror(error.errno or 0)})")
    with contextlib.suppress(OSError):
        kernel.unshare(kernel.CLONE_NEWIPC, "ipc namespace")
        got["ipc"] = True
    return got, notes
