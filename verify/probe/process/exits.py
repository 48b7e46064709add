"""Ways out of a process that Python's exit functions do not tell of: a status, ``os._exit``, errors in threads."""

from __future__ import annotations

import os
import sys
import typing
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Exits:
    """Of the process for which ``mine`` is true ``left`` is told before ``os._exit``, and ``failed`` of errors."""

    def __init__(
        self,
        mine: Callable[[], bool],
        left: Callable[[FrameType], None],
        failed: Callable[[BaseException, TracebackType | None], None],
    ) -> None:
        self._mine, self._left, self._failed = mine, left, failed
        #: What ``sys.exit`` was called with; None where it was not.
        self.status: int | None = None
        #: ``os._exit`` as it was.
        self.now: Callable[[int], typing.NoReturn] = os._exit

    def install(self) -> None:
        """Call at the start of the process."""
        self._wrap_exit()
        self._wrap_leaving()

    def _wrap_exit(self) -> None:
        original = sys.exit

        def leave(status: Any = None) -> None:
            # The exception itself cannot be seen any more once Python runs the exit functions.
            if self._mine():
                self.status = 0 if status is None else status if isinstance(status, int) else 1
            original(status)

        leave.__name__ = leave.__qualname__ = "exit"
        leave.__doc__ = original.__doc__
        sys.exit = leave  # type: ignore[assignment]

    def _wrap_leaving(self) -> None:
        """``os._exit`` passes all that Python does at the end, so what is seen at the end is looked at before it."""
        original = self.now = os._exit

        def _exit(status: int) -> typing.NoReturn:
            if self._mine():
                self._left(sys._getframe(1))
            original(status)

        os._exit = _exit

    def watch_threads(self) -> None:
        """See errors that end a thread."""
        import threading

        original = threading.excepthook

        def excepthook(args: Any) -> None:
            if args.exc_type is not SystemExit and args.exc_value is not None and self._mine():
                self._failed(args.exc_value, args.exc_traceback)
            original(args)

        threading.excepthook = excepthook


def with_worker(end: Callable[[str], None]) -> None:
    """Workers of multiprocessing leave without the exit functions; they have finalizers of their own."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, end, args=("completed",), exitpriority=0)


def last_error() -> tuple[BaseException, TracebackType | None] | None:
    """The error that ended the main thread, and where."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return None if error is None else (error, error.__traceback__ or getattr(sys, "last_traceback", None))


def flush() -> None:
    """Write out what the script has printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            # Closed, replaced or broken streams; the script would have the same trouble.
            continue
