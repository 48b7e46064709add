"""What is mounted where, as this process sees it (proc_pid_mountinfo(5))."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from . import kernel

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_FLAGS = {"nosuid": kernel.MS_NOSUID, "nodev": kernel.MS_NODEV, "noexec": kernel.MS_NOEXEC}


class Mount(NamedTuple):
    """One mount: its id, where it is mounted, its own options, its file system and the source it was mounted from."""

    number: int
    point: str
    options: frozenset[str]
    kind: str
    source: str

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written through this mount."""
        return "ro" in self.options

    def make_read_only(self) -> None:
        """Remount it read-only, in this namespace alone. Raises OSError."""
        # Flags that a more privileged namespace set are locked: leaving one out would be refused.
        flags = sum(flag for name, flag in _FLAGS.items() if name in self.options)
        kernel.mount("", self.point, None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | flags)


def inside(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies below it; both absolute and normal."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def read_mounts() -> list[Mount]:
    """Every mount that can be reached by its path, parents before children.

    Mounts that are covered by a later one are left out, and so are mounts for automounters: to look at one of those can
    mount something or wait for a server.
    """
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = [_parse(line) for line in file]
    return [mount for mount in mounts if mount.kind != "autofs" and _reachable(mount)]


def _parse(line: bytes) -> Mount:
    before, _, after = line.partition(b" - ")
    number, _, _, _, point, options = before.split(b" ")[:6]
    kind, source = after.split(b" ")[:2]
    return Mount(
        int(number), _text(point), frozenset(options.decode().split(",")), kind.decode(), _text(source.rstrip(b"\n"))
    )


def _text(field: bytes) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), field))


def _reachable(mount: Mount) -> bool:
    try:
        with opened(mount.point) as handle, open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as lines:
            return any(line.split() == ["mnt_id:", str(mount.number)] for line in lines)
    except OSError:
        return False


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """A handle that stands for ``path`` itself, whatever is mounted over it later. Raises OSError."""
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def by_handle(handle: int) -> str:
    """A path that leads to what ``handle`` was opened on; free of characters that mount options give a meaning."""
    return f"/proc/self/fd/{handle}"
