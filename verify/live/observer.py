"""The counts behind :func:`verify.watch`: those of the probe, taken in this process and kept in memory."""

from __future__ import annotations

import contextlib
import enum
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from verify.live.usercode import UserCode
from verify.measured.records import Forwards
from verify.measured.values import Site
from verify.probe.graph.backward import Backwards, Call
from verify.probe.graph.forwards import Forwards as ModuleCalls
from verify.probe.graph.growth import Growth
from verify.probe.graph.nodes import Graph, leaks, old
from verify.probe.graph.steps import Calls, Steps
from verify.probe.guarding import compiling
from verify.probe.guarding.guard import Clock, Part
from verify.probe.lines.sites import key
from verify.probe.state.memory import Memory

if TYPE_CHECKING:
    from verify.probe.doctor import Doctor

#: Fewer steps cannot show growth: the first and the last ones hold graphs for good reasons.
FEWEST = next(steps for steps in itertools.count(1) if leaks(range(steps), steps))


class Unit(enum.IntEnum):
    """What counts as a step. A better one takes over from a worse one when it first occurs."""

    FORWARD = 0
    BACKWARD = 1
    STEP = 2
    HAND = 3

    @property
    def word(self) -> str:
        return "step" if self >= Unit.STEP else self.name.lower()


class Holder(NamedTuple):
    """A variable that keeps old graphs alive.

    ``name`` leads to the tensors (``losses[*]``: elements of ``losses``), ``function`` is where the variable stands,
    ``<module>`` for a global. ``nodes`` are the graph nodes behind its ``tensors``, which were made in ``births``
    different steps of the middle of the run.
    """

    name: str
    function: str
    nodes: int
    births: int
    tensors: int

    def __str__(self) -> str:
        tensors = f"({self.tensors} tensor{'s' * (self.tensors != 1)})"
        if not self.function:
            return f"{self.name} {tensors}"
        where = "at module level" if self.function == "<module>" else f"in {self.function}()"
        return f"`{self.name}` {where} {tensors}"


class Census(NamedTuple):
    """The graph nodes alive after ``steps`` steps, ``{step: nodes made in it}``; holders only if it is a leak."""

    steps: int
    ages: dict[int, int]
    leak: bool
    holders: tuple[Holder, ...]

    @property
    def growth(self) -> float:
        """The nodes that a step in the middle added for good; 0.0 without a leak."""
        if not self.leak:
            return 0.0
        middle = [self.ages.get(birth, 0) for birth in range(self.steps) if old([birth], self.steps)]
        return float(sum(middle)) / len(middle)


class Observer:
    """Counts between ``install`` and ``remove``; ``root`` as :class:`UserCode` takes it.

    ``notes`` says what went wrong in here, which never becomes an error of the observed code; from then on nothing is
    counted.
    """

    def __init__(self, root: str | os.PathLike[str] | None, *, told: list[dict[str, Any]] | None = None) -> None:
        self.unit = Unit.FORWARD
        #: The innermost line of the user's at which the last step ended.
        self.site: Site | None = None
        self.backwards = 0
        self.forwards = 0
        self.live: list[int] = []
        self.bytes: list[int] = []
        self.notes: list[str] = []
        self._part = Part("the graph", lambda event: self.notes.append(event["text"]), Clock())
        self._tree = UserCode(root)
        self._graph = Graph()
        self._growth = Growth(self._graph, self._tree, full=True)
        self._memory = Memory()
        self._calls = Calls()
        self._most = 0
        self._backward = Backwards(self._before, self._after)
        self._modules = ModuleCalls(self._tree.site, lambda: self._backward.running > 0, self._failed, self._called)
        self._undo = contextlib.ExitStack()
        self._steppers: list[weakref.ref[Any]] = []
        self._doctor: Doctor | None = None
        #: Called once with the frame in which a step has ended, when graphs were seen to pile up.
        self.noticed: Callable[[FrameType | None], None] | None = None
        if told is not None:
            from verify.probe.doctor import Doctor

            self._doctor = Doctor({}, self._tree, told.append, Clock(), self, self._growth)

    @property
    def steps(self) -> int:
        """How many steps there were, by the clock that ``unit`` names."""
        return self._graph.cuts

    def install(self) -> None:
        """Hook up to torch. Raises RuntimeError while another observer is."""
        with contextlib.ExitStack() as undo:
            _take(self)
            undo.callback(_release, self)
            for hooks in (self._backward, Steps(self._stepped, self._begun), self._modules):
                undo.callback(hooks.remove)
                hooks.install()
            if self._doctor is not None:
                undo.callback(self._doctor.remove)
                self._doctor.install()
            for module in ("verify.probe", UserCode.__module__, __name__):
                compiling.hide(module)
            self._undo = undo.pop_all()

    def remove(self) -> None:
        """Leave torch as it was."""
        self._undo.close()

    def step(self, frame: FrameType) -> None:
        """A step that was marked by hand ends in ``frame``."""
        with self._part:
            self._tick(Unit.HAND, frame)

    def census(self, frames: Iterable[FrameType]) -> Census:
        """The census of now, or of an earlier step where graphs piled up that are gone now.

        ``frames``, the innermost first, are those whose variables may be named.
        """
        mine = [frame for frame in frames if self._tree.relative(frame.f_code.co_filename) is not None]
        with self._part:
            event = self._growth.census(list(dict.fromkeys(mine)))
            holders = tuple(Holder(*(holder[name] for name in Holder._fields)) for holder in event["holders"])
            return Census(event["boundaries"], event["ages"], event["leak"], holders)
        return Census(self.steps, {}, False, ())

    def sites(self) -> tuple[Forwards, ...]:
        """The calls of root modules with gradients on, by line."""
        return tuple(
            Forwards(None if row["site"] is None else Site(*row["site"]), row["calls"], row["used"], row["peak"])
            for row in self._modules.sites()
        )

    def finish(self, frames: list[FrameType]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The events of the end, as :mod:`verify.measured.events` knows them: the census, and the calls of modules.

        What the doctor sees at the end is told too.
        """
        mine = [frame for frame in frames if self._tree.relative(frame.f_code.co_filename) is not None]
        census = self._growth.census(mine)
        if self._doctor is not None:
            self._doctor.end(mine)
        return census, {"event": "forwards", "sites": self._modules.sites()}

    def living(self) -> list[tuple[int, Any]]:
        """See :class:`verify.probe.doctor.Living`: those that have stepped."""
        found = [(number, one()) for number, one in enumerate(self._steppers)]
        return [(number, optimizer) for number, optimizer in found if optimizer is not None]

    @property
    def worst(self) -> dict[str, Any] | None:
        """The census event of a look on the way at which graphs had piled up."""
        return self._growth.worst

    def where(self, traceback: TracebackType | None) -> Any:
        """The innermost line of the user's in ``traceback``."""
        return self._tree.traceback_site(traceback)

    @property
    def root(self) -> str:
        """The folder that paths are relative to."""
        return self._tree.folder

    # What happens in between.

    def _tell(self, what: str, *args: Any) -> None:
        if self._doctor is not None:
            self._part.attempt(lambda: getattr(self._doctor, what)(*args))

    def _before(self, call: Call) -> None:
        self._part.attempt(lambda: self._graph.walk(call.outputs))
        self._tell("before", call, self._tree.site(call.frame))

    def _begun(self, optimizer: Any, index: int, count: int) -> None:
        if index == len(self._steppers):
            self._steppers.append(weakref.ref(optimizer))
        self._tell("begun", optimizer, index)

    def _after(self, call: Call) -> None:
        self._tell("after", call, self._tree.site(call.frame))
        if call.error is None and self._part.on:
            with self._part:
                self.backwards += 1
                if call.create:
                    # It is to be differentiated, so it is in the middle of a step: inner loops, gradient penalties.
                    self._switch(Unit.BACKWARD)
                else:
                    self._tick(Unit.BACKWARD, call.frame)

    def _stepped(self, optimizer: Any, index: int, count: int, frame: FrameType | None) -> None:
        self._tell("stepped", index, self._tree.site(frame), frame)
        if self._part.on:
            with self._part:
                self._modules.rewind()
                self._tick(Unit.STEP, frame)

    def _called(self, frame: FrameType) -> None:
        self.forwards += 1
        if self.unit is Unit.FORWARD and self._part.on:
            with self._part:
                calls = self._calls.count(key(self._tree.site(frame)))
                # Of several lines that call modules, the busiest is the clock.
                if calls > self._most:
                    self._most = calls
                    self._tick(Unit.FORWARD, frame)

    def _switch(self, unit: Unit) -> None:
        """Count ``unit`` from now on, and anew, if it is the better clock."""
        if unit > self.unit:
            self.unit = unit
            self._growth.restart()
            self.live.clear()
            self.bytes.clear()

    def _tick(self, unit: Unit, frame: FrameType | None) -> None:
        self._switch(unit)
        if unit < self.unit:
            return
        site = self._tree.site(frame)
        self.site = None if site is None else Site(str(site[0]), int(site[1]), str(site[2]))
        self.live.append(self._graph.live())
        # Not the peak: it would take a reset, and that of CUDA is the user's to reset.
        self.bytes.append(self._memory.look()[0])
        self._growth.cut(frame)
        if self.noticed is not None and self._growth.worst is not None:
            noticed, self.noticed = self.noticed, None
            noticed(frame)

    def _failed(self, error: Exception) -> None:
        self._part.on = False
        self._part.note(error)


_lock = threading.Lock()
_current: Observer | None = None


def _take(observer: Observer) -> None:
    global _current
    with _lock:
        if _current is not None:
            raise RuntimeError("Another watch is on in this process; only one at a time can mark the graph.")
        _current = observer


def _release(observer: Observer) -> None:
    global _current
    with _lock:
        if _current is observer:
            _current = None
