"""Watching a program while it runs: time, memory, disk, processes, and whether the caller still wants it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import processes
from .child import MOST_THREADS
from .reader import Reader
from .sandbox import shared_memory_used

TAIL = 64 << 10  # bytes of output that are kept
_INTERVAL = 0.05  # seconds between two looks at memory
_DISK_INTERVAL = 0.25
# A look may take a fortieth of the processor's time at most: the run is timed.
_SHARE = 40
_SETTLE = 0.5  # seconds until a sum that proved harmless is looked into again
#: Seconds that a look into processes may take. After that a page that several share counts for each of them, because
#: memory may run out before the look is over.
_PATIENCE = 10.0
_SPARE = 512 << 20  # bytes that are left on the disk whatever the limit says


class Cancelled(Exception):
    """The caller is gone, or does not want the run any more."""


@dataclass
class Limits:
    """Seconds of wall-clock time, bytes of resident memory of all processes together, bytes written, processes."""

    seconds: float
    memory: int
    disk: int
    processes: int


@dataclass
class Outcome:
    """How it ended: ``ending`` as a word, ``status`` as from ``subprocess``, and what it took."""

    ending: str = ""
    status: int | None = None
    seconds: float = 0.0
    peak: int = 0
    output: bytes = b""
    notes: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Watch:
    """One run: ``pid`` is the launcher's child, ``output`` and ``report`` are the reading ends of its pipes;
    ``reader`` looks into processes.

    ``proc`` shows the run's processes and no others, or is None where they must be told from all others by descent.
    ``written`` are folders that hold what the program writes; those among them that are on ``disks`` shall not fill
    these.
    """

    pid: int
    output: int
    report: int
    reader: Reader | None
    limits: Limits
    proc: str | None
    written: Sequence[str]
    disks: Sequence[str]

    def __post_init__(self) -> None:
        self.before = sum(map(size_of, self.written))
        self.outcome = Outcome()
        self.groups: frozenset[int] = frozenset()
        self._tail = bytearray()
        self._events = bytearray()
        self._ready = self._gone = False
        self._quiet_until = self._sized_until = self._asked = 0.0
        self._held = 0
        self._parent = os.getppid()
        self._private_shm = self.proc is not None
        self._by_keys = processes.kept_by_keys()
        self._pids: list[int] = []
        self._nameless = processes.Nameless(0, 0)
        # Of shared memory of its own all is counted, with or without a name.
        self._counted = os.stat("/dev/shm").st_dev if self._private_shm and os.path.isdir("/dev/shm") else None
        self._spare = min(_SPARE, free_space(self.disks) // 2)

    def run(self, control: int) -> Outcome:
        """Wait for the end and return how it came about; nothing of the program lives on.

        ``control`` ends (is at its end of file) when the caller does; raises Cancelled then, after the same cleaning.
        """
        start = time.monotonic()
        processes.go_first()
        try:
            self._loop(control, start)
        finally:
            self.outcome.seconds = time.monotonic() - start
            self._end()
        self._conclude()
        return self.outcome

    def _loop(self, control: int, start: float) -> None:
        look = look_at_disk = start + _INTERVAL
        open_ends = [self.output, self.report, control, *([self.reader.answers] if self.reader else [])]
        while not self.outcome.ending and self.outcome.status is None:
            now = time.monotonic()
            pause = max(0.0, min(look, start + self.limits.seconds) - now)
            ready, _, _ = select.select(open_ends, [], [], pause)
            if control in ready and not os.read(control, 1 << 12):
                raise Cancelled
            if self.output in ready and not self._drain():
                open_ends.remove(self.output)
            if self.report in ready and not self._hear():
                open_ends.remove(self.report)
            if self.reader and self.reader.answers in ready and not self._read(self.reader):
                open_ends.remove(self.reader.answers)
                self.reader = None
            now, taken = time.monotonic(), time.process_time()
            if now >= start + self.limits.seconds:
                self._stop("TIMEOUT", f"stopped after {self.limits.seconds:g} s, as --timeout says")
            if now >= look and self._ready:
                self._look(now)
            if now >= look:
                if os.getppid() != self._parent:
                    raise Cancelled
                self._collect()
                look = _next(_INTERVAL, time.process_time() - taken)
            if now >= look_at_disk:
                taken = time.process_time()
                self._look_at_disk()
                look_at_disk = _next(_DISK_INTERVAL, time.process_time() - taken)

    def _drain(self) -> bool:
        data = os.read(self.output, 1 << 20)
        self._tail += data
        if len(self._tail) > 4 * TAIL:
            del self._tail[:-TAIL]
        return bool(data)

    def _hear(self) -> bool:
        data = os.read(self.report, 1 << 16)
        self._events += data
        *lines, rest = bytes(self._events).split(b"\n")
        self._events = bytearray(rest)
        for line in lines:
            self._take(json.loads(line))
        return bool(data)

    def _take(self, event: dict[str, Any]) -> None:
        if "ready" in event:
            self._ready = True
        elif "failed" in event:
            self._stop("NOT_STARTED", event["failed"])
        elif "status" in event:
            self._ended(event["status"])

    def _collect(self) -> None:
        """Without an init between, the program is our own child, and so is every orphan of it."""
        status = processes.reap().get(self.pid)
        if status is not None:
            self._gone = True
            self._hear_rest()
            if self.outcome.status is None and not self.outcome.ending:
                self._ended(status)

    def _hear_rest(self) -> None:
        while select.select([self.report], [], [], 0)[0] and self._hear():
            pass

    def _ended(self, status: int) -> None:
        self.outcome.status = os.waitstatus_to_exitcode(status)

    def _stop(self, ending: str, note: str) -> None:
        if not self.outcome.ending:
            self.outcome.ending = ending
            self.outcome.notes.append(note)

    def _members(self) -> list[processes.Process]:
        if self.proc is not None:
            # The first one is the launcher's own part.
            return [process for process in processes.list_processes(self.proc) if process.pid != 1]
        found = processes.descendants(processes.list_processes(), os.getpid(), self.groups)
        found = [process for process in found if not self.reader or process.pid != self.reader.pid]
        if sys.platform != "linux":
            # Orphans go to the system's init there; what they keep is their group.
            self.groups |= {process.group for process in found} - {os.getpgrp()}
        return found

    def _look(self, now: float) -> None:
        # Counted before they are read one by one: while a fork bomb grows, there is no time for that.
        if self.proc is not None and (count := processes.count(self.proc)) > self.limits.processes:
            self._stop("MEMORY", f"stopped at {count} processes, the limit is {self.limits.processes}")
            return
        members = self._members()
        total = sum(process.resident for process in members)
        self.outcome.peak = max(self.outcome.peak, total)
        threads = sum(process.threads for process in members)
        if len(members) > self.limits.processes or threads >= MOST_THREADS:
            self._stop(
                "MEMORY",
                f"stopped at {len(members)} processes with {threads} threads, "
                f"the limits are {self.limits.processes} and {MOST_THREADS}",
            )
        self._pids = [process.pid for process in members]
        self._held = self._nameless.memory
        if self._private_shm:
            self._held += shared_memory_used() + max(0, processes.kept_by_keys() - self._by_keys)
        too_much = total + self._held > self.limits.memory
        if self.reader is None or (self.reader.busy and now >= self._asked + _PATIENCE):
            self._weigh(total + self._held)
        elif not self.reader.busy:
            # Workers share most of their pages, and a plain sum counts these once for each.
            exact, nameless = too_much and now >= self._quiet_until, now >= self._sized_until
            if exact or nameless:
                self._asked = now
                self.reader.ask(self._pids, self.proc or "/proc", self._counted, exact=exact, nameless=nameless)

    def _read(self, reader: Reader) -> bool:
        """Take what the reader says; False where it has ended."""
        answer = reader.answer()
        if answer is None:
            return False
        if answer["nameless"] is not None:
            self._nameless = processes.Nameless(*answer["nameless"])
            self._sized_until = _next(_DISK_INTERVAL, answer["taken"])
        if answer["exact"] is not None:
            exact, shared = answer["exact"]
            # Where none could be read, or all have ended meanwhile, it is what is there now.
            exact = exact or sum(process.resident for process in self._members())
            self._weigh(exact + max(0, self._held - shared))
            self._quiet_until = _next(_SETTLE, answer["taken"])
        return True

    def _weigh(self, used: int) -> None:
        if used > self.limits.memory:
            self._stop(
                "MEMORY", f"stopped: it held {_bytes(used)}, the limit is {_bytes(self.limits.memory)} (--memory)"
            )

    def _look_at_disk(self) -> None:
        used = sum(map(size_of, self.written)) - self.before + self._nameless.disk
        if used >= self.limits.disk:
            self._stop("DISK", f"stopped: it wrote {_bytes(used)}, the limit is {_bytes(self.limits.disk)} (--disk)")
        elif self.outcome.status is None and free_space(self.disks) < self._spare:
            self._stop("DISK", "stopped because the disk is nearly full")

    def _end(self) -> None:
        if not self._gone:
            if self.proc is None:
                # All of a group at once, before any of them can fork: as long as it is not reaped the number is its.
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)
            os.kill(self.pid, signal.SIGKILL)
        left = processes.end_all(self.groups)
        if left:
            self.outcome.notes.append(f"{len(left)} processes could not be ended")

    def _conclude(self) -> None:
        outcome = self.outcome
        self._hear_rest()
        while select.select([self.output], [], [], 0)[0] and self._drain():
            pass
        outcome.output = bytes(self._tail[-TAIL:])
        # What lived between two looks: the largest single process, as the system has kept it.
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        outcome.peak = max(outcome.peak, largest * (1 if sys.platform == "darwin" else 1024))
        if not outcome.ending:
            self._nameless = processes.Nameless(0, 0)
            self._look_at_disk()
        if outcome.ending:
            return
        if outcome.status is None:
            outcome.ending, outcome.status = "KILLED", -signal.SIGKILL
        elif outcome.status == -signal.SIGXFSZ:
            self._stop("DISK", "stopped: it wrote a file larger than --disk and --memory allow")
        elif outcome.status < 0:
            outcome.ending = "KILLED"
        else:
            outcome.ending = "EXITED"
        if outcome.ending == "KILLED" and outcome.status == -signal.SIGKILL:
            outcome.notes.append("killed by SIGKILL, not by us: the system does that when memory runs out")


def _next(interval: float, taken: float) -> float:
    """When to look again, after a look that has ``taken`` that many seconds of the processor."""
    return time.monotonic() + max(interval, _SHARE * taken)


def size_of(folder: str) -> int:
    """Bytes on disk below ``folder``, links not followed; what cannot be read counts nothing."""
    total = 0
    waiting = [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def free_space(folders: Sequence[str]) -> int:
    """Bytes free where these folders are, the least of them; 0 where there are none."""
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):
            about = os.statvfs(folder)
            found.append(about.f_bavail * about.f_frsize)
    return min(found, default=0)


def _bytes(count: int) -> str:
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 29 else f"{count / (1 << 20):.0f} MiB"
