"""Which folders a script could write to, so that an overlay is put over each of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence

from . import kernel
from .mounts import Mount, inside, read_mounts

#: Here live the kernel's own file systems and the sockets of services, not the user's files.
SYSTEM = ("/proc", "/sys", "/dev", "/run")

#: Devices that programs need: what has no state, terminals, memory and queues of the run's own, and accelerators. Disks
#: are none of them, nor virtual machines, networks and the kernel's log.
_DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "hugepages"),
    *("fd", "stdin", "stdout", "stderr", "nvidia*", "dri", "kfd", "accel", "accel[0-9]*", "dxg", "infiniband"),
    *("davinci*", "hisi_hdc", "devmm_svm", "habanalabs*", "hl[0-9]*", "neuron*"),
)

#: Those of them that a program gets its own of, where it can.
TERMINALS = ("/dev/pts", "/dev/ptmx")

_DEPTH = 3
_LOOKS = 3000
# No data, but an overlay of it would be mounted at every start.
_NEVER = {"/boot", "/lost+found"}


def devices() -> list[str]:
    """The paths of the devices that a program sees."""
    return [path for name in _DEVICES for path in sorted(glob.glob(f"/dev/{name}"))]


def find_places(needed: str, wanted: Iterable[str]) -> list[str]:
    """The places to put overlays over, for the namespaces that this process is going to have."""
    return writable_places(read_mounts(), [needed, *wanted], owned=not kernel.may_administrate())


def writable_places(mounts: Sequence[Mount], wanted: Iterable[str], *, owned: bool) -> list[str]:
    """The topmost folders that this user can write to, at most three levels below a mount, and ``wanted`` (real paths).

    ``/`` is never one of them (an overlay cannot hide what it is made of), its folders are. Parents come before what
    lies in them. A folder inside another is only there where it is a mount of its own or, with ``owned``, where
    somebody else's folder lies between: a user namespace cannot copy that one into the upper layer.
    """
    points = {mount.point for mount in mounts}
    found = []
    for mount in mounts:
        if not mount.read_only and not any(inside(mount.point, place) for place in SYSTEM):
            found += _topmost(mount.point, points)
    for place in wanted:
        home = max((point for point in points if inside(place, point)), key=len)
        top = _own_top(place, home) if owned else place
        covered = any(inside(top, other) and len(other) >= len(home) for other in found)
        if owned and covered:
            covered = any(inside(top, other) and _own_top(top, other) == other for other in found)
        if top != "/" and not covered:
            found.append(top)
    return sorted(set(found), key=lambda place: (place.count("/"), place))


def _own_top(place: str, upmost: str) -> str:
    """The topmost folder, not above ``upmost``, below which all folders on the way to ``place`` are this user's."""
    while place != upmost and os.path.dirname(place) != "/" and os.stat(place).st_uid == os.getuid():
        place = os.path.dirname(place)
    return place


def _topmost(point: str, points: set[str]) -> list[str]:
    """Search breadth first, and give up looking (never what was found) in file systems with huge upper levels."""
    if not os.path.isdir(point):
        return []
    found: list[str] = []
    level = [point]
    looks = 0
    for depth in range(_DEPTH + 1):
        below: list[str] = []
        for folder in level:
            if folder != "/" and os.access(folder, os.W_OK | os.X_OK):
                found.append(folder)
            elif depth < _DEPTH and looks < _LOOKS:
                inner = [path for path in subfolders(folder) if path not in points and path not in _NEVER]
                looks += len(inner)
                below += [path for path in inner if path not in SYSTEM]
        level = below
    return found


def subfolders(folder: str) -> list[str]:
    """The folders in ``folder`` that are no links; none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
