"""How long steps take, and for a second run the time of each line: which line gets slower."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

from ..guarding.guard import Clock
from ..lines.sites import Tree

_MOST_STEPS = 2000
_MOST_LINES = 5
#: So many steps at the start do what is done once.
_WARM = 2


class Pace:
    """The seconds of each step, less what the probe took."""

    def __init__(self, clock: Clock, tree: Tree) -> None:
        self._clock = clock
        self._tree = tree
        self._last: float | None = None
        self.seconds: list[float] = []
        #: Of each step the seconds by line, where lines are timed.
        self.lines: list[dict[tuple[str, int, str], float]] = []
        self._now: dict[tuple[str, int, str], float] = {}
        self._at: tuple[str, int, str] | None = None
        self._since = 0.0

    def stepped(self) -> None:
        """A step is over."""
        now = self._clock.now() - self._clock.spent
        if self._last is not None and len(self.seconds) < _MOST_STEPS:
            self.seconds.append(now - self._last)
            self.lines.append(self._now)
        self._now = {}
        self._last = now

    def install(self) -> None:
        """Time the lines of the tree from now on, in this thread."""
        sys.settrace(self._called)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._tree.relative(frame.f_code.co_filename) is not None:
                frame.f_trace = self._line
            frame = frame.f_back
        self._since = time.perf_counter()
        self._thread = threading.get_ident()

    def remove(self) -> None:
        """Stop timing lines."""
        if sys.gettrace() == self._called:
            sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line(frame, event, argument) if self._tree.relative(frame.f_code.co_filename) is not None else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        now = time.perf_counter()
        if self._at is not None:
            self._now[self._at] = self._now.get(self._at, 0.0) + now - self._since
        if event == "return":
            caller = frame.f_back
            while caller is not None and self._tree.relative(caller.f_code.co_filename) is None:
                caller = caller.f_back
            self._at = None if caller is None else self._place(caller)
        else:
            self._at = self._place(frame)
        self._since = time.perf_counter()
        return self._line

    def _place(self, frame: FrameType) -> tuple[str, int, str]:
        return self._tree.relative(frame.f_code.co_filename) or "", frame.f_lineno, frame.f_code.co_name

    def event(self) -> dict[str, Any]:
        """The seconds of all steps, and the lines whose time rose most from the first third to the last."""
        count = len(self.seconds)
        third = max(1, (count - _WARM) // 3)
        early, late = self.lines[_WARM : _WARM + third], self.lines[-third:]
        rows: list[dict[str, Any]] = []
        for place in {place for row in late for place in row}:
            before = _median([row.get(place, 0.0) for row in early])
            after = _median([row.get(place, 0.0) for row in late])
            rows.append({"site": list(place), "before": before, "after": after})
        rows.sort(key=lambda row: row["before"] - row["after"])
        return {"what": "pace", "seconds": self.seconds, "lines": rows[:_MOST_LINES]}


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0
