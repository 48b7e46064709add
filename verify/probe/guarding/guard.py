"""Keeps an error inside the probe from becoming an error of the script."""

from __future__ import annotations

import _thread
import sys
import time
import typing
from collections.abc import Callable
from types import TracebackType
from typing import Any

from . import compiling

#: Appends one event line to the record of this process. Built when this is imported, so as Python 3.8 spells it.
Write = typing.Callable[[typing.Dict[str, Any]], None]  # noqa: UP006


class Clock:
    """Seconds since the probe started, and how many of them the probe took for itself."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.spent = 0.0
        #: How deep each thread is in parts of the probe: the time of an inner one is in that of the outer one.
        self.depth: dict[int, int] = {}
        #: When each thread came into the outermost of them, and what `compiling.resume` needs.
        self.entered: dict[int, tuple[float, Any]] = {}

    def now(self) -> float:
        return time.perf_counter() - self._start


class Part:
    """One part of the probe, used as a context around everything that it does while the script runs.

    An exception inside switches the part off (``on`` is False from then on) and becomes a note; the time inside counts
    as the probe's own. An exception that a signal handler of the script raised meanwhile passes: it was meant for the
    script.
    """

    def __init__(self, name: str, write: Write, clock: Clock) -> None:
        self.name = name
        self.on = True
        self._write = write
        self._clock = clock

    def __enter__(self) -> None:
        clock, thread = self._clock, _thread.get_ident()
        depth = clock.depth.get(thread, 0)
        clock.depth[thread] = depth + 1
        if not depth:
            clock.entered[thread] = (time.perf_counter(), compiling.pause())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        clock, thread = self._clock, _thread.get_ident()
        depth = clock.depth[thread] = clock.depth[thread] - 1
        if not depth:
            started, paused = clock.entered[thread]
            compiling.resume(paused)
            clock.spent += time.perf_counter() - started
        if error is None:
            return False
        if not isinstance(error, Exception) or _signalled(traceback):
            return False
        self.on = False
        self.note(error)
        return True

    def attempt(self, action: Callable[[], object]) -> None:
        """Do this as long as the part is on."""
        if self.on:
            with self:
                action()

    def around(self, function: Callable[..., None]) -> Callable[..., None]:
        """``function`` as one part, in which to enter others costs little."""

        def inside(*args: Any) -> None:
            with self:
                function(*args)

        return inside

    def note(self, error: BaseException) -> None:
        """Say that this part is off and why."""
        try:
            text = f"The probe could not go on watching {self.name}: {type(error).__name__}: {error}"
            self._write({"event": "note", "text": text[:500]})
        except Exception:
            # A full disk, say: the parent sees a record without an end.
            pass


def _signalled(traceback: TracebackType | None) -> bool:
    """Whether a signal handler is among the frames of ``traceback``."""
    signal = sys.modules.get("signal")
    if signal is None:
        return False
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers} - {None}
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False
