"""Watching the autograd graph from inside: for tests, notebooks and scripts of one's own.

The same counts that ``codemod verify`` takes in a process of its own, without files and without another process::

    with verify.watch() as run:
        for batch in loader:
            ...
    run.assert_flat()

Imports torch only when a watch starts. While it is on, torch calls back at each backward, optimizer step and call of a
root module; nothing that is computed changes. At its end torch is as it was.
"""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType

from verify.live.observer import FEWEST, Census, Holder, Observer, Unit
from verify.measured.records import Forwards
from verify.probe.process.identity import frames_of, outward

__all__ = ["FEWEST", "Holder", "TooFewSteps", "Watch", "watch"]

#: Calls of a module at one line from which on it is told that no backward used them.
_FEWEST_CALLS = 3
_MOST_BLAMED = 3


class TooFewSteps(ValueError):
    """Too little was seen to tell whether the graph grows or forwards are wasted."""


def watch(*, root: str | os.PathLike[str] | None = None) -> Watch:
    """Return a context manager that watches the autograd graph of this process while its block runs.

    ``root``: the folder of the code whose lines and variables are named; by default all code that is not installed.

    Entering raises ImportError without torch 2.0 or newer, and RuntimeError while another watch is on: both would mark
    the same graph nodes.
    """
    return Watch(root)


class Watch:
    """What a watch sees; its figures may be read inside its block and after it. Made by :func:`watch`.

    Steps are counted by the best clock that the block shows: calls of :meth:`step`, else optimizer steps, else
    backwards, else calls of a module (at the line that calls most often), so that loops without any backward count too.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self._root = root
        self._observer: Observer | None = None
        # What was found out at the end of the block.
        self._end: Census | None = None
        self._rows: tuple[Forwards, ...] = ()

    def __enter__(self) -> Watch:
        if self._observer is not None:
            raise RuntimeError("A watch is used once; call verify.watch() again.")
        _need_torch()
        observer = self._observe()
        observer.install()
        self._observer = observer
        return self

    def _observe(self) -> Observer:
        return Observer(self._root)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        observer = self._seen
        observer.remove()
        self._rows = observer.sites()
        self._end = observer.census([*frames_of(traceback), *outward(sys._getframe(1))])

    # What was seen.

    @property
    def backwards(self) -> int:
        """How many calls of ``backward`` and ``autograd.grad`` there were."""
        return self._seen.backwards

    @property
    def steps(self) -> int:
        """How many steps there were, by the clock that :attr:`clock` names."""
        return self._seen.steps

    @property
    def clock(self) -> str:
        """What counts as a step: ``hand``, ``step`` (an optimizer's), ``backward`` or ``forward``."""
        return self._seen.unit.name.lower()

    @property
    def live(self) -> tuple[int, ...]:
        """The graph nodes alive at each step, of graphs that a backward went through; empty where none did."""
        return tuple(self._seen.live) if self._seen.backwards else ()

    @property
    def bytes(self) -> tuple[int, ...]:
        """The bytes in use at each step: of CUDA's allocator once in use, else of the C heap; empty if neither tells.

        A figure for severity only: caches and allocators grow without any leak.
        """
        return tuple(self._seen.bytes) if any(self._seen.bytes) else ()

    @property
    def leak(self) -> bool | None:
        """Whether graphs of many earlier steps are alive, or were at a look on the way; None: too few steps to tell."""
        return self._leak(self._census(sys._getframe(1)))

    @property
    def growth(self) -> float:
        """The graph nodes that a step added for good; 0.0 without a leak."""
        return self._census(sys._getframe(1)).growth

    @property
    def holders(self) -> tuple[Holder, ...]:
        """Who keeps the graphs of earlier steps alive, the largest first; empty without a leak."""
        return self._census(sys._getframe(1)).holders

    @property
    def forwards(self) -> tuple[Forwards, ...]:
        """The calls of root modules with gradients on, by line: how many, how many of them a backward used."""
        return self._seen.sites() if self._end is None else self._rows

    @property
    def wasted_forwards(self) -> tuple[Forwards, ...]:
        """Those of :attr:`forwards` that were called three times or more and never used by a backward."""
        return self._wasted(_FEWEST_CALLS)

    # What is asked of it.

    def step(self) -> None:
        """Mark the end of a step by hand; from the first call on, only these count.

        Raises RuntimeError outside the block.
        """
        if self._end is not None:
            raise RuntimeError("step() was called after the end of the watch.")
        self._seen.step(sys._getframe(1))

    def assert_flat(self, *, at_least: int = FEWEST) -> None:
        """Raise AssertionError if the graph grew, saying by how much and what holds it.

        ``at_least``: the number of steps to be seen, 8 or more. Raises TooFewSteps if there were fewer and no growth,
        and RuntimeError if the watch could not go on to the end.
        """
        __tracebackhide__ = True
        if at_least < FEWEST:
            raise ValueError(f"at_least is {at_least}; fewer than {FEWEST} steps cannot show growth")
        census = self._census(sys._getframe(1))
        self._assert_whole()
        if census.leak:
            raise AssertionError(self._grew(census))
        if self.steps < at_least:
            steps = _count(self.steps, self._seen.unit.word)
            raise TooFewSteps(
                f"{steps} seen; it takes {at_least} to tell whether the graph grows. "
                "Let the loop run longer, or mark steps with step() where neither an optimizer nor a backward does."
            )

    def assert_no_wasted_forwards(self, *, at_least: int = _FEWEST_CALLS) -> None:
        """Raise AssertionError if a line calls a module again and again for graphs that no backward uses.

        ``at_least``: calls at one line from which on it counts: a single call may only prepare something. Raises
        TooFewSteps if modules were not called that often at all, and RuntimeError if the watch could not go on to the
        end.
        """
        __tracebackhide__ = True
        if at_least < 1:
            raise ValueError(f"at_least is {at_least}; it is a number of calls, 1 or more")
        self._assert_whole()
        wasted = self._wasted(at_least)
        if wasted:
            raise AssertionError("\n".join(map(_told, wasted)))
        if self._seen.forwards < at_least:
            calls = _count(self._seen.forwards, "call")
            raise TooFewSteps(f"{calls} of modules seen; it takes {at_least} to tell whether they are wasted.")

    def report(self) -> str:
        """Return what was seen, in a few lines."""
        return self._text(self._census(sys._getframe(1)))

    def __repr__(self) -> str:
        if self._observer is None:
            return "<Watch: not started>"
        # Not inside the block: debuggers and notebooks ask at any time, and a census takes a while.
        if self._end is None:
            return f"<Watch: {_count(self.steps, self._seen.unit.word)} so far>"
        return self._text(self._end)

    def _text(self, census: Census) -> str:
        seen = self._seen
        word = seen.unit.word
        counts = [_count(self.steps, word)]
        if seen.unit is not Unit.BACKWARD:
            counts.append(_count(seen.backwards, "backward"))
        lines = [", ".join(counts)]
        leak = self._leak(census)
        if leak:
            lines.append(self._grew(census))
        elif leak is None:
            lines.append(f"too few steps to tell whether the graph grows (that takes {FEWEST} {word}s)")
        else:
            lines.append("the graph stayed flat" + (f" ({self.live[-1]} nodes alive at the last)" if self.live else ""))
        lines += map(_told, self.wasted_forwards)
        if self.bytes:
            lines.append(f"bytes in use: {self.bytes[0]:,} at the first {word}, {self.bytes[-1]:,} at the last")
        return "\n".join([*lines, *seen.notes])

    def _grew(self, census: Census) -> str:
        seen = self._seen
        growth = census.growth
        figure = f"{growth:.0f}" if growth >= 10 or growth == int(growth) else f"{growth:.1f}"
        over = _count(census.steps, seen.unit.word) + (f" ({seen.site})" if seen.site else "")
        text = f"the graph grew by {figure} node{'s' * (figure != '1')} a {seen.unit.word} over {over}"
        holders = ", ".join(map(str, census.holders[:_MOST_BLAMED]))
        return f"{text}; held by {holders}" if holders else text

    def _wasted(self, at_least: int) -> tuple[Forwards, ...]:
        return tuple(row for row in self.forwards if row.used == 0 and row.calls >= at_least)

    def _census(self, frame: FrameType) -> Census:
        """The census of the end, or while the block runs of now; ``frame`` is whose variables to look at."""
        return self._seen.census(outward(frame)) if self._end is None else self._end

    def _leak(self, census: Census) -> bool | None:
        if census.leak:
            return True
        return None if self.steps < FEWEST or self._seen.notes else False

    def _assert_whole(self) -> None:
        if self._seen.notes:
            raise RuntimeError(self._seen.notes[0])

    @property
    def _seen(self) -> Observer:
        if self._observer is None:
            raise RuntimeError("This watch never started; use it in a with statement.")
        return self._observer


def _need_torch() -> None:
    try:
        import torch
    except ImportError as error:
        raise ImportError("verify.watch needs torch 2.0 or newer, which cannot be imported.") from error
    if int(torch.__version__.partition(".")[0]) < 2:
        raise ImportError(f"verify.watch needs torch 2.0 or newer; this is {torch.__version__}.")


def _told(row: Forwards) -> str:
    where = ""
    if row.site is not None:
        where = f" at {row.site}" + ("" if row.site.function == "<module>" else f" in {row.site.function}()")
    alive = f", {row.peak} of them alive at once" if row.peak > 1 else ""
    return f"{_count(row.calls, 'forward')}{where} built a graph that no backward used{alive}; torch.no_grad() saves it"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
