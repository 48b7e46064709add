"""Ends a process that is still running when its time is over, with an orderly record."""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable

#: What may take this long at the end is hanging itself: a lock that the main thread holds.
_PATIENCE = 10.0


class Watchdog:
    """Calls ``end`` from its own thread ``seconds`` after ``start``; leaves the process if ``end`` does not return.

    The thread is not one of threading's: a script that counts its threads does not see it.
    """

    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        self._seconds = seconds
        self._end = end
        self._called_off = _thread.allocate_lock()

    def start(self) -> None:
        self._called_off.acquire()
        _thread.start_new_thread(self._watch, ())

    def stop(self) -> None:
        """Never call ``end``; harmless when called twice."""
        if self._called_off.locked():
            self._called_off.release()

    def _watch(self) -> None:
        if self._called_off.acquire(timeout=self._seconds):
            return
        _thread.start_new_thread(_leave_after, (_PATIENCE,))
        self._end()


def _leave_after(seconds: float) -> None:
    lock = _thread.allocate_lock()
    lock.acquire()
    lock.acquire(timeout=seconds)
    os._exit(0)
