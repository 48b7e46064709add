"""The rule ``step-between-backwards``."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codemods.edits.model import Edit, MoveStatement
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.graph import facts
from codemods.graph.program import ParsedFile
from codemods.graph.trace import Frame, Mark, Place, Step, Trace, Walk
from codemods.graph.values import Node
from codemods.rules._blocks import (
    Turns,
    bound,
    common_suite,
    common_turns,
    deeds,
    leaves_suite,
    looks_only,
    meeting,
    read,
    suites_around,
)
from codemods.rules._graphs import reaches_one_of, reads_value
from codemods.rules.base import Decision, Observation, Rule, Site, sites, station

_WRITES = ("parameter-changed", "parameters-loaded")
"""Marks of what writes parameters in place other than an optimizer."""

_READERS = ("grad-read", "graph-read", "functional-gradient", "hook", "module-hook")
"""Marks of what looks at gradients, or runs once per backward."""


class StepBetweenBackwards(Rule):
    """A loss is built through parameters, these are stepped, and only then is the loss back-propagated.

    Why it hurts: An optimizer changes its parameters in place. A graph that was built through them has kept the old
    values for its backward, and autograd notices: ``one of the variables needed for gradient computation has been
    modified by an inplace operation`` since PyTorch 1.5; older versions silently computed a gradient that belongs to no
    parameters that ever were. In a GAN the loss of the generator runs through the discriminator, in actor-critic
    methods the loss of the policy runs through the critics: where these step first, its backward comes too late. No
    intermediate need be shared for that.

    The rewrite: the first of these that is sound:

    1. *Swap the update blocks*: ``zero_grad``, ``backward`` and ``step`` of the later loss go first. Both gradients are
       then taken at the same parameters. Only where the two share neither parameters nor graph, and each clears its
       gradients before its own backward, so that none mix.
    2. *Build the later loss after the step*: the statements that build it move behind the step, where nothing between
       reads what they make and no order of random numbers changes.

    Advice: where neither is sound, the finding says what stands in the way. Moving only the ``step`` is almost never
    sound: the second backward adds to the gradients of the first.

    Left alone: a loss that was built after the step; a parameter whose value the later backward does not read (a bias,
    the first layer on plain input, an embedding); a step whose parameters got no gradient; a graph that an earlier turn
    left behind (that is a carried state, a stored graph or a loss that is never reset).

    Promise: repair. The original raises at the backward that comes too late; the rewritten program takes both gradients
    at the parameters that their losses were computed from, or builds the later loss anew from the new ones.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
    """

    name = "step-between-backwards"
    promise = Promise.REPAIR
    summary = "an optimizer steps between the forward of a loss and its backward"
    gate = (b".step(", b".backward(")

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or not trace.walks:
            return
        for group in _groups(trace).values():
            yield from self._judge(trace, group)

    def _judge(self, trace: Trace, group: _Group) -> Iterator[Observation]:
        fix, why = _Remedy(trace, group).find()
        file = group.frame.file
        walk, node = group.first()
        for change, statement in group.changes():
            yield self.seen(
                file,
                statement,
                "step",
                "fault" if fix else "advice",
                fix=fix,
                why=why,
                writes=isinstance(change, Mark),
                built=(node.place.path, node.place.line),
                late=(walk.place.path, walk.place.line),
                others=sorted({s.lineno for _, s in group.changes()} - {statement.lineno}),
            )

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        for site in sites(observations, "step"):
            if decision.files(site.path) is not None:
                yield self._finding(site)

    def _finding(self, site: Site) -> Finding:
        first = site.observations[0].facts
        fixes = [o.facts["fix"] for o in site.observations]
        fix = fixes[0] if all(f == fixes[0] for f in fixes) else None
        late_path, late_line = first["late"]
        trail = (
            station(first["built"], "graph produced here, from parameters"),
            TrailStep(site.path, site.span.line, "these parameters are changed in place here"),
            TrailStep(late_path, late_line, "walked here, where their old values are needed"),
        )
        doer = "this write changes" if first["writes"] else "this step changes"
        message = (
            f"{doer} parameters in place through which the loss of line {late_line} was built before: its backward "
            "needs their old values and raises"
        )
        edits: tuple[tuple[str, Edit], ...] = ()
        partners: tuple[tuple[str, str, int], ...] = ()
        if fix is None:
            why = next((o.facts["why"] for o in site.observations if o.facts["why"]), "")
            message += f"; {why}" if why else ""
            remedy = "back-propagate every loss before the first step, or build the later loss after it"
            return Finding(self.name, site.path, site.span, Promise.ADVICE, message, remedy, trail)
        edits = tuple((site.path, MoveStatement(Span(*t), Span(*a), w, n)) for t, a, w, n in fix["moves"])
        partners = tuple((self.name, site.path, line) for line in first["others"])
        return Finding(self.name, site.path, site.span, Promise.REPAIR, message, fix["remedy"], trail, edits, partners)


# reading a run


@dataclass(eq=False)
class _Group:
    """Changes of parameters that come too early for walks, as one suite sees them in one turn."""

    frame: Frame
    turns: Turns
    suite: list[ast.stmt]
    early: dict[int, tuple[Step | Mark, int, ast.stmt]] = field(default_factory=dict)
    late: dict[int, tuple[Walk, int]] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)

    def first(self) -> tuple[Walk, Node]:
        walk = min((w for w, _ in self.late.values()), key=lambda w: w.place.clock)
        mine = {id(n) for n in walk.seen}
        return walk, max((n for n in self.nodes.values() if id(n) in mine), key=lambda n: n.birth)

    def changes(self) -> list[tuple[Step | Mark, ast.stmt]]:
        return [(change, statement) for change, _, statement in self.early.values()]


def _groups(trace: Trace) -> dict[Any, _Group]:
    changes = _changes(trace)
    groups: dict[Any, _Group] = {}
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
            w.kind == "backward" and set(w.roots) == set(walk.roots) and w.place.clock < walk.place.clock
            for w in walk.roots[0].walks
        ):
            # the same loss walked once more is a repeated backward
            continue
        found = list(late.values())
        for pairs, sure in zip(found, reaches_one_of(walk, [[n for n, _ in pairs] for pairs in found]), strict=True):
            for node, change in pairs if sure else ():
                _add(groups, node, change, walk)
    return groups


def _changes(trace: Trace) -> dict[int, list[Step | Mark]]:
    """The steps and writes that surely change each leaf."""
    clearings = [m for m in trace.marks if m.kind == "zero_grad"]
    changes: dict[int, list[Step | Mark]] = defaultdict(list)
    for step in trace.steps:
        for leaf in step.leaves or ():
            clock = step.place.clock
            filled = [w.place.clock for w in leaf.walks if w.kind == "backward" and w.place.clock < clock]
            if filled and not any(
                filled[-1] < m.place.clock < clock and (m.leaves is None or leaf in m.leaves) for m in clearings
            ):
                changes[id(leaf)].append(step)
    for mark in trace.marks:
        if mark.kind in _WRITES:
            for leaf in mark.leaves or ():
                changes[id(leaf)].append(mark)
    for found in changes.values():
        found.sort(key=lambda change: change.place.clock)
    return changes


def _add(groups: dict[Any, _Group], node: Node, change: Step | Mark, walk: Walk) -> None:
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
    group = groups.setdefault(key, _Group(frame, turns, suite))
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
    """Whether what holds a statement leaves a suite behind it: ``if warm_up: ...; optimizer.step(); continue``."""
    for around, index in suites_around(file, statement):
        if around is suite:
            return False
        if any(isinstance(s, (ast.Return, ast.Continue, ast.Break, ast.Raise)) for s in around[index + 1 :]):
            return True
    return False


# remedies


class _Remedy:
    """Looks for a sound rewrite: which statements move where."""

    def __init__(self, trace: Trace, group: _Group) -> None:
        self.trace = trace
        self.group = group
        self.suite = group.suite
        self.file: ParsedFile = group.frame.file
        self.why = ""

    def find(self) -> tuple[dict[str, Any] | None, str]:
        """The first remedy that is sound as plain data, or None and what stands in the way."""
        changes = [c for c, _, _ in self.group.early.values()]
        if any(isinstance(c, Mark) for c in changes):
            return None, "the write may not move"
        if any(w.kind != "backward" for w, _ in self.group.late.values()):
            return None, "autograd.grad needs the old values"
        done = deeds(self.trace, self.suite, self.group.frame, self.group.turns)
        if done is None or any(m.kind in ("hook", "module-hook") for m in self.trace.marks):
            return (
                None,
                "gradient hooks run once per backward"
                if done is not None
                else "what stands between runs within a module",
            )
        self.done = done
        self.early = sorted(i for _, i, _ in self.group.early.values())
        self.late = sorted(j for _, j in self.group.late.values())
        if self.early[-1] >= self.late[0]:
            return None, "several losses and steps follow one another"
        begin, end = self._late_block()
        if end is None:
            return None, self.why
        moves = self._swap(begin, end)
        if moves is not None:
            return {"moves": moves, "remedy": "swap the update blocks: the later loss goes first"}, ""
        why = self.why
        moves = self._rebuild(begin, end)
        if moves is not None:
            return {"moves": moves, "remedy": "build the later loss after the step"}, ""
        return None, why

    def _late_block(self) -> tuple[int, int | None]:
        """From the clearing of the later loss's gradients to its step."""
        end = next((k for k in range(self.late[-1], len(self.suite)) if self.done[k].steps), None)
        if end is None:
            self.why = "the step of the later loss is not beside its backward"
            return self.late[0], None
        begin = self.late[0]
        while begin - 1 > self.early[-1] and self._only_clears(begin - 1):
            begin -= 1
        return begin, end

    def _only_clears(self, k: int) -> bool:
        done = self.done[k]
        if done.walks or done.steps or done.nodes or done.forwards or not done.marks:
            return False
        return isinstance(self.suite[k], ast.Expr) and all(m.kind == "zero_grad" for m in done.marks)

    # the first remedy

    def _swap(self, begin: int, end: int) -> list[Any] | None:
        first = self._early_block()
        if first is None:
            return None
        early, late = range(first, begin), range(begin, end + 1)
        mine = {s for k in late for s in self.done[k].steps}
        others = {s for k in early for s in self.done[k].steps}
        moved = self._leaves(mine)
        passed = self._leaves(others)
        if moved is None or passed is None:
            self.why = "what an optimizer owns cannot be seen"
            return None
        for k in (*early, *late):
            if not self._updates(k, moved, later=k >= begin):
                self.why = f"line {self.suite[k].lineno} does more than to update parameters"
                return None
        if moved & passed:
            self.why = "one parameter belongs to both optimizers"
            return None
        walks = [w for k in late for w in self.done[k].walks]
        before = [w for k in early for w in self.done[k].walks]
        if any(id(n) in moved for w in before for n in w.seen if n.leaf):
            self.why = "the earlier loss runs through the parameters that would be stepped first"
            return None
        seen = {id(n) for w in before for n in w.seen if not n.leaf}
        if any(id(n) in seen for w in walks for n in w.seen):
            self.why = "both losses share a part of the graph"
            return None
        if not self._apart(early, late):
            self.why = "one block reads what the other binds"
            return None
        clearing = self._clearings(first, early, late, moved, passed)
        if clearing is None:
            return None
        anchor = self._span(first)
        # what set the blocks apart should do so after the swap
        blank = int(self._blank_above(begin))
        moves = [[self._span(k), anchor, "before", 0] for k in (*late, *clearing)]
        moves[len(late) - 1][3] = blank
        return moves

    def _blank_above(self, k: int) -> bool:
        lines = self.file.text.splitlines()
        previous = self.suite[k - 1].end_lineno or 0
        return any(not line.strip() for line in lines[previous : self.suite[k].lineno - 1])

    def _early_block(self) -> int | None:
        """The first statement of the updates that come too early."""
        walked = [w for c, _, _ in self.group.early.values() if isinstance(c, Step) for w in self._filling(c)]
        places = [k for k, done in enumerate(self.done) if any(w in done.walks for w in walked)]
        if len({id(w) for w in walked}) != len({id(w) for k in places for w in self.done[k].walks if w in walked}):
            self.why = "the backward before the step is made elsewhere"
            return None
        first = min(places, default=None)
        if first is None:
            self.why = "the backward before the step is made elsewhere"
            return None
        while first > 0 and self._only_clears(first - 1):
            first -= 1
        return first

    def _filling(self, step: Step) -> list[Walk]:
        """The walks whose gradients a step takes."""
        owned = {id(leaf) for leaf in step.leaves or ()}
        found: list[Walk] = []
        for walk in self.trace.walks:
            if walk.place.clock < step.place.clock and any(n.leaf and id(n) in owned for n in walk.seen):
                found.append(walk)
        cleared = [
            m.place.clock
            for m in self.trace.marks
            if m.kind == "zero_grad"
            and m.place.clock < step.place.clock
            and (m.leaves is None or owned <= {id(leaf) for leaf in m.leaves})
        ]
        return [w for w in found if not cleared or w.place.clock > cleared[-1]]

    def _updates(self, k: int, moved: set[int], *, later: bool) -> bool:
        """Whether a statement only clears, back-propagates, clips, steps, looks at values or makes others of them.

        A forward between may stay where it is if it does not use the parameters ``moved`` that are now stepped before.
        """
        done, statement = self.done[k], self.suite[k]
        if leaves_suite(statement) or not isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.If)):
            return False
        if done.quiet:
            return looks_only(statement, also=frozenset() if later else facts.DATA_CALLS)
        if any(f.grad is not True for f in done.forwards) or (later and done.forwards):
            return False
        for node in done.nodes:
            if node.kind in ("call", "argument") or any(p.leaf and (later or id(p) in moved) for p in node.parents):
                return False
        # of clipping the owner is looked at later
        kinds = ("zero_grad", "gradients-changed")
        return all(m.kind in kinds and m.leaves is not None for m in done.marks)

    @staticmethod
    def _leaves(steps: Iterable[Step]) -> set[int] | None:
        found: set[int] = set()
        for step in steps:
            if step.leaves is None:
                return None
            found |= {id(leaf) for leaf in step.leaves}
        return found

    def _apart(self, early: range, late: range) -> bool:
        """Whether neither block reads or binds what the other one binds."""
        first, second = [self.suite[k] for k in early], [self.suite[k] for k in late]
        mine, theirs = bound(first), bound(second)
        return not (mine & (theirs | read(second)) or theirs & read(first))

    def _clearings(self, first: int, early: range, late: range, moved: set[int], passed: set[int]) -> list[int] | None:
        """Statements that clear gradients and must move as well; None where gradients would mix."""
        walks = [w for k in late for w in self.done[k].walks]
        before = [w for k in early for w in self.done[k].walks]
        own = {id(w) for w in (*walks, *before)}
        marks = [m for m in self.trace.marks if m.kind == "zero_grad"]
        inside = {id(m) for k in early for m in self.done[k].marks}
        for mark in self.trace.marks:
            if mark.kind in _READERS:
                self.why = "gradients are read elsewhere"
                return None
            if mark.kind == "gradients-changed":
                blocks = [moved, passed]
                for side, block in ((late, moved), (early, passed)):
                    if any(mark in self.done[k].marks for k in side):
                        blocks = [block]
                leaves = {id(leaf) for leaf in mark.leaves or ()}
                if not leaves or not any(leaves <= block for block in blocks):
                    self.why = "gradients of other parameters are clipped or changed"
                    return None
        needed: dict[int, None] = {}
        start = walks[0].place.clock
        for leaf in {n for w in walks for n in w.seen if n.leaf}:
            cleared = [m for m in marks if m.leaves is not None and leaf in m.leaves and m.place.clock < start]
            if id(leaf) in moved:
                since = cleared[-1].place.clock if cleared else -1
                stale = [w for w in leaf.walks if since < w.place.clock < start and id(w) not in own]
                if stale or (cleared and id(cleared[-1]) in inside) or any(w in before for w in leaf.walks):
                    self.why = "the gradients of the later loss are not cleared before its own backward"
                    return None
            elif id(leaf) in passed:
                begun = min((w.place.clock for w in before if leaf in w.seen), default=start)
                cleared = [m for m in cleared if m.place.clock < begun]
                if cleared and id(cleared[-1]) in inside:
                    continue
                k = self._clears_above(first, cleared[-1]) if cleared else None
                if k is None or any(id(x) in moved for m in self.done[k].marks for x in m.leaves or ()):
                    self.why = "its gradients would mix with those of the earlier loss, which are not cleared between"
                    return None
                needed[k] = None
        return sorted(needed)

    def _clears_above(self, first: int, mark: Mark) -> int | None:
        """A statement of the suite above the updates that clears gradients and nothing else, with no walk after it."""
        for k in range(first):
            if mark in self.done[k].marks:
                clear = self._only_clears(k) and not any(self.done[n].walks for n in range(k, first))
                return k if clear else None
        return None

    # the second remedy

    def _rebuild(self, begin: int, end: int) -> list[Any] | None:
        del end
        stale = self._stale()
        walked = {
            id(n)
            for w in self.trace.walks
            if w.place.clock < min(w.place.clock for w, _ in self.group.late.values())
            for n in w.seen
        }
        if any(id(n) in walked for n in stale):
            return None
        moved: set[int] = set()
        for node in stale:
            k = next((k for k, done in enumerate(self.done) if node in done.nodes), None)
            if k is None or k >= self.early[0]:
                return None
            moved.add(k)
        passed = [k for k in range(min(moved), begin) if k not in moved]
        mine, others = [self.suite[k] for k in sorted(moved)], [self.suite[k] for k in passed]
        for statement, k in zip(mine, sorted(moved), strict=True):
            done = self.done[k]
            if not isinstance(statement, (ast.Assign, ast.AugAssign)) or done.walks or done.steps or done.marks:
                return None
        if bound(mine) & (bound(others) | read(others)) or bound(others) & read(mine):
            return None
        if self._disturbing(moved) and self._disturbing(passed):
            return None
        anchor = self._span(begin)
        return [[self._span(k), anchor, "before", 0] for k in sorted(moved)]

    def _stale(self) -> list[Node]:
        """What was computed with the parameters as they were before the step, up to the later losses."""
        seen = {id(n): n for w, _ in self.group.late.values() for n in w.seen}
        stale = {id(n) for n in self.group.nodes.values()}
        for node in sorted(seen.values(), key=lambda n: n.birth):
            if any(id(p) in stale for p in node.parents):
                stale.add(id(node))
        return [seen[key] for key in stale if key in seen and seen[key].kind != "phi"]

    def _disturbing(self, statements: Iterable[int]) -> bool:
        """Whether modules run in statements, or anything else that may draw random numbers."""
        return any(
            self.done[k].runs_modules
            or (not self.done[k].nodes and self.done[k].quiet and not looks_only(self.suite[k]))
            for k in statements
        )

    def _span(self, k: int) -> Any:
        return tuple(self.file.span(self.suite[k]))


RULE = StepBetweenBackwards
