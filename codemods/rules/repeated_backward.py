"""The rule ``repeated-backward``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.graph.model.kinds import Marked, NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Step, Trace
from codemods.proofs.blocks import (
    Deeds,
    bound,
    common_suite,
    common_turns,
    deeds,
    leaves_of,
    leaves_suite,
    meeting,
    read,
)
from codemods.proofs.early_changes import late, stepped
from codemods.proofs.marks import (
    backward_runs_code,
    changes_gradients,
    clearings,
    clears,
    sees_each_backward,
    touches_gradients,
)
from codemods.proofs.observations import Decision, Observation, Shows, Site, station
from codemods.proofs.paired_flags import advised, mended, paired, superfluous, weakest
from codemods.proofs.reach import reached_surely
from codemods.proofs.saving import reads_one_of
from codemods.rules.base import Rule
from codemods.terms.edits import Edit, MoveStatement, RemoveStatement
from codemods.terms.findings import Finding, Promise, TrailStep


class RepeatedBackward(Rule):
    """``backward`` twice on one loss, with no new forward between.

    Why it hurts: One graph, one backward. The first call frees the graph, the second raises ``Trying to backward
    through the graph a second time``; with ``retain_graph=True`` it computes the same gradients again, for twice the
    time, or raises because a step between has changed the parameters in place.

    The rewrite: Two optimizers that each clear, back-propagate and step over one loss need one ``backward``: both
    ``zero_grad`` first, then the ``backward``, then both steps. The result is the same bit for bit, also with momentum
    and with parameters that belong to both. Where no step stands between, the second call goes.

    Left alone: losses with forwards of their own; gradients that are read, clipped together or changed between;
    code that a backward runs (hooks, checkpoints, functions of their own); a flag that is no literal.

    Advice: one optimizer that steps between the two (the second gradient belongs to the old parameters); a second call
    under a condition; gradients that are cleared between without a step; a ``backward`` that only fills ``.grad``
    before ``autograd.grad`` of the same loss.

    Promise: repair where the second call raises. Exact where two optimizers run as they stand. Behaviour where doubled
    gradients were used.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """

    name = "repeated-backward"
    promise = Promise.REPAIR
    summary = "one loss is back-propagated twice without a new forward"
    gate = (b".backward(",)

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or len(trace.walks) < 2:
            return
        for number, second in enumerate(trace.walks):
            for first in trace.walks[max(0, number - 12) : number]:
                if _same_loss(first, second):
                    yield from self._judge(trace, first, second)

    def _judge(self, trace: Trace, first: Walk, second: Walk) -> Iterator[Observation]:
        pair = _Pair(trace, first, second)
        if not pair.related:
            return
        if second.kind is WalkKind.GRAD:
            statement = first.place.statement
            if pair.for_nothing() and statement is not None:
                yield self._note(first, statement, Shows.ADVICE, pair, "fills")
            return
        statement, promise = pair.later.statement, pair.promise()
        assert statement is not None
        if promise is not None:
            yield self._note(second, statement, Shows.FAULT, pair, "", promise=promise.value, edits=pair.edits())
        elif pair.why:
            yield self._note(second, statement, Shows.ADVICE, pair, pair.why)

    def _note(self, walk: Walk, at: ast.stmt, shows: Shows, pair: _Pair, why: str, **more: Any) -> Observation:
        made = max(walk.roots, key=lambda r: r.birth).place if walk.roots else pair.first.place
        return self.seen(
            pair.file,
            at,
            shows,
            why=why,
            made=(made.path, made.line),
            first=(pair.first.place.path, pair.first.place.line),
            retained=pair.first.retains is True,
            raises=pair.raises(),
            late=late(pair.trace, pair.first, pair.second),
            flags=superfluous(pair.trace, pair.first, besides=pair.second.call),
            **more,
        )

    # deciding

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        about = site.facts
        line = about["first"][1]
        trail = (
            station(about["made"], "graph produced here"),
            station(about["first"], "retained here" if about["retained"] else "freed here"),
            TrailStep(site.path, site.span.line, "used again here"),
        )
        if about["why"] == "fills":
            short = (*trail[:1], station(about["first"], "retained here"))
            message = "this backward only fills .grad, which is cleared unused: autograd.grad of the same loss follows"
            yield self.finding(site, message, "drop the backward", trail=short)
            return
        message = f"line {line} already back-propagated this loss, without a new forward since"
        if about["raises"]:
            message += ": it raises"
        if advice := advised(self.name, site, "edits", message, "back-propagate it once", trail):
            yield advice
            return
        promise = weakest(site)
        if promise is Promise.BEHAVIOUR:
            message += ": its gradients are counted twice"
        remedy = "one backward, after both zero_grad and before both steps" if len(about["edits"]) > 1 else "drop it"
        yield from paired(
            self.name,
            site,
            decision,
            promise,
            message,
            remedy,
            trail,
            [(site.path, edit) for edit in about["edits"]],
            about["flags"],
            kept="the graph for a second backward of the same loss",
            together="the second backward",
            mends=mended(promise, site),
        )


# reading a run


def _same_loss(first: Walk, second: Walk) -> bool:
    if first.kind is not WalkKind.BACKWARD or first.call is None or second.call is None or first.call is second.call:
        return False
    if first.handed or second.handed:
        return False
    if not second.follows(first) or first.inputs != () or (second.inputs != () and second.kind is WalkKind.BACKWARD):
        return False
    if first.with_gradient or (second.with_gradient and second.kind is WalkKind.BACKWARD) or first.creates is not False:
        return False
    roots = {id(r) for r in first.roots}
    if not roots and not second.roots and second.kind is WalkKind.GRAD and second.call.args:
        # what was walked cannot be seen; that the same name was given can
        loss = getattr(first.call.func, "value", None)
        return isinstance(loss, ast.Name) and ast.unparse(second.call.args[0]) == loss.id
    if not roots or len(first.roots) > 1 or any(r.leaf or not r.certain for r in first.roots):
        return False
    return {id(r) for r in second.roots} == roots


class _Pair:
    """Two walks over one loss, and what stands between them."""

    def __init__(self, trace: Trace, first: Walk, second: Walk) -> None:
        self.trace = trace
        self.first = first
        self.second = second
        self.why = ""
        self.moves: list[ast.stmt] = []
        self.related = False
        met = meeting(first.place, second.place)
        turns = common_turns(*met) if met is not None else None
        if met is None or turns is None or met[0].statement is None or met[1].statement is None:
            return
        self.earlier, self.later = met
        self.turns = turns
        self.file: ParsedFile = met[0].frame.file
        found = common_suite(self.file, met[0].statement, met[1].statement)
        if found is None or found[1] >= found[2]:
            return
        self.suite, self.i, self.j = found
        self.related = True

    def for_nothing(self) -> bool:
        """Whether what the first walk leaves in ``.grad`` is cleared before anything steps with it, or looks at it."""
        clock = self.first.place.clock
        steps = [s.place.clock for s in self.trace.steps if s.place.clock > clock]
        clears = [m.place.clock for m in clearings(self.trace) if m.place.clock > clock]
        rebound = bound(self.suite[self.i : self.j]) & read([self.suite[self.i]])
        if not clears or (steps and steps[0] < clears[0]) or rebound or self.first.retains is not True:
            return False
        # A hook that is registered behind the backward does not see it.
        looked = (m for m in self.trace.marks if touches_gradients(m) or m.kind is Marked.HANDED_OUT)
        return not any(clock < mark.place.clock < clears[0] for mark in looked)

    def raises(self) -> bool:
        """Whether the second call surely raises."""
        seen = [n for n in self.first.seen if not n.leaf and n.certain]
        sure = reached_surely(self.first, seen)
        if self.first.retains is False:
            return any(n.saves and id(n) in sure for n in seen if n.kind not in (NodeKind.PHI, NodeKind.PART))
        changed = stepped(self.trace, self.first, self.second)
        return any(id(n) in sure and reads_one_of(n, changed) for n in seen)

    def edits(self) -> tuple[Edit, ...]:
        first = self.file.span(self.suite[self.i])
        moves = [MoveStatement(self.file.span(s), first, "before") for s in self.moves]
        return (*moves, RemoveStatement(self.file.span(self.suite[self.j])))

    def promise(self) -> Promise | None:
        """What the rewrite promises; None where it is not made, with the reason where a person should look."""
        if self.first.retains is None or self.second.creates is not False or backward_runs_code(self.trace):
            return None
        done = deeds(self.trace, self.suite, self.earlier.frame, self.turns)
        # another statement may be a branch that ends the turn
        if done is None or self.suite[self.i] is not self.first.place.statement:
            return None
        direct = self.suite[self.j] is self.second.place.statement
        between = list(range(self.i + 1, self.j))
        marks = [m for k in between for m in done[k].marks]
        unclear = any(_reads(m) or (changes_gradients(m) and m.leaves is None) for m in marks)
        if unclear or any(done[k].walks for k in between):
            return None
        if not direct or len(done[self.i].walks) > 1 or len(done[self.j].walks) > 1:
            self.why = "the second call is conditional"
            return None
        if any(leaves_suite(self.suite[k]) for k in between):
            self.why = "the statements between may leave the block"
            return None
        steps = [s for k in between for s in done[k].steps]
        if any(step.unnoticed for step in steps):
            return None
        if not steps:
            return self._without_frame(marks)
        return self._with_frame(done, between, steps, marks)

    def _without_frame(self, marks: list[Mark]) -> Promise | None:
        if any(clears(m) or changes_gradients(m) for m in marks):
            self.why = "the gradients of the first call are cleared or changed before the second"
            return None
        return Promise.REPAIR if self.raises() else Promise.BEHAVIOUR

    def _read_behind(self) -> bool:
        """Whether something reads gradients to which the second call has come, and which nothing has cleared since."""
        end = max(w.place.clock for w in self.trace.walks if w.call is self.second.call)
        return any(
            _reads(m)
            and m.place.clock > end
            and not any(end < c.place.clock < m.place.clock for c in clearings(self.trace))
            for m in self.trace.marks
        )

    def _with_frame(
        self, done: list[Deeds], between: list[int], steps: list[Step], marks: list[Mark]
    ) -> Promise | None:
        later = next((k for k in range(self.j + 1, len(self.suite)) if done[k].steps), None)
        if later is None:
            self.why = "no second step is next to it"
            return None
        mine, theirs = leaves_of(steps), leaves_of(done[later].steps)
        if mine is None or theirs is None:
            self.why = "what an optimizer owns cannot be seen"
            return None
        if {id(s.optimizer) for s in steps} & {id(s.optimizer) for s in done[later].steps} or mine == theirs:
            self.why = "one optimizer steps twice: the second gradient would belong to the old parameters"
            return None
        behind = [m for k in range(self.j + 1, later) for m in done[k].marks]
        for mark in (*marks, *behind):
            allowed = theirs if mark in behind else mine
            if changes_gradients(mark) and not {id(x) for x in mark.leaves or ()} <= allowed:
                return None
            if mark in behind and _reads(mark):
                return None
        reached = {id(n) for n in self.first.seen if n.leaf}
        clearing = self._cleared_between(done, between)
        if clearing is None:
            self.why = "which gradients are cleared between them cannot be seen"
            return None
        if clearing & mine - theirs:
            self.why = "the gradients of the first step are cleared between"
            return None
        if self._read_behind():
            self.why = "gradients are read after the second call"
            return None
        start = self.first.place.clock
        for node in self.first.seen:
            if node.leaf and id(node) in mine and self._stale(node, start):
                self.why = "gradients from before the first call take part in the first step"
                return None
        if (theirs & reached) <= clearing:
            return Promise.REPAIR if self.raises() else Promise.EXACT
        if any(n.leaf and id(n) in theirs - clearing and self._stale(n, start) for n in self.first.seen):
            self.why = "gradients from before the first call take part in the second step"
            return None
        return Promise.REPAIR if self.raises() else Promise.BEHAVIOUR

    def _cleared_between(self, done: list[Deeds], between: list[int]) -> set[int] | None:
        """The leaves whose gradients are cleared between the calls, by statements that move along; None if they cannot
        be seen."""
        clearing: set[int] = set()
        for k in between:
            cleared = [m for m in done[k].marks if clears(m)]
            if not cleared:
                continue
            if any(m.leaves is None for m in cleared) or not _only_clears(self.suite[k], done[k]):
                return None
            clearing |= {id(leaf) for m in cleared for leaf in m.leaves or ()}
            self.moves.append(self.suite[k])
        return clearing

    def _stale(self, leaf: Node, start: int) -> bool:
        """Whether a leaf holds gradients of earlier walks when the first one begins."""
        walked = [w.place.clock for w in leaf.walks if w.kind is WalkKind.BACKWARD and w.place.clock < start]
        if not walked:
            return False
        return not any(
            m.leaves is not None and leaf in m.leaves and walked[-1] < m.place.clock < start
            for m in clearings(self.trace)
        )


def _only_clears(statement: ast.stmt, done: Deeds) -> bool:
    plain = not (done.walks or done.steps or done.nodes or done.forwards)
    return plain and isinstance(statement, ast.Expr) and all(map(clears, done.marks))


def _reads(mark: Mark) -> bool:
    """Whether gradients are looked at, or may be by code that cannot be seen."""
    return sees_each_backward(mark) or mark.kind is Marked.HANDED_OUT


RULE = RepeatedBackward
