"""The rule ``missing-zero-grad``."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.graph.model.kinds import Marked, WalkKind
from codemods.graph.model.nodes import Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Step, Trace
from codemods.graph.model.values import Optimizer, Parameters, options_of
from codemods.proofs.blocks import suite_of
from codemods.proofs.marks import changes_gradients, clears, out_of_sight, touches_gradients
from codemods.proofs.observations import Decision, Observation, Shows, sites, trail_of
from codemods.proofs.syntax import FUNCTIONS, LOOPS
from codemods.proofs.turns import crossed, loops_around
from codemods.rules.base import Rule
from codemods.source import walking
from codemods.source.walking import called
from codemods.terms.edits import Edit, InsertStatements
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span

_HARMLESS = ("clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "unscale_")


class MissingZeroGrad(Rule):
    """A training loop in which nothing ever clears the gradients.

    Why it hurts: ``backward`` adds to ``.grad``. If nothing clears it, each step is taken with the sum of the gradients
    of all the batches so far: the steps grow, and old gradients point where the parameters no
    longer are. For plain SGD that is momentum of 1. The script runs, the loss even falls at first; then it oscillates.
    A linear regression with five weights that SGD brings from a loss of 5.0 to 7e-6 in 50 steps is at 3.5 without
    ``zero_grad`` then, and never below 0.17 in 500 steps.

    The rewrite: ``optimizer.zero_grad()`` is put before the first ``backward`` that contributes to the step.

    Left alone: loops in which anything clears the gradients, on any path: the optimizer, the module, a helper, a
    wrapper of the optimizer, hand-written code on ``.grad``; steps under a condition of their own and ``no_sync``
    (gradient accumulation); closures; optimizers of inputs (attacks, latent codes), of parameters that are
    made anew in each turn, of classes of the tree, and such as cannot be seen (DeepSpeed, Lightning, accelerate); code
    in which the model or the optimizer is handed to something that cannot be seen.

    Advice: a branch that clears beside one that does not; several optimizers with several backwards; a method of a
    model that computes something, whose code cannot be seen, and that may clear by the way.

    Promise: behaviour. The original runs, and the rewritten program learns something else; it needs ``--unsafe``.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "missing-zero-grad"
    promise = Promise.BEHAVIOUR
    summary = "nothing in the training loop clears the gradients"
    gate = (b".backward(", b"autograd.backward(")

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        groups: dict[int, list[Step]] = defaultdict(list)
        for step in trace.steps:
            if isinstance(step.place.node, ast.Call) and loops_around(step.place):
                groups[id(step.place.node)].append(step)
        for steps in groups.values():
            yield from self._judge(trace, steps)

    def _judge(self, trace: Trace, steps: list[Step]) -> Iterator[Observation]:
        step = steps[0]
        walks = _contributing(trace, step)
        anchor = _anchor(walks[0], step) if walks else None
        name = _receiver(step, trace.called.get(step.place.node) == "torch.amp.GradScaler().step")
        if anchor is None or name is None:
            return
        file = step.place.frame.file
        trail = [(walks[0].place.path, walks[0].place.line, "gradients are added here")]
        trail.append((step.place.path, step.place.line, "the step is taken with them here"))
        touching = [m for m in trace.marks if _touches(m, step) and _inside(m, step)]
        if touching:
            cleared = [m for m in touching if clears(m)] if not all(map(_wrapped, walks)) else []
            if cleared and len(cleared) == len(touching) and all(_other_branch(m, step) for m in cleared):
                trail.append((cleared[0].place.path, cleared[0].place.line, "cleared here, on another branch"))
                yield self.seen(file, anchor, Shows.BRANCH, optimizer=name, trail=trail)
            else:
                yield self.seen(file, anchor, Shows.NEEDED, optimizer=name)
            return
        if not _plain(trace, steps, walks):
            yield self.seen(file, anchor, Shows.UNSURE, optimizer=name)
            return
        others = {id(s.optimizer) for s in trace.steps if s.optimizer is not step.optimizer and _inside(s, step)}
        several = bool(others) and len(walks) > 1
        unseen = _unseen_methods(trace, step)
        yield self.seen(file, anchor, Shows.FAULT, optimizer=name, trail=trail, several=several, unseen=unseen)

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        faults: dict[tuple[str, Span], list[dict[str, Any]]] = defaultdict(list)
        for name in sorted({o.facts["optimizer"] for o in observations}):
            for site in sites([o for o in observations if o.facts["optimizer"] == name]):
                if site.shows == {Shows.BRANCH}:
                    yield self.finding(
                        site,
                        f"this branch steps with `{name}` and never clears its gradients; another branch clears them",
                    )
                elif site.faulty:
                    unseen = next((u for o in site.observations for u in o.facts["unseen"]), "")
                    facts = {**site.facts, "several": site.any("several"), "unseen": unseen}
                    faults[site.path, site.span].append(facts)
        for (path, span), found in faults.items():
            trail = trail_of(step for facts in found for step in facts["trail"])
            names = [facts["optimizer"] for facts in found]
            spoken = " and ".join(f"`{name}`" for name in names)
            message = (
                f"nothing in this loop clears the gradients that {spoken} steps with: they add up over all batches"
            )
            if any(facts["several"] for facts in found):
                message += "; several losses reach them, so that it cannot be seen where to clear"
                yield Finding(self.name, path, span, Promise.ADVICE, message, "", trail)
                continue
            edits: list[tuple[str, Edit]] = [
                (path, InsertStatements(span, "before", f"{name}.zero_grad()")) for name in names
            ]
            remedy = f"clear them before this backward: {', '.join(f'{name}.zero_grad()' for name in names)}"
            promise, likely = Promise.BEHAVIOUR, None
            unseen = next((facts["unseen"] for facts in found if facts["unseen"]), "")
            if unseen:
                promise, likely = Promise.ADVICE, Promise.BEHAVIOUR
                message += f", unless `{unseen}()`, whose code cannot be seen, clears them"
            yield Finding(self.name, path, span, promise, message, remedy, trail, tuple(edits), likely=likely)


def _contributing(trace: Trace, step: Step) -> list[Walk]:
    """The backwards of the same turn whose gradients the step uses, first first."""
    earlier = [s.place.clock for s in trace.steps if s.optimizer is step.optimizer and s.place.clock < step.place.clock]
    since = max(earlier, default=-1)
    leaves = set(step.owned.leaves) if step.owned is not None else set()
    seen = step.owned is not None and not step.owned.more
    return [
        walk
        for walk in trace.walks
        if walk.kind is WalkKind.BACKWARD
        and since < walk.place.clock < step.place.clock
        and crossed(walk.place, step.place) is None
        and (not seen or any(n in leaves for n in walk.seen))
    ]


def _anchor(walk: Walk, step: Step) -> ast.stmt | None:
    """The statement with the backward in the suite of the step: one that is there whenever the step is."""
    frame, target = step.place.frame, step.place.statement
    mine = walk.place.seen_from(frame)
    if mine is None or mine.statement is None or target is None:
        return None
    suite, around = suite_of(frame.file, target), {mine.statement, *frame.file.outward(mine.statement, *FUNCTIONS)}
    before = suite[: suite.index(target)]
    return next((statement for statement in before if statement in around), None)


def _receiver(step: Step, scaled: bool) -> str | None:
    """The optimizer as the program names it at the step, that of a gradient scaler where it is ``scaled``; None for
    closures and the like."""
    call = step.place.node
    assert isinstance(call, ast.Call)
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step" or call.keywords:
        return None
    named: ast.expr = call.func.value
    if call.args:
        # scaler.step(optimizer); a closure is no optimizer
        named = call.args[0]
        if len(call.args) > 1 or not isinstance(step.optimizer, Optimizer) or not scaled:
            return None
    inner = named
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return ast.unparse(named) if isinstance(inner, ast.Name) else None


def _touches(mark: Mark, step: Step) -> bool:
    if not (clears(mark) or touches_gradients(mark)):
        return False
    call = mark.place.node
    if changes_gradients(mark) and isinstance(call, ast.Call) and called(call) in _HARMLESS:
        return False
    if mark.of is None or mark.by is step.optimizer or step.owned is None or step.owned.more:
        return True
    return not set(mark.of).isdisjoint(step.owned.leaves)


def _inside(other: Mark | Step, step: Step) -> bool:
    """Whether it happens in any of the loops around the step."""
    around = {id(loop) for loop, _ in loops_around(step.place)}
    return any(id(loop) in around for loop, _ in other.place.turns())


def _other_branch(mark: Mark, step: Step) -> bool:
    """Whether it stands in another branch of an ``if`` than the step, so that the step goes without it."""
    frame = step.place.frame
    mine = mark.place.seen_from(frame)
    if mine is None or mine.statement is None or step.place.statement is None:
        return False
    here = dict(_branches(frame.file, step.place.statement))
    there = dict(_branches(frame.file, mine.statement))
    return any(there[test] != branch for test, branch in here.items() if test in there)


def _branches(file: ParsedFile, statement: ast.stmt) -> Iterator[tuple[ast.AST, str]]:
    """The ``if`` statements around a statement within its loop, with the branch that it stands in."""
    current: ast.AST = statement
    parent = file.parent(current)
    while parent is not None and not isinstance(parent, (*LOOPS, *FUNCTIONS)):
        if isinstance(parent, ast.If):
            yield parent, "body" if any(s is current for s in parent.body) else "orelse"
        current, parent = parent, file.parent(parent)


def _plain(trace: Trace, steps: list[Step], walks: list[Walk]) -> bool:
    """Whether the run shows all that could clear: a known optimizer of parameters, in a loop that turns."""
    step, owned = steps[0], steps[0].owned
    if not trace.complete or any("not entered" in note for note in trace.notes):
        return False
    if not isinstance(step.optimizer, Optimizer) or step.optimizer.cls is not None:
        return False
    if owned is None or owned.more or not owned.leaves or any(leaf.label == "input" for leaf in owned.leaves):
        return False
    if len({tuple(turn for _, turn in loops_around(s.place)) for s in steps}) < 2:
        return False
    around = {id(loop) for loop, _ in loops_around(step.place)}
    sight = [m for m in trace.marks if out_of_sight(m) and any(id(loop) in around for loop, _ in m.place.turns())]
    if not all(_computes(trace, m) for m in sight):
        return False
    if any(_wrapped(walk) or not any(n.certain and not n.leaf for n in walk.seen) for walk in walks):
        return False
    loop = loops_around(step.place)[-1][0]
    if all(loop in dict(leaf.place.turns()) for leaf in owned.leaves):
        # each turn has parameters of its own
        return False
    return not any(isinstance(n, ast.Attribute) and n.attr == "no_sync" for n in walking.walk(loop))


def _computes(trace: Trace, mark: Mark) -> bool:
    """Whether it is a method of a module that cannot be seen, of whose result something is made, and that gets no
    optimizer."""
    given = (o for h in trace.handings if h.place.node is mark.place.node for v in h.given for o in options_of(v))
    dropped = mark.place.frame.file.is_statement(mark.place.node)
    return (
        mark.kind is Marked.UNSEEN_MODULE_METHOD
        and not dropped
        and not any(isinstance(one, (Optimizer, Parameters)) for one in given)
    )


def _unseen_methods(trace: Trace, step: Step) -> tuple[str, ...]:
    """Such methods in the loops around a step, as they are called there: they may clear gradients."""
    calls = (m.place.node for m in trace.marks if m.kind is Marked.UNSEEN_MODULE_METHOD and _inside(m, step))
    return tuple(dict.fromkeys(ast.unparse(call.func) for call in calls if isinstance(call, ast.Call)))


def _wrapped(walk: Walk) -> bool:
    """``accelerator.backward(loss)`` and its like: what the wrapper does besides cannot be seen."""
    return walk.call is None or (bool(walk.call.args) and not walk.with_gradient and walk.retain_argument is None)


RULE = MissingZeroGrad
