"""The processes below one process: who they are, what they use, and how to end them all."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PATIENCE = (
    10.0  # seconds; a process in the kernel (a card's driver, a network disk) dies when it comes back from there
)


class Process(NamedTuple):
    """One process: its id and its parent's, its group, its resident memory in bytes and its threads."""

    pid: int
    parent: int
    group: int
    resident: int
    threads: int


def list_processes(proc: str = "/proc") -> list[Process]:
    """All processes that ``proc`` shows; where there is no such file system, all that ``ps`` shows, without threads."""
    if sys.platform != "linux":
        return _from_ps()
    found = []
    with contextlib.suppress(OSError), os.scandir(proc) as entries:
        for entry in entries:
            if entry.name.isdigit():
                # It may have ended since.
                with contextlib.suppress(OSError, ValueError, IndexError):
                    found.append(_parse(int(entry.name), _read(f"{proc}/{entry.name}/stat")))
    return found


def count(proc: str) -> int:
    """How many processes ``proc`` shows, without looking at them; none where it has ended."""
    with contextlib.suppress(OSError):
        return sum(name.isdigit() for name in os.listdir(proc))
    return 0


def go_first() -> None:
    """Run before all others when there is something to do, if that is allowed: thousands of processes that want the
    processor would keep a watcher from ever ending them. Children do not inherit it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 4096)
    finally:
        os.close(handle)


def _parse(pid: int, line: bytes) -> Process:
    # The command's name stands in brackets and may hold anything, brackets too. The fields are those of
    # proc_pid_stat(5), counted from the third.
    fields = line[line.rindex(b")") + 2 :].split()
    zombie = fields[0] in b"ZX"
    return Process(pid, int(fields[1]), int(fields[2]), 0 if zombie else int(fields[21]) * _PAGE, int(fields[17]))


def _from_ps() -> list[Process]:
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,pgid=,rss="], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    rows = (line.split() for line in listed.stdout.splitlines())
    return [Process(int(row[0]), int(row[1]), int(row[2]), int(row[3]) * 1024, 1) for row in rows if len(row) == 4]


def own_threads() -> int:
    """Threads of all processes of this user that can be seen."""
    user = os.getuid()
    total = 0
    for process in list_processes():
        with contextlib.suppress(OSError):
            total += process.threads if sys.platform != "linux" or os.stat(f"/proc/{process.pid}").st_uid == user else 0
    return total


def descendants(processes: Iterable[Process], ancestor: int, groups: frozenset[int] = frozenset()) -> list[Process]:
    """Those below ``ancestor``, and whoever else is in one of ``groups`` (orphans, where nobody can adopt them)."""
    below: dict[int, list[Process]] = {}
    listed = list(processes)
    for process in listed:
        below.setdefault(process.parent, []).append(process)
    found: dict[int, Process] = {}
    waiting = [process for process in listed if process.group in groups and process.pid != ancestor]
    waiting += below.get(ancestor, [])
    while waiting:
        process = waiting.pop()
        if process.pid not in found:
            found[process.pid] = process
            waiting += below.get(process.pid, [])
    return list(found.values())


def proportional(pids: Iterable[int], proc: str = "/proc") -> tuple[int, int]:
    """Bytes that these processes use when pages that n of them share count for one n-th each, and the part of it that
    is shared memory. Costs the kernel a walk over their page tables; a process that cannot be read counts nothing.
    """
    total = shared = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"{proc}/{pid}/smaps_rollup", encoding="ascii") as lines:
            for line in lines:
                name, _, rest = line.partition(":")
                if name == "Pss":
                    total += int(rest.split()[0]) * 1024
                elif name == "Pss_Shmem":
                    shared += int(rest.split()[0]) * 1024
    return total, shared


class Nameless(NamedTuple):
    """Bytes in files that are open or mapped and have no name: in memory, and on a disk."""

    memory: int
    disk: int


def nameless(pids: Iterable[int], proc: str = "/proc", known: int | None = None) -> Nameless:
    """What these processes keep in files that were removed, or never had a name (``memfd_create``, ``O_TMPFILE``).

    No folder shows these. ``known`` is a device of which everything is counted elsewhere. A process that cannot be read
    counts nothing.
    """
    found: dict[tuple[int, int], tuple[bool, int]] = {}
    memory = _device("/dev/shm")
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"{proc}/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    about = os.stat(entry.path)
                    if about.st_nlink or not stat.S_ISREG(about.st_mode) or about.st_dev == known:
                        continue
                    within = about.st_dev == memory or os.readlink(entry.path).startswith("/memfd:")
                    found[about.st_dev, about.st_ino] = within, about.st_blocks * 512
        # Over an overlay a mapping may name another device than the file that is open.
        numbers = {number for _, number in found}
        for mapping in _mapped(f"{proc}/{pid}"):
            if mapping.file[1] not in numbers and mapping.file[0] != known:
                found[mapping.file] = mapping.memory or mapping.file[0] == memory, mapping.size
    sizes = found.values()
    return Nameless(sum(size for within, size in sizes if within), sum(size for within, size in sizes if not within))


class _Mapping(NamedTuple):
    """A file without a name that is mapped: its device and number, its bytes, and whether memory holds them."""

    file: tuple[int, int]
    size: int
    memory: bool


def _mapped(place: str) -> Iterator[_Mapping]:
    """The files without a name that the process at ``place`` has mapped, whether or not they are open.

    What is written of one is told to some users alone; to the others each counts as much as is mapped of it, and memory
    that processes share by descent, which may be as empty as it is large, nothing.
    """
    with contextlib.suppress(OSError, ValueError), open(f"{place}/maps", "rb") as lines:
        for line in lines:
            if not line.endswith(b" (deleted)\n"):
                continue
            span, _, _, device, number, name = line.split(None, 5)
            shared = name.startswith(b"/dev/zero")
            if name.startswith(b"/SYSV"):
                continue
            with contextlib.suppress(OSError):
                about = os.stat(f"{place}/map_files/{span.decode()}")
                if not about.st_nlink and stat.S_ISREG(about.st_mode):
                    memory = shared or name.startswith(b"/memfd:")
                    yield _Mapping((about.st_dev, about.st_ino), about.st_blocks * 512, memory)
                continue
            if not shared:
                first, last = (int(each, 16) for each in span.split(b"-"))
                major, minor = (int(each, 16) for each in device.split(b":"))
                file = os.makedev(major, minor), int(number)
                yield _Mapping(file, last - first, name.startswith(b"/memfd:"))


def _device(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.stat(path).st_dev
    return None


def kept_by_keys() -> int:
    """Bytes of System V's shared memory, of which no process needs to have any in its own."""
    total = 0
    with contextlib.suppress(OSError, ValueError), open("/proc/sysvipc/shm", encoding="ascii") as lines:
        place = next(lines, "").split().index("rss")
        for line in lines:
            total += int(line.split()[place])
    return total


def reap() -> dict[int, int]:
    """Collect all dead children of this process: their wait statuses by process id."""
    statuses = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            statuses[pid] = status
    return statuses


def end_all(groups: frozenset[int] = frozenset()) -> list[int]:
    """Kill everything below this process and wait for it to be gone; whoever is left after ten seconds is returned."""
    end = time.monotonic() + _PATIENCE
    while True:
        reap()
        left = [process.pid for process in descendants(list_processes(), os.getpid(), groups)]
        if not left or time.monotonic() > end:
            return left
        # Stopped first: what multiplies faster than it is counted would otherwise survive.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        time.sleep(0.005)
