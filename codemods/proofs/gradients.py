"""What becomes of the gradients of a backward: used by a step, read, or cleared before anything looks at them; and the
steps that find none.

Shared by the rules about gradients that nobody uses.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from heapq import merge
from typing import NamedTuple

from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Frame, Node, Place, Value, Walk, all_descendants
from codemods.graph.model.state import FROZEN
from codemods.graph.model.trace import Step, Trace
from codemods.proofs.blocks import suite_of
from codemods.proofs.marks import changes_gradients, clears, touches_gradients
from codemods.proofs.syntax import FUNCTIONS, ends_errors, own_nodes
from codemods.proofs.unseen import Way, leaves_sight
from codemods.source import walking


class EventKind(Enum):
    """What happens to gradients."""

    STEP = "step"
    READ = "read"
    CLEAR = "clear"


@dataclass(frozen=True, eq=False, slots=True)
class Event:
    """Something that happens to the gradients of ``leaves``.

    ``leaves`` None stands for any; a ``CLEAR`` has those that it surely clears. ``by`` is the optimizer or module.
    """

    kind: EventKind
    place: Place
    clock: int
    leaves: frozenset[Node] | None
    by: Value | None = None

    def touches(self, leaf: Node) -> bool:
        """Whether it is about the gradient of ``leaf``."""
        return self.leaves is None or leaf in self.leaves

    def clears(self, leaf: Node, event: Event) -> bool:
        """Whether it clears the gradient of ``leaf``, as far as an ``event`` that follows is concerned."""
        if self.kind is not EventKind.CLEAR or self.clock >= event.clock:
            return False
        # an optimizer clears whatever it steps with, also where the run does not know what exactly that is
        return (self.by is not None and self.by is event.by) or leaf in (self.leaves or ())


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to the gradients that one backward gives its leaves.

    ``used``: an optimizer steps with them or something reads them; ``wasted``: they are cleared before that, always;
    the others are never looked at again.
    """

    used: frozenset[Node]
    wasted: frozenset[Node]
    clears: tuple[Event, ...]


class Lives:
    """The gradients of one run, from each backward to what ends them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._fates: dict[int, Fate] = {}
        self._orders: dict[tuple[int, int], bool] = {}

    @cached_property
    def events(self) -> list[Event]:
        """All steps, reads and clears, in order."""
        found: list[Event] = []
        for step in self.trace.steps:
            owned = step.owned
            leaves = None if owned is None or owned.more else frozenset(owned.leaves)
            found.append(Event(EventKind.STEP, step.place, step.place.clock, leaves, step.optimizer))
        for mark in self.trace.marks:
            of = None if mark.of is None else frozenset(mark.of)
            if touches_gradients(mark):
                found.append(Event(EventKind.READ, mark.place, mark.place.clock, of))
            elif clears(mark) and _to_none(mark.place.node):
                surely = of if of is not None and mark.exact else frozenset()
                found.append(Event(EventKind.CLEAR, mark.place, mark.place.clock, surely, mark.by))
        return sorted(found, key=lambda event: event.clock)

    def fate(self, walk: Walk) -> Fate:
        """What becomes of the gradients that ``walk`` leaves behind."""
        known = self._fates.get(id(walk))
        if known is not None:
            return known
        first = bisect_right(self.events, walk.place.clock, key=lambda event: event.clock)
        used: set[Node] = set()
        wasted: set[Node] = set()
        clears: list[Event] = []
        alike: dict[int, tuple[bool, Event | None]] = {}
        for leaf in (node for node in walk.seen if node.leaf):
            about = self._about.get(leaf, 0)
            if about not in alike:
                alike[about] = self._ends(leaf, first)
            is_used, cleared = alike[about]
            if is_used:
                used.add(leaf)
            elif cleared is not None:
                wasted.add(leaf)
                clears.append(cleared)
        fate = Fate(frozenset(used), frozenset(wasted), tuple(dict.fromkeys(clears)))
        self._fates[id(walk)] = fate
        return fate

    @cached_property
    def _about(self) -> dict[Node, int]:
        """A number for each leaf that events name: what the same events name has the same one, and the same fate."""
        found: dict[Node, list[int]] = {}
        for i, event in enumerate(self.events):
            for leaf in event.leaves or ():
                found.setdefault(leaf, []).append(i)
        numbers: dict[tuple[int, ...], int] = {}
        return {leaf: numbers.setdefault(tuple(named), len(numbers) + 1) for leaf, named in found.items()}

    @cached_property
    def _clearing(self) -> dict[Node | Value | None, list[int]]:
        """The positions of all clears, by the leaves that each surely clears and by what it is of."""
        found: dict[Node | Value | None, list[int]] = defaultdict(list)
        for i, event in enumerate(self.events):
            if event.kind is EventKind.CLEAR:
                for one in (event.by, *(event.leaves or ())):
                    found[one].append(i)
        return found

    def _ends(self, leaf: Node, first: int) -> tuple[bool, Event | None]:
        """Whether one of the events from the ``first`` on uses the gradient of a leaf; if not, what clears it before a
        step."""
        cleared: Event | None = None
        for event in self.events[first:]:
            if event.kind is EventKind.CLEAR or not event.touches(leaf):
                continue
            clear = self._cleared_before(leaf, event, first)
            if clear is None:
                return True, None
            if event.kind is EventKind.STEP:
                cleared = cleared or clear
        return False, cleared

    def _cleared_before(self, leaf: Node, event: Event, first: int) -> Event | None:
        """The first clear of a leaf's gradient, from the ``first`` event on, that surely comes before an event."""
        known = (self._clearing.get(leaf, ()), self._clearing.get(event.by, ()) if event.by is not None else ())
        for i in merge(*(positions[bisect_left(positions, first) :] for positions in known)):
            clear = self.events[i]
            if clear.clock >= event.clock:
                return None
            if clear.clears(leaf, event) and self._before(clear, event):
                return clear
        return None

    def _before(self, first: Event, then: Event) -> bool:
        key = (id(first), id(then))
        if key not in self._orders:
            self._orders[key] = always_before(first.place, then.place)
        return self._orders[key]

    @staticmethod
    def doubtful(walk: Walk) -> frozenset[Node]:
        """The leaves of a walk that may be frozen: whether they get gradients cannot be seen."""
        return frozenset(n for n in walk.seen if n.leaf and walk.cells.get((-n.birth, FROZEN)) not in (None, False))


def _to_none(node: ast.AST) -> bool:
    """Whether a ``zero_grad`` leaves no gradients, and not zeros, which an optimizer would step with."""
    if not isinstance(node, ast.Call):
        return True
    given = [k.value for k in node.keywords if k.arg == "set_to_none"] + node.args
    return all(isinstance(value, ast.Constant) and value.value is True for value in given)


def always_before(first: Place, then: Place) -> bool:
    """Whether every path to ``then`` passes ``first`` in the same turn of their loops.

    ``first`` must come earlier in the run; the question is whether it could have been skipped.
    """
    mine, other = first.chain()[::-1], then.chain()[::-1]
    depth = 0
    while depth + 1 < min(len(mine), len(other)) and mine[depth + 1].frame is other[depth + 1].frame:
        depth += 1
    if mine[depth].frame is not other[depth].frame:
        return False
    if any(not _unconditional(place) for place in mine[depth + 1 :]):
        return False
    return _earlier(mine[depth], other[depth])


def _earlier(first: Place, then: Place) -> bool:
    """The same for two places of one frame."""
    file = first.frame.file
    statement, target = first.statement, then.statement
    if statement is None or target is None:
        return False
    outer = set(file.outward(target, *FUNCTIONS))
    current: ast.stmt = statement
    while True:
        suite = suite_of(file, current)
        following = [s for s in suite if s is target or s in outer]
        if following:
            loops = [loop for loop, _ in first.loops if loop in outer and loop is not current]
            mine = [pair for pair in first.loops if pair[0] in loops]
            theirs = [pair for pair in then.loops if pair[0] in loops]
            return mine == theirs and suite.index(current) < suite.index(following[0])
        parent = file.parent(current)
        if not _transparent(parent, current) or not isinstance(parent, ast.stmt):
            return False
        current = parent


def _unconditional(place: Place) -> bool:
    """Whether every call of the function around ``place`` comes through it."""
    file = place.frame.file
    current: ast.AST | None = place.statement
    if current is None:
        return isinstance(place.frame.definition, ast.Lambda)
    while current is not None:
        parent = file.parent(current)
        if parent is None or isinstance(parent, FUNCTIONS):
            break
        if not _transparent(parent, current):
            return False
        current = parent
    definition = place.frame.definition
    if definition is None:
        return True
    line = place.statement.lineno if place.statement is not None else 0
    return not any(isinstance(n, ast.Return) and n.lineno < line for n in own_nodes(walking.children(definition)))


def _transparent(parent: ast.AST | None, child: ast.AST) -> bool:
    """Whether entering ``parent`` always reaches ``child``: a ``with``, or a loop that only clears."""
    if isinstance(parent, (ast.With, ast.AsyncWith)):
        return not ends_errors(parent)
    if isinstance(parent, ast.For) and child in parent.body:
        # the run has seen what it goes through; that it may be empty is not what such loops are written for
        return not any(isinstance(n, (ast.If, ast.Continue, ast.Break, ast.Try)) for n in walking.walk(parent))
    return False


def holds(expression: ast.expr, frame: Frame, node: Node) -> bool:
    """Whether an expression, evaluated in ``frame``, gave the value that ``node`` stands for."""
    if isinstance(expression, ast.Name):
        owners = {CarrierKind.LOCAL: frame.fid, CarrierKind.GLOBAL: frame.module_globals}
        return any(
            c.name == expression.id
            and (owners.get(c.kind) == c.owner or (c.kind is CarrierKind.LOCAL and frame.function is not None
                                                   and c.owner == frame.function.closure))
            for c, _ in node.stores
        )  # fmt: skip
    if isinstance(expression, ast.Attribute) and any(
        c.kind is CarrierKind.ATTRIBUTE and c.name == expression.attr for c, _ in node.stores
    ):
        return True
    if isinstance(expression, ast.Subscript) and node in frame.took.get(expression, ()):
        return True
    return any(place.node is expression and place.frame is frame for place in node.place.chain())


def inside(node: Node, call: Place) -> bool:
    """Whether a node was made while the call at ``call`` ran (or by the operation there)."""
    return any(
        place.node is call.node and place.frame is call.frame and place.loops == call.loops
        for place in node.place.chain()
    )


def leaf_masks(seen: Iterable[Node], bits: dict[Node, int]) -> dict[int, int]:
    """For each node, the marked leaves that it was computed from."""
    masks: dict[int, int] = {}
    for node in sorted(seen, key=lambda n: n.birth):
        mask = bits.get(node, 0)
        for parent in node.parents:
            mask |= masks.get(id(parent), 0)
        masks[id(node)] = mask
    return masks


MAY_WALK = (Way.ESCAPED, Way.STORED, Way.CALL)
"""How a graph gets to where a backward may go through it that nobody sees."""


class IdleStep(NamedTuple):
    """A step that finds no gradient of a parameter that it owns, and the moment from which on it found none: that of
    the last step of one of them, or the beginning."""

    step: Step
    since: int

    def meant(self, until: int) -> list[Node]:
        """What was computed of its parameters since then, up to a moment."""
        return [n for n in all_descendants(self.step.leaves or ()) if self.since < n.birth < until]


def idle_steps(trace: Trace) -> Iterator[IdleStep]:
    """Each idle step. Steps of unseen parameters are no such, nor are those before which gradients are assigned."""
    given: dict[Node, list[int]] = defaultdict(list)
    for walk in trace.walks:
        for node in walk.seen:
            if node.leaf:
                given[node].append(walk.place.clock)
    by_hand = [m for m in trace.marks if changes_gradients(m) and not isinstance(m.place.node, ast.Call)]
    last: dict[Node, int] = {}
    for step in sorted(trace.steps, key=lambda step: step.place.clock):
        clock, leaves = step.place.clock, step.leaves or ()
        since = max((last.get(leaf, 0) for leaf in leaves), default=0)
        walked = any(bisect_left(given[leaf], clock) > bisect_right(given[leaf], since) for leaf in leaves)
        if leaves and not walked and not any(since < m.place.clock < clock for m in by_hand):
            yield IdleStep(step, since)
        last.update(dict.fromkeys(leaves, clock))


def meant_for_idle_steps(trace: Trace) -> Iterator[Node]:
    """What was computed of the parameters of an idle step since the one before it; nothing where code that cannot be
    seen got some of it, and may have gone back through it."""
    for idle in idle_steps(trace):
        made = idle.meant(idle.step.place.clock)
        if not leaves_sight(made, MAY_WALK):
            yield from made
