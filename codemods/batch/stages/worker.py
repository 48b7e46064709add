"""A process that does one job after the other: ``python -m codemods.batch.stages.worker``, jobs in by standard input.

A repository can take a process down (memory, a bug in an extension), change its working directory and fill its caches.
So each has a process that is not the campaign's, and that is replaced after some jobs.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from codemods.batch.stages.job import Job, Outcome
from codemods.batch.stages.jobs import perform

#: A worker is replaced after so many jobs, or when it has become so large; what is simulated is remembered in it.
RECYCLE_JOBS, RECYCLE_BYTES = 40, 700 << 20


def main() -> int:
    """Serve jobs until there are no more; ends at once, with all that it started, when the other side is gone."""
    incoming, outgoing = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.set_inheritable(incoming.fileno(), False)
    os.set_inheritable(outgoing.fileno(), False)
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                jobs.put(incoming.recv())
        # Nobody is left to take the result: whatever is under way must not outlive the campaign that wanted it.
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        job = jobs.get()
        outcome = perform(job, lambda text: outgoing.send(("doing", text)))
        outgoing.send(("outcome", outcome, resident()))


def resident() -> int:
    """The bytes of memory that this process has; at most it ever had, where the system does not say more."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Worker:
    """A worker as its owner has it; ``scratch`` is where it and what it starts put temporary files."""

    def __init__(self, scratch: Path, cache: Path) -> None:
        self._scratch = scratch
        self._cache = cache
        self._process: subprocess.Popen[bytes] | None = None
        self._to: Connection | None = None
        self._from: Connection | None = None
        self._done = 0
        self._size = 0

    def do(self, job: Job, tell: Callable[[str], None], cancelled: threading.Event) -> Outcome:
        """Do ``job``; ``died`` where the process did not come to its end, ``failed`` where it took too long."""
        if self._process is None or self._done >= RECYCLE_JOBS or self._size > RECYCLE_BYTES:
            self.close()
            self._start()
        assert self._to is not None
        assert self._from is not None
        begin = time.monotonic()
        try:
            self._to.send(job)
            while True:
                if self._from.poll(0.2):
                    message: tuple[Any, ...] = self._from.recv()
                    if message[0] == "outcome":
                        self._done += 1
                        self._size = message[2]
                        outcome: Outcome = message[1]
                        return outcome
                    tell(message[1])
                elif cancelled.is_set():
                    self.close()
                    return Outcome(job, "died", "the campaign was stopped", {}, job.folder)
                elif time.monotonic() - begin > job.timeout:
                    self.close()
                    return Outcome(
                        job, "failed", f"took more than {job.timeout:.0f} seconds", {}, job.folder, job.timeout
                    )
        except (EOFError, OSError):
            return Outcome(job, "died", self._epitaph(), {}, job.folder, time.monotonic() - begin)

    def close(self) -> None:
        """End the process with all that it started."""
        for connection in (self._to, self._from):
            if connection is not None:
                connection.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = self._to = self._from = None
        self._done = self._size = 0

    def _start(self) -> None:
        for folder in (self._scratch, self._cache):
            folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "codemods.batch.stages.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(os.environ, self._scratch, self._cache),
            # Where the path to our own modules begins; never a folder that a repository is written into.
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self._from = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        self._process.stdin.close()
        self._process.stdout.close()

    def _epitaph(self) -> str:
        process = self._process
        assert process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        status = process.poll()
        self.close()
        if status is not None and status < 0:
            name = signal.Signals(-status).name
            hint = ", as the system does where memory runs out" if name == "SIGKILL" else ""
            return f"its worker was ended by {name}{hint}"
        return f"its worker ended with status {status}"


def environment(given: Mapping[str, str], scratch: Path, cache: Path) -> dict[str, str]:
    """The environment of a worker: as ``given``, but what is written aside is written in the work folder."""
    return {
        **given,
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch)),
        "MPLCONFIGDIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


if __name__ == "__main__":
    tempfile.tempdir = None
    sys.exit(main())
