"""Changes of parameters that come between the forward of a loss and its backward."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codemods.graph.model.kinds import WalkKind
from codemods.graph.model.nodes import Frame, Node, Place, Walk
from codemods.graph.model.opacity import opaque
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Step, Trace
from codemods.proofs.blocks import Turns, common_suite, common_turns, meeting, suites_around
from codemods.proofs.marks import clearings, writes_parameters
from codemods.proofs.paired_flags import Late
from codemods.proofs.reach import reaches_one_of
from codemods.proofs.saving import reads_value


@dataclass(eq=False)
class Group:
    """Changes of parameters that come too early for walks, as one suite sees them in one turn."""

    frame: Frame
    turns: Turns
    suite: list[ast.stmt]
    early: dict[int, tuple[Step | Mark, int, ast.stmt]] = field(default_factory=dict)
    late: dict[int, tuple[Walk, int]] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)

    def first(self) -> tuple[Walk, Node]:
        """The earliest walk that comes too late, with the newest node on it that needs an old value."""
        walk = min((w for w, _ in self.late.values()), key=lambda w: w.place.clock)
        mine = {id(n) for n in walk.seen}
        return walk, max((n for n in self.nodes.values() if id(n) in mine), key=lambda n: n.birth)

    def changes(self) -> list[tuple[Step | Mark, ast.stmt]]:
        """The changes, each with its statement in the suite's frame."""
        return [(change, statement) for change, _, statement in self.early.values()]


def early_changes(trace: Trace) -> dict[Any, Group]:
    """The changes that come before a walk which needs the old values, by frame, suite and turns."""
    changes = trace.once(changes_of)
    groups: dict[Any, Group] = {}
    for walk in trace.walks if changes else ():
        late: dict[int, list[tuple[Node, Step | Mark]]] = defaultdict(list)
        for node in walk.seen:
            for leaf in node.parents:
                for change in reversed(changes.get(id(leaf), ())) if leaf.leaf else ():
                    if change.place.clock < node.birth:
                        break
                    if change.place.clock < walk.place.clock and reads_value(node, leaf):
                        late[id(change)].append((node, change))
        if not late or any(
            w.kind is WalkKind.BACKWARD and set(w.roots) == set(walk.roots) and w.place.clock < walk.place.clock
            for w in walk.roots[0].walks
        ):
            # the same loss walked once more is a repeated backward
            continue
        found = list(late.values())
        for pairs, sure in zip(found, reaches_one_of(walk, [[n for n, _ in pairs] for pairs in found]), strict=True):
            for node, change in pairs if sure else ():
                _add(groups, node, change, walk)
    return groups


def late(trace: Trace, earlier: Walk, walk: Walk, gone: Collection[int] | None = None) -> list[Late]:
    """Why ``walk`` comes too late after ``earlier`` and will not once ``gone`` are taken away from it: what frees, or
    changes, what it needs, as plain data.

    ``gone`` are nodes by their ``id``, by default all that ``earlier`` came through.
    """
    gone = {id(node) for node in earlier.seen} if gone is None else gone
    causes = {earlier.place} if earlier.retains is False else set()
    readers = trace.once(_Readers).of(walk)
    left = {change.place for node, change in readers if id(node) not in gone}
    causes |= {change.place for _, change in readers} - left
    site = (walk.place.path, walk.place.line)
    return [(site, (cause.path, cause.line)) for cause in sorted(causes, key=lambda place: place.clock)]


class _Readers:
    """What each walk of a run comes through that needs parameters as they were, with what has changed them since."""

    def __init__(self, trace: Trace) -> None:
        self._changes = trace.once(changes_of)
        self._known: dict[Walk, list[tuple[Node, Step | Mark]]] = {}

    def of(self, walk: Walk) -> list[tuple[Node, Step | Mark]]:
        if walk not in self._known:
            self._known[walk] = list(changed_before(walk, self._changes))
        return self._known[walk]


def changed_before(walk: Walk, changes: Mapping[int, Sequence[Step | Mark]]) -> Iterator[tuple[Node, Step | Mark]]:
    """What ``walk`` comes through that needs parameters as they were, each with what has changed them since.

    ``changes`` are those of :func:`changes_of`.
    """
    for node in walk.seen if changes else ():
        for parent in node.parents:
            for change in changes.get(id(parent), ()) if parent.leaf else ():
                if node.birth < change.place.clock < walk.place.clock and reads_value(node, parent):
                    yield node, change


def refused(nodes: Iterable[Node], since: Place, changes: Mapping[int, Sequence[Step | Mark]]) -> bool:
    """Whether a backward through ``nodes`` is most likely refused when the call that ``since`` is part of has returned:
    parameters that it needs are changed in that call, after ``since``.

    ``changes`` are those of :func:`changes_of`.
    """
    outermost = since.chain()[-1].frame
    return any(
        max(node.birth, since.clock) < change.place.clock and change.place.chain()[-1].frame is outermost
        for node in nodes
        for leaf in node.parents
        if leaf.leaf and (reads_value(node, leaf) or opaque(node))
        for change in changes.get(id(leaf), ())
    )


def stepped(trace: Trace, first: Walk, then: Walk) -> set[Node]:
    """The parameters that optimizers change between two walks so that a backward notices."""
    between = (s for s in trace.steps if first.place.clock < s.place.clock < then.place.clock and not s.unnoticed)
    return {leaf for step in between for leaf in step.leaves or ()}


def changes_of(trace: Trace) -> dict[int, list[Step | Mark]]:
    """The steps and writes that surely change each leaf, by its ``id``, in order."""
    cleared = [(m.place.clock, None if m.leaves is None else frozenset(m.leaves)) for m in clearings(trace)]
    cleared.sort(key=lambda entry: entry[0])
    moments = [clock for clock, _ in cleared]
    changes: dict[int, list[Step | Mark]] = defaultdict(list)
    filled: dict[Node, list[int]] = {}
    for step in trace.steps:
        for leaf in (step.leaves or ()) if not step.unnoticed else ():
            clock = step.place.clock
            if leaf not in filled:
                filled[leaf] = sorted(w.place.clock for w in leaf.walks if w.kind is WalkKind.BACKWARD)
            before = bisect_left(filled[leaf], clock)
            if before and not any(
                leaves is None or leaf in leaves
                for _, leaves in cleared[bisect_right(moments, filled[leaf][before - 1]) : bisect_left(moments, clock)]
            ):
                changes[id(leaf)].append(step)
    for mark in trace.marks:
        if writes_parameters(mark):
            for leaf in mark.leaves or ():
                changes[id(leaf)].append(mark)
    for found in changes.values():
        found.sort(key=lambda change: change.place.clock)
    return changes


def _add(groups: dict[Any, Group], node: Node, change: Step | Mark, walk: Walk) -> None:
    met = meeting(change.place, walk.place)
    if met is None:
        return
    early, late = met
    turns = common_turns(early, late)
    if turns is None or early.statement is None or late.statement is None:
        return
    frame = early.frame
    if not _same_turn(node.place, early, frame, turns):
        return
    found = common_suite(frame.file, early.statement, late.statement)
    if found is None:
        return
    suite, i, j = found
    if i >= j or (_nested(change.place, early, suite) and _nested(walk.place, late, suite)):
        return
    if _leaves(frame.file, early.statement, suite):
        return
    key = (frame.fid, id(suite), turns)
    group = groups.setdefault(key, Group(frame, turns, suite))
    group.early.setdefault(id(change), (change, i, early.statement))
    group.late.setdefault(id(walk), (walk, j))
    group.nodes.setdefault(id(node), node)


def _same_turn(made: Place, early: Place, frame: Frame, turns: Turns) -> bool:
    """Whether an operation ran in the same turn of all loops around the change and the walk, and not beside it."""
    met = meeting(made, early)
    if met is None:
        return False
    mine, theirs = met
    if mine.frame is frame:
        if mine.loops[: len(turns)] != turns:
            return False
    elif mine.loops[: len(theirs.loops)] != theirs.loops:
        return False
    if mine.statement is None or theirs.statement is None or mine.statement is theirs.statement:
        return mine.statement is theirs.statement
    found = common_suite(mine.frame.file, mine.statement, theirs.statement)
    return found is not None and not (_nested(made, mine, found[0]) and _nested(early, theirs, found[0]))


def _nested(place: Place, outer: Place, suite: list[ast.stmt]) -> bool:
    """Whether something runs only under a condition, seen from a suite of the frame of ``outer``."""
    for at in place.chain():
        statement = at.statement
        if statement is None:
            return True
        for around, index in suites_around(at.frame.file, statement):
            if around is suite:
                return not (around[index] is statement or isinstance(around[index], (ast.With, ast.AsyncWith)))
            if around[index] is not statement and not isinstance(around[index], (ast.With, ast.AsyncWith)):
                return True
        if at is outer:
            break
    return False


def _leaves(file: ParsedFile, statement: ast.stmt, suite: list[ast.stmt]) -> bool:
    """Whether what holds a statement leaves a suite after it: ``if warm_up: ...; optimizer.step(); continue``."""
    for around, index in suites_around(file, statement):
        if around is suite:
            return False
        if any(isinstance(s, (ast.Return, ast.Continue, ast.Break, ast.Raise)) for s in around[index + 1 :]):
            return True
    return False
