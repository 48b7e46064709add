"""The rule ``zero-grad-misplaced``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.kinds import Marked, WalkKind
from codemods.graph.model.nodes import Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Step, Trace
from codemods.graph.model.values import Optimizer
from codemods.proofs.blocks import common_suite
from codemods.proofs.marks import clearings, clears, concerns, may_touch_gradients
from codemods.proofs.observations import Observation
from codemods.proofs.paths import comes_after, comes_before
from codemods.proofs.syntax import bindings
from codemods.proofs.turns import crossed, loops_around
from codemods.rules._sites import SiteRule
from codemods.source import walking
from codemods.terms.edits import Edit, MoveStatement
from codemods.terms.findings import Promise


class ZeroGradMisplaced(SiteRule):
    """Gradients that are cleared between the ``backward`` that fills them and the ``step`` that should use them.

    Why it hurts: ``zero_grad`` drops what ``backward`` has just computed. The step that follows finds no gradient:
    plain SGD and Adam leave all parameters as they are, and the loss stays where it began. Where a step stands behind
    ``(i + 1) % 4 == 0`` and the clearing stands in every turn, three of four micro-batches are computed for nothing.
    Nothing raises.

    Left alone: any order in which one ``backward`` lies between the clearing and the step, but for a clearing in every
    turn of a loop that steps in every nth; an n that is not written in the file, or is 1; gradients that something
    reads, clips, changes or keeps on the way; parameters that the clearing does not reach wholly; optimizers of classes
    of the tree, closures, and whatever cannot be seen.

    The rewrite: the statement that clears moves behind the step.

    Advice: what clears in another function than the one that steps is named and left. So it is where gradients would be
    kept on a path that does not clear them: several steps on several paths, or a condition that skips a bad step
    (``if torch.isfinite(loss)``). Only what counts turns, such as ``(i + 1) % 4 == 0``, may keep them.

    Promise: behaviour. A program that learns is another program than one that does not.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "zero-grad-misplaced"
    promise = Promise.BEHAVIOUR
    summary = "gradients are cleared before the step that should use them"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        yield from self._before_a_step(trace)
        yield from self._in_every_turn(trace)

    def _in_every_turn(self, trace: Trace) -> Iterable[Observation]:
        for mark in clearings(trace):
            if not isinstance(mark.place.node, ast.Call) or not loops_around(mark.place):
                continue
            file = mark.place.frame.file
            wasted = next(filter(None, (_wasted(trace, mark, step) for step in trace.steps)), None)
            if wasted is None:
                yield self.fine(file, mark.place.node)
                continue
            walk, step, every = wasted
            edits = _moved(trace, mark, step)
            yield self.fault(
                file,
                mark.place.node,
                f"gradients are cleared in every iteration, but a step uses them only every {every} iterations: "
                "the others are lost",
                "clear them after the step" if edits else "clear them after each step, and on paths that skip it",
                (walk.place, "the gradients are computed here"),
                (step.place, "used here, in some iterations only"),
                (mark.place, "cleared here, in every iteration"),
                edits=edits,
            )

    def _before_a_step(self, trace: Trace) -> Iterable[Observation]:
        for step in trace.steps:
            if not isinstance(step.place.node, ast.Call) or not loops_around(step.place):
                continue
            clearing = self._clearing(trace, step)
            file = step.place.frame.file
            if clearing is None:
                yield self.fine(file, step.place.node)
                continue
            walk = next(w for w in reversed(trace.walks) if w.place.clock < clearing.place.clock)
            edits = _moved(trace, clearing, step)
            yield self.fault(
                file,
                step.place.node,
                "this step finds no gradients: they are cleared between the backward that computes them and the step",
                "clear them after the step" if edits else "clear them after each step, and on paths that skip it",
                (walk.place, "the gradients are computed here"),
                (clearing.place, "cleared here"),
                (step.place, "the step finds none here"),
                edits=edits,
            )

    @staticmethod
    def _clearing(trace: Trace, step: Step) -> Mark | None:
        """What cleared all gradients of a step since the last backward, if nothing else came near them."""
        optimizer, owned = step.optimizer, step.owned
        if not trace.complete or not isinstance(optimizer, Optimizer) or optimizer.cls is not None:
            return None
        if owned is None or owned.more or not owned.leaves or step.place.node not in trace.called:
            return None
        leaves, now = set(owned.leaves), step.place.clock
        before = [w for w in trace.walks if w.kind is WalkKind.BACKWARD and w.place.clock < now]
        if not before or leaves.isdisjoint(before[-1].seen) or crossed(before[-1].place, step.place) is not None:
            return None
        last = before[-1]
        between = [m for m in trace.marks if last.place.clock < m.place.clock < now]
        if any(may_touch_gradients(m) and concerns(m, leaves) for m in between):
            return None
        if any(m.kind is Marked.HOOK and concerns(m, leaves) for m in trace.marks):
            # it may have used or kept them when they came
            return None
        if any(last.place.clock < s.place.clock < now for s in trace.steps):
            # it may have been taken with them already
            return None
        return next(
            (
                m
                for m in between
                if clears(m)
                and (m.by is optimizer or (m.exact and m.of is not None and leaves <= set(m.of)))
                and loops_around(m.place) == loops_around(step.place)
                and comes_before(m.place, step.place)
            ),
            None,
        )


def _moved(trace: Trace, clearing: Mark, step: Step) -> list[Edit]:
    """The edit that moves what clears behind the step, if both stand in one function, names mean the same there, and
    gradients are kept on no path but for a count of turns."""
    statement, target, file = clearing.place.statement, step.place.statement, clearing.place.frame.file
    if not isinstance(statement, ast.Expr) or target is None or clearing.place.frame is not step.place.frame:
        return []
    suites = common_suite(file, statement, target)
    if suites is None or statement not in suites[0]:
        return []
    suite, one, other = suites
    loop, leaves = loops_around(step.place)[-1][0], {*(step.leaves or ()), *(clearing.of or ())}
    filling = [w for w in trace.walks if loop in dict(loops_around(w.place)) and not leaves.isdisjoint(w.seen)]
    if not all(comes_after(walk.place, step.place, counted=loop) for walk in filling):
        return []
    if any(_misses(taken, clearing, step, suite[one : other + 1]) for taken in trace.steps):
        return []
    between = suite[min(one, other) : max(one, other) + 1]
    if any(bindings(passed, name) for passed in between for name in walking.names_in(statement)):
        return []
    return [MoveStatement(file.span(statement), file.span(target), "after")]


def _misses(taken: Step, clearing: Mark, step: Step, between: list[ast.stmt]) -> bool:
    """Whether another step in the same loop takes gradients that are not cleared behind it where ``step`` clears."""
    if taken.place.node is step.place.node or loops_around(step.place)[-1][0] not in dict(loops_around(taken.place)):
        return False
    leaves = {*(step.leaves or ()), *(clearing.of or ())}
    if taken.leaves is not None and leaves.isdisjoint(taken.leaves):
        return False
    # what steps before it in its suite, has the clearing behind it on every path
    return (
        not between
        or step.place.statement is not between[-1]
        or not any(inner is taken.place.statement for passed in between for inner in walking.walk(passed))
    )


def _wasted(trace: Trace, clearing: Mark, step: Step) -> tuple[Walk, Step, int] | None:
    """A backward whose gradients ``clearing`` takes away in most turns of its loop, where ``step`` stands in every nth;
    with that n."""
    optimizer = step.optimizer
    if not trace.complete or not isinstance(optimizer, Optimizer) or optimizer.cls is not None:
        return None
    if step.place.frame is not clearing.place.frame or loops_around(step.place) != loops_around(clearing.place):
        return None
    leaves = set(step.leaves or ())
    if not leaves:
        return None
    if not (clearing.by is optimizer or (clearing.exact and clearing.of is not None and leaves <= set(clearing.of))):
        return None
    file, (loop, _) = step.place.frame.file, loops_around(step.place)[-1]
    condition = next((part for part in _body(loop) if isinstance(part, ast.If) and _holds(part, step.place.node)), None)
    every = _nth(file, condition.test) if condition is not None and not condition.orelse else 0
    if condition is None or every < 2 or clearing.place.statement not in _body(loop):
        return None
    met = [mark for mark in trace.marks if concerns(mark, leaves)]
    if any(m.kind is Marked.HOOK or (may_touch_gradients(m) and not _holds(condition, m.place.statement)) for m in met):
        return None
    if any(
        not leaves.isdisjoint(other.leaves or leaves) for other in trace.steps if other.place.node != step.place.node
    ):
        # it may have taken them
        return None
    filling = [w for w in trace.walks if w.kind is WalkKind.BACKWARD and not leaves.isdisjoint(w.seen)]
    if any(_holds(condition, level.statement) for walk in filling for level in walk.place.chain()):
        # the step has a backward of its own: the others may be of another loss
        return None
    for walk in filling:
        if (
            walk.place.frame is step.place.frame
            and walk.place.statement in _body(loop)
            and leaves <= set(walk.seen)
            and loops_around(walk.place) == loops_around(step.place)
            and (_in_order(clearing, walk, step) or _behind(trace, clearing, walk, step))
        ):
            return walk, step, every
    return None


def _in_order(*events: Mark | Walk | Step) -> bool:
    times = [event.place.clock for event in events]
    return times == sorted(times)


def _behind(trace: Trace, clearing: Mark, walk: Walk, step: Step) -> bool:
    """Whether ``clearing`` ends every turn in which ``walk`` filled gradients, and nothing cleared them before."""
    return (
        _in_order(walk, step, clearing)
        and comes_after(walk.place, clearing.place)
        and not any(_in_order(walk, mark, step) and concerns(mark, set(step.leaves or ())) for mark in clearings(trace))
    )


def _body(loop: ast.AST) -> list[ast.stmt]:
    """The statements that a loop runs in every turn, unless it is left: those in its blocks too."""
    found: list[ast.stmt] = []
    rest = list(getattr(loop, "body", ()))
    while rest:
        statement = rest.pop(0)
        found.append(statement)
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            rest[:0] = statement.body
    return found


def _holds(outer: ast.AST, inner: ast.AST | None) -> bool:
    return any(node is inner for node in walking.walk(outer))


def _nth(file: ParsedFile, test: ast.expr) -> int:
    """The n of a condition that holds in every nth turn, such as ``(i + 1) % 4 == 0``; 0 where it is not known."""
    tests = test.values if isinstance(test, ast.BoolOp) else [test]
    for one in tests:
        value = one.operand if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not) else None
        if isinstance(one, ast.Compare) and len(one.ops) == 1 and isinstance(one.ops[0], ast.Eq):
            value = one.left
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod):
            return _number(file, value.right)
    return 0


def _number(file: ParsedFile, value: ast.expr) -> int:
    """What a constant, or a name that a file gives one constant, stands for; 0 where it is not known."""
    if isinstance(value, ast.Name):
        given = bindings(file.tree, value.id)
        made = file.parent(given[0]) if len(given) == 1 else None
        value = made.value if isinstance(made, ast.Assign) and made.targets == given else value
    return value.value if isinstance(value, ast.Constant) and type(value.value) is int else 0


RULE = ZeroGradMisplaced
