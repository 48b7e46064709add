"""One command, run to its end or to a limit: its wall and processor time and its largest process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resource import struct_rusage

PR_SET_CHILD_SUBREAPER = 36
"""From <linux/prctl.h>: orphans below this process become its children, so that their time is counted too."""


@dataclass(frozen=True)
class Run:
    """What one run of a command took.

    ``cpu`` is of the process and all below it, ``peak`` the resident memory in MB of the largest single one of them.
    Of a run that was ``stopped`` at the limit all three are lower bounds. ``failure`` says why it counts for nothing.
    """

    wall: float
    cpu: float
    peak: float
    stopped: bool = False
    failure: str | None = None


def median(runs: Sequence[Run]) -> Run:
    """Of several runs the medians of the times and the greatest peak; the first failure, if any."""
    return Run(
        statistics.median(run.wall for run in runs),
        statistics.median(run.cpu for run in runs),
        max(run.peak for run in runs),
        any(run.stopped for run in runs),
        next((run.failure for run in runs if run.failure), None),
    )


def adopt_orphans() -> None:
    """Let processes that lose their parent come to this one; where the system cannot, their time goes uncounted."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def measure(command: Sequence[str], cwd: Path, limit: float) -> Run:
    """Run ``command`` in ``cwd`` for at most ``limit`` seconds; its findings (exit status 1) are no failure."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, "NO_COLOR": "1"},
            start_new_session=True,  # a group of its own, to be stopped as one
        )
        stopped = threading.Event()
        timer = threading.Timer(limit, _stop, [process.pid, stopped])
        timer.start()
        try:
            _, code, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begin
        finally:
            timer.cancel()
            _kill(process.pid)
        process.returncode = os.waitstatus_to_exitcode(code)
        usages = [usage, *_orphans(process.pid)]
        err.seek(0)
        failure = None if stopped.is_set() else _failure(process.returncode, err.read().decode(errors="replace"))
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux KiB
    cpu = sum(u.ru_utime + u.ru_stime for u in usages)
    return Run(wall, cpu, max(u.ru_maxrss for u in usages) / unit, stopped.is_set(), failure)


def _stop(group: int, stopped: threading.Event) -> None:
    stopped.set()
    _kill(group)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _orphans(group: int) -> list[struct_rusage]:
    usages = []
    with contextlib.suppress(ChildProcessError):
        while True:
            usages.append(os.wait4(-group, 0)[2])
    return usages


def _failure(status: int, stderr: str) -> str | None:
    if status in (0, 1) and "Traceback (most recent call last)" not in stderr:
        return None
    last = (stderr.strip().splitlines() or ["nothing on standard error"])[-1]
    return f"exit status {status}: {last[:120]}"
