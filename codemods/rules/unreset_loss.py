"""The rule ``unreset-loss``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.kinds import NodeKind, WalkKind
from codemods.graph.model.nodes import Walk, all_ancestors
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Accumulation, Trace
from codemods.graph.model.values import nodes_of
from codemods.proofs.blocks import altered, bound, parting, read, stepped_between, suites_around
from codemods.proofs.early_changes import late, stepped
from codemods.proofs.observations import Decision, Observation, Shows, Site, station
from codemods.proofs.paired_flags import advised, mended, paired, superfluous, weakest
from codemods.proofs.reach import reached_by_both, reached_surely
from codemods.proofs.saving import reads_one_of
from codemods.proofs.syntax import free_name, scope
from codemods.rules.base import Rule
from codemods.source import walking
from codemods.terms.edits import Edit, InsertStatements, MoveStatement, RemoveStatement, ReplaceExpression
from codemods.terms.findings import Finding, Promise

_NAMES = ("total_loss", "loss_total", "running_loss", "summed_loss")


_FRESH = frozenset(
    f"torch.{name}" for name in ("zeros", "tensor", "FloatTensor", "cuda.FloatTensor", "Tensor", "autograd.Variable")
)
"""What makes a sum that is empty yet."""


class UnresetLoss(Rule):
    """A loss that grows is back-propagated in every step and never starts over.

    Why it hurts: ``loss = 0`` stands before the loop over the batches, ``loss = loss + ...`` and ``loss.backward()`` in
    it: the loss of the second step still holds the graph of the first, which its backward has freed. It raises ``Trying
    to backward through the graph a second time``; with ``retain_graph=True`` every step back-propagates through all the
    steps before, or raises because they were stepped over in place.

    The rewrite: The initialisation moves to the top of the loop. Where the backward is conditional (every *k* batches),
    the loss is reset right after it in the same block, so that no batch of a window is lost. If the loss is read after
    the loop, as a total, a total without graphs is kept beside it. A ``retain_graph=True`` that only kept the old
    graphs alive goes with it.

    Left alone: an accumulator that is reset, detached or taken as a number anywhere in the loop; one backward after the
    loop; a sum over the time steps of one sequence.

    Advice: the accumulator is read where the reset would change what is read; what it begins with changes in the loop.

    Promise: repair. Where nothing is saved, or ``retain_graph=True`` lets it run, it is behaviour: the sum of all the
    steps was learned from.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors
    """

    name = "unreset-loss"
    promise = Promise.REPAIR
    summary = "a loss that is back-propagated in every step grows from step to step"
    gate = (b".backward(",)

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete:
            return
        told: set[int] = set()
        for walk in trace.walks:
            if walk.kind is not WalkKind.BACKWARD or walk.call is None or id(walk.call) in told or not walk.again:
                continue
            earlier = next(
                (w for _, w in walk.again if w.call is walk.call and w.kind is WalkKind.BACKWARD and walk.follows(w)),
                None,
            )
            if earlier is None or not stepped_between(trace, earlier, walk):
                continue
            grown = _grown(trace, earlier, walk)
            if grown is not None:
                told.add(id(walk.call))
                yield from self._judge(trace, earlier, walk, *grown)

    def _judge(
        self, trace: Trace, earlier: Walk, walk: Walk, first: Accumulation, second: Accumulation, loop: ast.stmt
    ) -> Iterator[Observation]:
        promise = _promise(trace, earlier, walk)
        if promise is None or first.place.statement is None or walk.place.statement is None:
            return
        plan = _Plan(trace, walk, second, loop)
        found = plan.find()
        statement = found[0] if found is not None else walk.place.statement
        file = walk.place.frame.file
        yield self.seen(
            file,
            statement,
            Shows.FAULT if found is not None else Shows.ADVICE,
            promise=promise.value,
            edits=found[1] if found is not None else None,
            remedy=plan.remedy,
            why=plan.why,
            name=ast.unparse(first.target),
            grows=(first.place.path, first.place.line),
            freed=(walk.place.path, walk.place.line),
            retained=walk.retains is True,
            late=late(trace, earlier, walk),
            flags=superfluous(trace, walk, set(all_ancestors(nodes_of(second.old))), besides=walk.call),
        )

    # deciding

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        about = site.facts
        line = about["freed"][1]
        trail = (
            station(about["grows"], f"carried on in `{about['name']}` here"),
            station(about["freed"], "retained here" if about["retained"] else "freed here"),
            station(about["freed"], "used again here, in the next step"),
        )
        promise = weakest(site)
        message = f"`{about['name']}` is never reset: the backward of line {line} uses the graphs of all steps before"
        if promise is Promise.REPAIR:
            message += ": the second step raises"
        if advice := advised(self.name, site, "edits", message, "reset it in each step", trail):
            yield advice
            return
        yield from paired(
            self.name,
            site,
            decision,
            promise,
            message,
            about["remedy"],
            trail,
            [(site.path, edit) for edit in about["edits"]],
            about["flags"],
            kept="the graphs of earlier steps",
            together="the reset",
            uncovers=("summed-micro-batches",),
            mends=mended(promise, site),
        )


# reading a run


def _grown(trace: Trace, earlier: Walk, walk: Walk) -> tuple[Accumulation, Accumulation, ast.stmt] | None:
    """The sums by which the loss of one step goes on from that of the step before, and the loop of the steps."""
    parted = parting(earlier.place, walk.place)
    if parted is None:
        return None
    loop = parted.loop
    before = {id(n) for n in earlier.seen if not n.leaf}
    seen = {id(n) for n in walk.seen}
    first = None
    for sum_ in trace.accumulations:
        new = nodes_of(sum_.new)
        clock = sum_.place.clock
        if clock < earlier.place.clock and any(id(n) in before for n in new):
            first = sum_
        elif earlier.place.clock < clock < walk.place.clock and first is not None and any(id(n) in seen for n in new):
            old = [p for n in nodes_of(sum_.old) for p in ((n, *n.parents) if n.kind is NodeKind.PHI else (n,))]
            same = (
                ast.unparse(sum_.target) == ast.unparse(first.target)
                and sum_.place.frame.file is first.place.frame.file
            )
            carried = [n for n in old if id(n) in before and n.kind is not NodeKind.PHI]
            if same and reached_by_both(walk, earlier, carried):
                return first, sum_, loop
    return None


def _promise(trace: Trace, earlier: Walk, walk: Walk) -> Promise | None:
    if earlier.retains is None or earlier.creates is not False:
        return None
    again = [n for n, w in walk.again if n.certain and n.kind not in (NodeKind.PHI, NodeKind.PART)]
    sure = reached_surely(walk, again)
    again = [n for n in again if id(n) in sure]
    if earlier.retains is False:
        return Promise.REPAIR if any(n.saves for n in again) else Promise.BEHAVIOUR
    changed = stepped(trace, earlier, walk)
    return Promise.REPAIR if any(reads_one_of(n, changed) for n in again) else Promise.BEHAVIOUR


# the rewrite


class _Plan:
    """Where the accumulator is initialised, and where it has to be."""

    def __init__(self, trace: Trace, walk: Walk, sum_: Accumulation, loop: ast.stmt) -> None:
        self.trace = trace
        self.walk = walk
        self.loop = loop
        self.file: ParsedFile = walk.place.frame.file
        self.target = ast.unparse(sum_.target)
        self.sum = sum_
        self.why = ""
        self.remedy = ""

    def find(self) -> tuple[ast.stmt, tuple[Edit, ...]] | None:
        """The statement at which the mistake is mended, and the edits."""
        statement = self.walk.place.statement
        if statement is None or not isinstance(self.sum.target, (ast.Name, ast.Attribute)):
            return None
        if self.sum.place.frame is not self.walk.place.frame:
            self.why = "it grows in another function"
            return None
        around = scope(self.file, statement)
        inside = {id(n) for n in walking.walk(self.loop)}
        if id(statement) not in inside:
            # the loop is in a caller: what keeps the sum is an attribute or a global variable
            return self._behind(statement, "0", around)
        begin = self._begin()
        if begin is None:
            self.why = "the code that initialises it cannot be seen"
            return None
        if read([ast.Expr(begin.value)]) & (bound([self.loop]) | altered(self.trace, self.file, [self.loop])):
            self.why = "what it begins with changes in the loop"
            return None
        body = getattr(self.loop, "body", [])
        if not any(s is statement for s in body):
            return self._behind(statement, ast.unparse(begin.value), around)
        return self._move(begin, around)

    def _begin(self) -> ast.Assign | None:
        """``loss = 0`` before the loop."""
        for suite, index in suites_around(self.file, self.loop):
            for candidate in reversed(suite[:index]):
                targets = [ast.unparse(n) for n in walking.walk(candidate) if isinstance(n, (ast.Name, ast.Attribute))
                           and isinstance(n.ctx, ast.Store)]  # fmt: skip
                if self.target in targets:
                    return (
                        candidate if isinstance(candidate, ast.Assign) and _fresh(self.file, candidate.value) else None
                    )
        return None

    def _uses(self, around: ast.AST) -> list[ast.expr]:
        found = [
            n
            for n in walking.walk(around)
            if isinstance(n, (ast.Name, ast.Attribute))
            and isinstance(n.ctx, ast.Load)
            and ast.unparse(n) == self.target
        ]
        return sorted(found, key=lambda n: (n.lineno, n.col_offset))

    def _move(self, begin: ast.Assign, around: ast.AST) -> tuple[ast.stmt, tuple[Edit, ...]] | None:
        """The backward runs in every turn: the loss begins at the top of the loop."""
        # the head of a loop is evaluated before its body, what stands behind an ``else`` when it is over
        inside = {id(n) for statement in getattr(self.loop, "body", ()) for n in walking.walk(statement)}
        others = [n for n in self._uses(around) if id(n) not in inside]
        grows = self.sum.place.statement
        if any(grows is not None and id(n) in inside and n.lineno < grows.lineno for n in self._uses(around)):
            self.why = "it is read where it would have been reset"
            return None
        span, loop = self.file.span(begin), self.file.span(self.loop)
        self.remedy = "move the initialisation to the top of the loop"
        alone = len(begin.targets) == 1 and ast.unparse(begin.targets[0]) == self.target
        code = f"{self.target} = {ast.unparse(begin.value)}"
        move: list[Edit] = [MoveStatement(span, loop, "first-in")]
        if not alone:
            if any(isinstance(t, ast.Tuple) for t in begin.targets):
                return None
            move = [InsertStatements(loop, "first-in", code)]
        if isinstance(self.sum.target, ast.Attribute) and (others or self._elsewhere(around)):
            self.why = "it is read outside of the loop too"
            return None
        if not others:
            return begin, tuple(move)
        if any(n.lineno <= (self.loop.end_lineno or 0) for n in others) or not alone:
            self.why = "it is read before the loop"
            return None
        if any(self._walked_behind(walk) for walk in self.trace.walks):
            self.why = "it is back-propagated behind the loop, too"
            return None
        # what is read after the loop was the sum over all steps
        statement = self.walk.place.statement
        assert statement is not None
        total = free_name(around, _NAMES)
        add = f"{total} = {total} + {self.target}.detach()"
        self.remedy = "move the initialisation to the top of the loop, keep the total without graphs"
        return begin, (
            InsertStatements(span, "before", f"{total} = 0"),
            RemoveStatement(span),
            InsertStatements(loop, "first-in", code),
            InsertStatements(self.file.span(statement), "after", add),
            *(ReplaceExpression(self.file.span(n), total) for n in others),
        )

    def _walked_behind(self, walk: Walk) -> bool:
        """Whether a backward behind the loop comes to the sum."""
        at = walk.place.seen_from(self.walk.place.frame)
        behind = at is not None and at.clock > self.walk.place.clock and all(o is not self.loop for o, _ in at.loops)
        return behind and any(node.place.statement is self.sum.place.statement for node in walk.seen)

    def _behind(self, statement: ast.stmt, value: str, around: ast.AST) -> tuple[ast.stmt, tuple[Edit, ...]] | None:
        """The backward runs in some of the turns, or the loop is in a caller: the loss is reset after it."""
        suite, index = next(iter(suites_around(self.file, statement)))
        last = index
        own = {id(n) for n in (self.sum.target, *walking.walk(self.sum.place.statement or self.sum.target))}
        for use in self._uses(around):
            if id(use) in own:
                continue
            at = next((k for k, s in enumerate(suite) if any(n is use for n in walking.walk(s))), None)
            if at is None or at < index:
                if at is None and not self._before(use, statement):
                    self.why = "it is read where it would have been reset"
                    return None
                continue
            last = max(last, at)
        if isinstance(self.sum.target, ast.Attribute) and self._elsewhere(around):
            self.why = "it is read elsewhere too"
            return None
        if any(
            isinstance(n, (ast.Return, ast.Break, ast.Continue))
            for s in suite[index : last + 1]
            for n in walking.walk(s)
        ):
            self.why = "the block is left before it could be reset"
            return None
        if isinstance(self.sum.target, ast.Name) and not any(n is statement for n in walking.walk(self.loop)):
            self.why = "it is a global variable"
            return None
        self.remedy = "reset it right after its backward"
        code = f"{self.target} = {value}"
        return statement, (InsertStatements(self.file.span(suite[last]), "after", code),)

    def _before(self, use: ast.expr, statement: ast.stmt) -> bool:
        """Whether a use stands before the backward in the same turn, so that a reset after that does not touch it."""
        body = getattr(self.loop, "body", [])
        first = next((k for k, s in enumerate(body) if any(n is use for n in walking.walk(s))), None)
        second = next((k for k, s in enumerate(body) if any(n is statement for n in walking.walk(s))), None)
        return first is not None and second is not None and first < second

    def _elsewhere(self, around: ast.AST) -> bool:
        """Whether the attribute is read in another function of the files that ran."""
        assert isinstance(self.sum.target, ast.Attribute)
        inside = {id(n) for n in walking.walk(around)}
        return any(
            isinstance(n, ast.Attribute)
            and n.attr == self.sum.target.attr
            and isinstance(n.ctx, ast.Load)
            and id(n) not in inside
            for file in {frame.file for frame in self.trace.frames}
            for n in walking.walk(file.tree)
        )


def _fresh(file: ParsedFile, value: ast.expr) -> bool:
    """``0``, ``0.0``, ``torch.zeros(1)`` and the like."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float))
    paths = [file.named(n) for n in walking.walk(value) if isinstance(n, (ast.Attribute, ast.Name))]
    return isinstance(value, ast.Call) and any(path in _FRESH for path in paths)


RULE = UnresetLoss
