"""The rule ``backward-in-loss-loop``."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

from codemods.graph.model.facts.memory import ARRAY_WRITERS
from codemods.graph.model.facts.operations import FACTORIES
from codemods.graph.model.kinds import Altered, NodeKind, WalkKind
from codemods.graph.model.nodes import Frame, Node, Place, Value, Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Accumulation, Trace
from codemods.graph.model.values import Const, Tensor
from codemods.proofs.blocks import read
from codemods.proofs.earlier import assigned
from codemods.proofs.early_changes import late
from codemods.proofs.marks import backward_runs_code, tells_backwards_apart
from codemods.proofs.observations import Decision, Observation, Shows, Site
from codemods.proofs.paired_flags import mended
from codemods.proofs.paths import half_done
from codemods.proofs.reach import reached_by_both
from codemods.proofs.syntax import RETURNING, bindings, free_name, own_nodes, reads, scope
from codemods.rules.base import Rule
from codemods.source import walking
from codemods.source.walking import called, last_name
from codemods.terms.edits import DropArgument, Edit, InsertStatements, MoveStatement, RemoveStatement
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.words import words

_OWN_FORWARD = 3
"""From so many layers made in one turn on, the parts of the losses that do not share weigh in memory."""

_NAMES = ("total_loss", "summed_loss", "loss_sum", "total_loss_sum")

_LOOKING = words("all any cat enumerate isinstance len list max mean min print reversed sorted stack sum tuple zip")
"""Functions that take no element out of a list."""

_FOLLOWED = 3
"""How many names are followed, as they may go in circles. A loop that is not proven by then gets a condition."""


class BackwardInLossLoop(Rule):
    """A ``backward`` for each of several losses that come from one forward, in a loop.

    Why it hurts: One graph, one backward. Losses that were computed from the same forward share its graph: the first
    ``backward`` frees it, and the second raises ``Trying to backward through the graph a second time``. With
    ``retain_graph=True`` it runs, but the shared part is used again for every loss, and its activations stay in memory
    after the last.

    The rewrite: The losses are summed in the loop and back-propagated once after it; a loop that does nothing else
    becomes ``sum(losses).backward()``. Where the loop sums already and calls ``backward`` on the growing sum in every
    iteration, the call moves after the loop. Where the loop may run no iteration at all, the one ``backward`` is
    guarded.

    Left alone: a loop whose iterations run a forward of their own that shares nothing (micro-batches, one graph per
    iteration); a state carried from iteration to iteration; a loop that steps, clears, clips or reads gradients in its
    iterations; code that a backward runs (hooks, checkpoints, functions of their own); a graph that is used again after
    the loop; iterations that write in place to what a loss may have saved (``mask.mul_(2)``).

    Promise: repair where the loop raises; equivalent where ``retain_graph=True`` makes it run (rounding may differ);
    behaviour where the growing sum is back-propagated with the flag, which weighs the first losses more than the last.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """

    name = "backward-in-loss-loop"
    promise = Promise.EQUIVALENT
    summary = "several losses of one forward are back-propagated one by one in a loop"
    gate = (b".backward(",)

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        groups: dict[tuple[int, int, tuple[int, ...]], list[Walk]] = defaultdict(list)
        for walk in trace.walks:
            if _candidate(walk):
                outer = tuple(turn for _, turn in walk.place.loops[:-1])
                groups[id(walk.call), walk.place.frame.fid, outer].append(walk)
        order = {id(walk): i for i, walk in enumerate(trace.walks)}
        for walks in groups.values():
            if len(walks) < 2:
                continue
            if not trace.complete:
                yield self._note(walks[0], Shows.UNSURE)
                continue
            yield self._judge(trace, walks, order)

    def _note(self, walk: Walk, shows: Shows, **facts: object) -> Observation:
        assert walk.place.statement is not None
        return self.seen(walk.place.frame.file, walk.place.statement, shows, **facts)

    def _judge(self, trace: Trace, walks: list[Walk], order: dict[int, int]) -> Observation:
        first, second = walks[0], walks[1]
        loop = _Loop(first.place)
        shared = _shared(first, second) if second.follows(first) else []
        before = [n for n in shared if n.certain and not loop.holds(n.place)]
        sums = [a for a in trace.accumulations if loop.holds(a.place) and _sums(a, first)]
        # without a sum, what the iterations share of the loop is a state that they carry on
        carried = not sums and any(loop.holds(n.place) for n in shared)
        older = bool(sums) and not all(isinstance(o, Const) for o in _starts(sums, loop))
        last = max(order[id(w)] for w in walks)
        again = any(order[id(w)] > last for n in before for w in n.walks)
        if carried or older or again or not reached_by_both(first, second, before) or _told_apart(trace, walks, loop):
            return self._note(first, Shows.NEEDED)
        if _written_again(trace, loop, sums) or half_done(trace, first.place):
            return self._note(first, Shows.NEEDED)
        layers = sum(n.kind is NodeKind.MODULE and loop.holds(n.place) for n in second.seen)
        produced = max(before, key=lambda n: n.birth).place
        return self._note(
            first,
            Shows.FAULT,
            retains=first.retains,
            late=late(trace, first, second),
            argument=first.retain_argument,
            summed=bool(sums),
            heavy=layers >= _OWN_FORWARD,
            produced=(produced.path, produced.line),
        )

    # deciding

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        file = decision.files(site.path) if site.faulty else None
        if file is None:
            return
        statement = file.find(site.span, ast.Expr)
        loop = file.parent(statement) if statement is not None else None
        if isinstance(statement, ast.Expr) and isinstance(loop, ast.For) and _movable(loop):
            yield self._finding(site, file, statement, loop)

    def _finding(self, site: Site, file: ParsedFile, statement: ast.Expr, loop: ast.For) -> Finding:
        rewrite = _Rewrite(file, statement, loop)
        facts = site.facts
        retains = facts["retains"] is True
        remedy = "sum the losses in the loop and call `backward` once after it"
        if facts["summed"]:
            edits = rewrite.move(facts["argument"])
            remedy = "call `backward` once after the loop"
            promise = Promise.BEHAVIOUR if retains else Promise.REPAIR
        else:
            whole = rewrite.whole()
            edits = whole or rewrite.total()
            if whole:
                remedy = "back-propagate the sum of the losses once"
            promise = Promise.EQUIVALENT if retains else Promise.REPAIR
        if promise is Promise.REPAIR:
            message = "each backward frees the graph that the next loss shares: the second iteration raises"
        elif promise is Promise.BEHAVIOUR:
            message = "backward runs on the growing sum in every iteration: the first losses count more than the last"
        else:
            message = "these losses share one graph, and every iteration uses it again; their sum needs one backward"
        if facts["heavy"] and promise is not Promise.REPAIR:
            message += "; what each iteration adds to the graph then lives until that backward, so peak memory rises"
        path, line = facts["produced"]
        trail = (
            TrailStep(path, line, "graph produced here"),
            TrailStep(site.path, site.span.line, "kept here" if retains else "freed here"),
            TrailStep(site.path, site.span.line, "used again here, in the next iteration"),
        )
        made = [(site.path, edit) for edit in edits]
        return self.finding(site, message, remedy, made, promise=promise, trail=trail, mends=mended(promise, site))


# reading a run


class _Loop:
    """The innermost loop around a place of its frame, in the one run of it that the place belongs to."""

    def __init__(self, place: Place) -> None:
        self.frame: Frame = place.frame
        self.outer = place.loops[:-1]
        self.node = place.loops[-1][0]

    def holds(self, place: Place) -> bool:
        """Whether something happened in the loop, also in a function called from it."""
        at, depth = place.seen_from(self.frame), len(self.outer)
        return (
            at is not None
            and len(at.loops) > depth
            and at.loops[:depth] == self.outer
            and at.loops[depth][0] is self.node
        )

    def meets(self, place: Place) -> bool:
        """Whether something happens between the turns, too: in a generator over whose values the loop goes."""
        if self.holds(place):
            return True
        iterated = {id(n) for n in walking.walk(getattr(self.node, "iter", self.node))}
        chain = place.chain()
        return any(
            inner.frame.yields and outer.frame is self.frame and id(outer.node) in iterated
            for inner, outer in itertools.pairwise(chain)
        )


def _candidate(walk: Walk) -> bool:
    """A statement ``loss.backward()`` directly in the body of a ``for``."""
    place, call = walk.place, walk.call
    if walk.kind is not WalkKind.BACKWARD or walk.with_gradient or walk.creates is not False or walk.retains is None:
        return False
    if not place.loops or call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return False
    if call.args or any(k.arg not in ("retain_graph", "retain_variables") for k in call.keywords):
        return False
    statement, loop = place.statement, place.loops[-1][0]
    if not isinstance(statement, ast.Expr) or statement.value is not call or not isinstance(loop, ast.For):
        return False
    return any(s is statement for s in loop.body)


def _shared(first: Walk, second: Walk) -> list[Node]:
    """What both walked and a second walk would find freed."""
    seen = {id(n) for n in first.seen}
    return [
        n
        for n in second.seen
        if id(n) in seen and not n.leaf and n.saves and n.kind not in (NodeKind.PHI, NodeKind.PART)
    ]


def _told_apart(trace: Trace, walks: list[Walk], loop: _Loop) -> bool:
    """Whether something in a loop, or the backward itself, would notice that its backwards are one."""
    between = [w.place for w in trace.walks if w not in walks] + [s.place for s in trace.steps]
    between += [m.place for m in trace.marks if tells_backwards_apart(m)]
    return backward_runs_code(trace) or any(map(loop.meets, between))


def _written_again(trace: Trace, loop: _Loop, sums: list[Accumulation]) -> bool:
    """Whether turns write in place to what they do not make anew: an earlier turn may have saved it for a backward that
    would come too late. The loss itself does not count, nor a total that nothing else in the loop reads."""
    added = [a for a in trace.accumulations if a in sums or not (_read_in(loop.node, a) or _another_name(a))]
    harmless = {id(a.place.node) for a in added}
    for change in trace.alterations:
        place = change.place
        if change.how is Altered.REQUIRES_GRAD or not loop.holds(place) or id(place.node) in harmless:
            continue
        written = _written(place.node)
        around = loop.node if place.frame is loop.frame else place.frame.definition
        if not isinstance(written, (ast.Name, ast.Attribute)) or _computed_in(loop, change.value):
            continue
        if not _made_in(place.frame.file, around or loop.node, ast.unparse(written)):
            return True
    return False


def _another_name(sum_: Accumulation) -> bool:
    """Whether a variable that grows may share its memory with what has another name."""
    file, name = sum_.place.frame.file, sum_.target
    return isinstance(name, ast.Name) and not _made_in(file, scope(file, sum_.place.node), name.id)


def _computed_in(loop: _Loop, value: Value) -> bool:
    """Whether a tensor was computed in the loop, and is no view of another."""
    if not isinstance(value, Tensor) or value.node is None or value.bases or value.aliases:
        return False
    return not value.node.leaf and value.node.kind is not NodeKind.PHI and loop.holds(value.node.place)


def _made_in(file: ParsedFile, around: ast.AST, name: str) -> bool:
    """Whether all that code gives to a name is new, and no other name for what is there."""
    values: list[ast.expr | None] = []
    for node in walking.walk(around):
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) and ast.unparse(node) == name:
            statement = file.enclosing(node, ast.stmt)
            if not isinstance(statement, ast.AugAssign):
                values.append(assigned(statement, node) if isinstance(statement, ast.Assign) else None)
    return bool(values) and all(value is not None and _makes(value) for value in values)


def _makes(value: ast.expr) -> bool:
    """Whether an expression is written as one that makes a tensor."""
    if isinstance(value, ast.Call):
        return called(value) in FACTORIES or called(value) == "clone"
    return isinstance(value, (ast.BinOp, ast.Constant))


def _written(node: ast.AST) -> ast.AST | None:
    """What a change in place is written as changing: what a method is called on, the first that a function is given."""
    if isinstance(node, ast.Call):
        out = next((k.value for k in node.keywords if k.arg == "out"), None)
        public = isinstance(node.func, ast.Name) or last_name(node.func) in ARRAY_WRITERS or out is not None
        node = out or (node.args[0] if public and node.args else node.func)
    written: ast.AST | None
    written = node.target if isinstance(node, ast.AugAssign) else node
    if isinstance(node, ast.Attribute):
        written = node.value
    while True:
        match written:
            case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner)) if not _makes(written):
                # a view, or what may be one
                written = inner
            case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
                written = first
            case _:
                return written


def _read_in(loop: ast.AST, sum_: Accumulation) -> bool:
    """Whether a loop reads a sum elsewhere than where it grows."""
    own, name = sum_.place.statement, ast.unparse(sum_.target)
    return any(name in read([s]) for s in getattr(loop, "body", ()) if s is not own)


def _sums(accumulation: Accumulation, walk: Walk) -> bool:
    """Whether it adds to what the walk back-propagates."""
    assert walk.call is not None
    assert isinstance(walk.call.func, ast.Attribute)
    return ast.unparse(accumulation.target) == ast.unparse(walk.call.func.value)


def _starts(sums: list[Accumulation], loop: _Loop) -> list[object]:
    """What the sum held when the loop began."""
    depth = len(loop.outer)
    first = [a for a in sums if a.place.frame is loop.frame and a.place.loops[depth][1] == 0]
    return [first[0].old] if first else [None]


# rewriting


def _movable(loop: ast.For) -> bool:
    """Whether what stands right after the loop runs however the loop ends."""
    return not loop.orelse and not any(isinstance(n, RETURNING) for n in own_nodes(loop.body))


class _Rewrite:
    """The edits that take a ``backward`` out of its loop."""

    def __init__(self, file: ParsedFile, statement: ast.Expr, loop: ast.For) -> None:
        self.file = file
        self.statement = statement
        self.loop = loop
        assert isinstance(statement.value, ast.Call)
        assert isinstance(statement.value.func, ast.Attribute)
        self.call = statement.value
        self.loss = statement.value.func.value
        self.scope = scope(file, loop)
        skips = any(isinstance(n, (ast.Continue, ast.Break)) for n in own_nodes(loop.body))
        self.runs = not skips and self._filled(loop.iter)

    def move(self, argument: str | int | None) -> list[Edit]:
        """The loop sums already: only the call moves."""
        target, loop = self.file.span(self.statement), self.file.span(self.loop)
        if not self.runs:
            name = ast.unparse(self.loss)
            code = f"if {{torch}}.is_tensor({name}):\n    {name}.backward()"
            return [RemoveStatement(target), InsertStatements(loop, "after", code)]
        edits: list[Edit] = [MoveStatement(target, loop, "after")]
        if argument is not None:
            edits.append(DropArgument(self.file.span(self.call), argument))
        return edits

    def whole(self) -> list[Edit]:
        """``for l in losses: l.backward()`` and nothing else: ``sum(losses).backward()``."""
        target, loss = self.loop.target, self.loss
        if len(self.loop.body) > 1 or not isinstance(target, ast.Name) or not isinstance(loss, ast.Name):
            return []
        if target.id != loss.id or self._uses(target.id) > 2:
            return []
        losses = ast.get_source_segment(self.file.text, self.loop.iter)
        if losses is None or "\n" in losses:
            return []
        span = self.file.span(self.loop)
        if self.runs:
            code = f"sum({losses}).backward()"
        else:
            name = free_name(self.scope, _NAMES)
            code = f"{name} = sum({losses})\nif {{torch}}.is_tensor({name}):\n    {name}.backward()"
        return [InsertStatements(span, "before", code), RemoveStatement(span)]

    def total(self) -> list[Edit]:
        """A total before the loop, a sum in it, one backward after it."""
        name = free_name(self.scope, _NAMES)
        loss = ast.get_source_segment(self.file.text, self.loss) or ast.unparse(self.loss)
        if not isinstance(self.loss, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) or "\n" in loss:
            loss = loss if _multiplies(self.loss) and "\n" not in loss else f"({loss})"
        target, loop = self.file.span(self.statement), self.file.span(self.loop)
        last = f"{name}.backward()"
        if not self.runs:
            last = f"if {{torch}}.is_tensor({name}):\n    {last}"
        return [
            InsertStatements(loop, "before", f"{name} = 0"),
            InsertStatements(target, "before", f"{name} = {name} + {loss}"),
            RemoveStatement(target),
            InsertStatements(loop, "after", last),
        ]

    def _uses(self, name: str) -> int:
        return sum(isinstance(n, ast.Name) and n.id == name for n in walking.walk(self.scope))

    def _filled(self, values: ast.expr, depth: int = 0) -> bool:
        """Whether a loop over ``values`` runs at least one turn, by what stands in the text."""
        if isinstance(values, (ast.List, ast.Tuple, ast.Set)):
            return any(not isinstance(e, ast.Starred) for e in values.elts)
        if isinstance(values, ast.Call) and isinstance(values.func, ast.Name) and not values.keywords:
            numbers = [_number(a) for a in values.args]
            if values.func.id == "range" and numbers and None not in numbers:
                return len(range(*numbers)) > 0  # type: ignore[arg-type]
            if values.func.id in ("enumerate", "reversed", "sorted", "list", "tuple", "zip") and values.args:
                return all(self._filled(a, depth) for a in values.args)
        if isinstance(values, ast.Name) and depth < _FOLLOWED:
            return self._assigned(values.id, depth)
        return False

    def _assigned(self, name: str, depth: int) -> bool:
        """Whether a local name is bound once, to something that is not empty, and nothing may shorten that."""
        bound = bindings(self.scope, name)
        given = self.file.parent(bound[0]) if len(bound) == 1 else None
        if not isinstance(given, ast.Assign) or given.targets != bound:
            return False
        argument = any(isinstance(node, ast.arg) and node.arg == name for node in walking.walk(self.scope))
        whole = not argument and all(map(self._keeps_length, reads(self.scope, name)))
        return whole and self._filled(given.value, depth + 1)

    def _keeps_length(self, read: ast.Name) -> bool:
        """Whether code that reads a list leaves as much in it: other names for it, and what gets it, may not."""
        match around := self.file.parent(read):
            case ast.Attribute():
                return around.attr not in ("pop", "clear", "remove", "popleft")
            case ast.Subscript():
                emptied = isinstance(around.ctx, ast.Store) and isinstance(around.slice, ast.Slice)
                return around.slice is read or not (emptied or isinstance(around.ctx, ast.Del))
            case ast.Call():
                return called(around) in _LOOKING
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() | ast.keyword() | ast.Starred():
                return False
        return True


def _multiplies(expression: ast.expr) -> bool:
    """Whether it binds tighter than a sum."""
    return isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mult, ast.Div, ast.Pow, ast.MatMult))


def _number(expression: ast.expr) -> int | None:
    return expression.value if isinstance(expression, ast.Constant) and isinstance(expression.value, int) else None


RULE = BackwardInLossLoop
