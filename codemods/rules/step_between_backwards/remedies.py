"""Which statements may move so that no step comes between a forward and its backward."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from codemods.graph.model.facts.operations import DATA_CALLS
from codemods.graph.model.kinds import NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Step, Trace
from codemods.graph.model.values import Function
from codemods.proofs.blocks import altered, apart, bound, deeds, leaves_of, leaves_suite, looks_only, read
from codemods.proofs.early_changes import Group
from codemods.proofs.effects import Effects, draws
from codemods.proofs.marks import changes_gradients, clearings, clears, hooked, sees_each_backward
from codemods.proofs.reach import spread


class Remedy:
    """Looks for a sound rewrite: which statements move where."""

    def __init__(self, trace: Trace, group: Group) -> None:
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
        if any(w.kind is not WalkKind.BACKWARD for w, _ in self.group.late.values()):
            return None, "autograd.grad needs the old values"
        done = deeds(self.trace, self.suite, self.group.frame, self.group.turns)
        if done is None:
            return None, "what stands between runs within a module"
        if hooked(self.trace):
            return None, "gradient hooks run once per backward"
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
        moves = self._rebuild(begin)
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
        return isinstance(self.suite[k], ast.Expr) and all(map(clears, done.marks))

    # the first remedy

    def _swap(self, begin: int, end: int) -> list[Any] | None:
        first = self._early_block()
        if first is None:
            return None
        early, late = range(first, begin), range(begin, end + 1)
        mine = {s for k in late for s in self.done[k].steps}
        others = {s for k in early for s in self.done[k].steps}
        moved = leaves_of(mine)
        passed = leaves_of(others)
        if moved is None or passed is None:
            self.why = "what an optimizer owns cannot be seen"
            return None
        for k in (*early, *late):
            if not self._updates(k, moved, later=k >= begin):
                self.why = f"line {self.suite[k].lineno} does more than update parameters"
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
        if self._looks_at(early, moved) or self._looks_at(late, passed):
            self.why = "one block looks at the parameters that the other steps"
            return None
        if not apart(self.trace, self.file, [self.suite[k] for k in early], [self.suite[k] for k in late]):
            self.why = "one block reads a name that the other assigns"
            return None
        if self._does_more(early) and self._does_more(late):
            self.why = "both blocks do more than update parameters, in an order that may matter"
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
        walked = {w for c, _, _ in self.group.early.values() if isinstance(c, Step) for w in self._filling(c)}
        places = [k for k, done in enumerate(self.done) if not walked.isdisjoint(done.walks)]
        if not places or not walked.issubset(w for k in places for w in self.done[k].walks):
            self.why = "the backward before the step is in another function"
            return None
        first = min(places)
        while first > 0 and self._only_clears(first - 1):
            first -= 1
        return first

    def _filling(self, step: Step) -> list[Walk]:
        """The walks whose gradients a step takes."""
        owned, now = set(step.leaves or ()), step.place.clock
        before = (m for m in clearings(self.trace) if m.place.clock < now)
        cleared = [m.place.clock for m in before if m.leaves is None or owned.issubset(m.leaves)]
        since = cleared[-1] if cleared else -1
        return [w for w in self.trace.walks if since < w.place.clock < now and not owned.isdisjoint(w.seen)]

    def _updates(self, k: int, moved: set[int], *, later: bool) -> bool:
        """Whether a statement only clears, back-propagates, clips, steps, looks at values or makes others of them.

        A forward between may stay where it is if it does not use the parameters ``moved`` that are now stepped before.
        """
        done, statement = self.done[k], self.suite[k]
        if leaves_suite(statement) or not isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.If)):
            return False
        if done.quiet:
            return looks_only(self.trace, statement, also=frozenset() if later else DATA_CALLS)
        if any(f.grad is not True for f in done.forwards) or (later and done.forwards):
            return False
        for node in done.nodes:
            if node.kind in (NodeKind.CALL, NodeKind.ARGUMENT) or any(
                p.leaf and (later or id(p) in moved) for p in node.parents
            ):
                return False
        # of clipping the owner is looked at later
        return all((clears(m) or changes_gradients(m)) and m.leaves is not None for m in done.marks)

    def _does_more(self, block: range) -> bool:
        """Whether statements draw random numbers, or do anything else that another order would change."""
        effects = self.trace.once(Effects)
        doing = [k for k in block if not self.done[k].quiet]
        if any(effects.of(self.suite[k]) for k in doing):
            return True
        classes = (getattr(step.optimizer, "cls", None) for k in doing for step in self.done[k].steps)
        members = (cls.find("step") for cls in classes if cls is not None)
        return any(draws(member.definition) for member in members if isinstance(member, Function))

    def _looks_at(self, block: range, leaves: set[int]) -> bool:
        """Whether statements look at the values of parameters, without a way back to them."""
        statements = [self.suite[k] for k in block]
        mine = [leaf for step in self.trace.steps for leaf in step.leaves or () if id(leaf) in leaves]
        places = [use.place.seen_from(self.group.frame) for leaf in dict.fromkeys(mine) for use in leaf.uses]
        return any(at is not None and any(at.statement is s for s in statements) for at in places)

    def _clearings(self, first: int, early: range, late: range, moved: set[int], passed: set[int]) -> list[int] | None:
        """Statements that clear gradients and must move as well; None where gradients would mix."""
        walks = [w for k in late for w in self.done[k].walks]
        before = [w for k in early for w in self.done[k].walks]
        own = {id(w) for w in (*walks, *before)}
        marks = clearings(self.trace)
        inside = {id(m) for k in early for m in self.done[k].marks}
        for mark in self.trace.marks:
            if sees_each_backward(mark):
                self.why = "gradients are read elsewhere"
                return None
            if changes_gradients(mark):
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
                if stale or (cleared and id(cleared[-1]) in inside):
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

    def _rebuild(self, begin: int) -> list[Any] | None:
        stale = self._stale()
        known, first = set(stale), min(w.place.clock for w, _ in self.group.late.values())
        if any(not known.isdisjoint(w.seen) for w in self.trace.walks if w.place.clock < first):
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
        given = bound(others) | altered(self.trace, self.file, others)
        if bound(mine) & (given | read(others)) or given & read(mine):
            return None
        if self._disturbing(moved) and self._disturbing(passed):
            return None
        anchor = self._span(begin)
        return [[self._span(k), anchor, "before", 0] for k in sorted(moved)]

    def _stale(self) -> list[Node]:
        """What was computed with the parameters as they were before the step, up to the later losses."""
        seen = {n for w, _ in self.group.late.values() for n in w.seen}
        made = spread(self.group.nodes.values(), lambda node: [c for c in node.children if c in seen])
        return [n for n in made if n in seen and n.kind is not NodeKind.PHI]

    def _disturbing(self, statements: Iterable[int]) -> bool:
        """Whether modules run in statements, or anything else that may draw random numbers."""
        return any(
            self.done[k].runs_modules
            or (not self.done[k].nodes and self.done[k].quiet and not looks_only(self.trace, self.suite[k]))
            for k in statements
        )

    def _span(self, k: int) -> Any:
        return tuple(self.file.span(self.suite[k]))
