"""Processes that work for this one, and end when it says so or is gone.

They hear nothing of an interrupt, which a terminal sends to every process: this one is told and ends them. The pools of
Python's library leave that to each worker, which then prints a traceback if it waits for work, and they wait at exit
for what is under way.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from codemods.terms.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")
_Answer = tuple[Exception | None, Any]
"""An error and its traceback, or None and the results of a portion."""


class WorkerEnded(UserError):
    """A worker was ended by somebody else."""


class Pool:
    """``processes`` workers, each of which calls ``start`` with ``given`` first. The first use starts them."""

    def __init__(self, processes: int, start: Callable[..., None], *given: object) -> None:
        self._processes = processes
        self._start = (start, given)
        self._workers: dict[Connection, multiprocessing.Process] = {}

    def map(self, work: Callable[[Item], Result], items: Sequence[Item], portion: int = 1) -> Iterator[Result]:
        """Yield what ``work`` returns for each of ``items``, in their order; a worker is given ``portion`` at a time.

        Raises what ``work`` raises, where its result would be, and :class:`WorkerEnded`. After an error only
        :meth:`end` may be called.
        """
        self._begin()
        idle, busy = list(self._workers), dict[Connection, int]()
        todo, done, following = deque(range(0, len(items), portion)), dict[int, _Answer](), 0
        while following < len(items):
            while todo and idle:
                to, at = idle.pop(), todo.popleft()
                busy[to] = at
                self._told(to, (work, items[at : at + portion]))
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                done[busy.pop(connection)] = self._received(connection)
                idle.append(connection)
            while following in done:
                error, told = done.pop(following)
                if error is not None:
                    raise error from RuntimeError(told)
                yield from told
                following += portion

    def end(self) -> None:
        """End the workers, whatever they do."""
        for process in self._workers.values():
            process.kill()
        for connection, process in self._workers.items():
            process.join()
            connection.close()
        self._workers.clear()

    def _begin(self) -> None:
        with _uninterrupted():
            while len(self._workers) < self._processes:
                ours, theirs = multiprocessing.Pipe()
                process = multiprocessing.Process(target=_serve, args=(theirs, *self._start), daemon=True)
                process.start()
                theirs.close()
                self._workers[ours] = process

    def _told(self, to: Connection, task: object) -> None:
        try:
            to.send(task)
        except OSError:
            raise self._ended(to) from None

    def _received(self, connection: Connection) -> _Answer:
        try:
            answer: _Answer = connection.recv()
        except (EOFError, OSError):
            raise self._ended(connection) from None
        return answer

    def _ended(self, connection: Connection) -> WorkerEnded:
        process = self._workers[connection]
        process.join()
        code = process.exitcode or 0
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        hint = ", as the system does where memory runs out; -j 1 takes less" if code == -signal.SIGKILL else ""
        return WorkerEnded(f"a worker process {how}{hint}")


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let an interrupt wait; what starts meanwhile is never told of one."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, start: Callable[..., None], given: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    start(*given)
    while True:
        work, items = connection.recv()
        try:
            answer: _Answer = (None, [work(item) for item in items])
        except Exception as error:
            answer = (error, traceback.format_exc())
        connection.send(answer)


def _end_with_parent() -> None:
    # a parent that is killed cannot say so, and its jobs would go on for nobody
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
