"""A process that reads of others what the kernel may make it wait for.

What a process has mapped is shown when that holds no lock on it. One that forks without end holds it nearly always, and
whoever waits for it watches nothing meanwhile. (Threads cannot be made beside a new process namespace.)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from . import kernel, processes


class Reader:
    """Started before the program, outside of its process namespace; it ends with the launcher.

    ``pid`` is its process, ``answers`` the end of a pipe to read answers from.
    """

    def __init__(self) -> None:
        questions, self._questions = os.pipe()
        self.answers, answers = os.pipe()
        self.busy = False
        self.pid = os.fork()
        if self.pid == 0:
            _be_reader(questions, answers)
        os.close(questions)
        os.close(answers)

    def ask(self, pids: Sequence[int], proc: str, known: int | None, *, exact: bool, nameless: bool) -> None:
        """Have it look at ``pids``, as :func:`processes.proportional` does and as :func:`processes.nameless` does."""
        self.busy = True
        line = json.dumps([list(pids), proc, known, exact, nameless]).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._questions, line) :]

    def answer(self) -> dict[str, Any] | None:
        """What it says: ``exact`` and ``nameless``, None where it was not asked, and ``taken``, seconds of the
        processor; None for all where it has ended.
        """
        self.busy = False
        line = b""
        while not line.endswith(b"\n"):
            part = os.read(self.answers, 1 << 12)
            if not part:
                return None
            line += part
        return json.loads(line)  # type: ignore[no-any-return]


def _be_reader(questions: int, answers: int) -> NoReturn:
    # It must never come back into the launcher's code, whatever happens to it, and keeps nothing of it open.
    try:
        os.dup2(questions, 0)
        os.dup2(answers, 1)
        os.closerange(2, 1 << 16)
        if sys.platform == "linux":
            kernel.die_with_parent(signal.SIGKILL)
        processes.go_first()
        with os.fdopen(0) as asked:
            for line in asked:
                os.write(1, json.dumps(_look(*json.loads(line))).encode() + b"\n")
    finally:
        os._exit(0)


def _look(pids: Sequence[int], proc: str, known: int | None, exact: bool, nameless: bool) -> dict[str, Any]:
    before = time.process_time()
    return {
        "exact": processes.proportional(pids, proc) if exact else None,
        "nameless": processes.nameless(pids, proc, known) if nameless else None,
        "taken": time.process_time() - before,
    }
