"""Attached values that are only kept: in a sum, in a list, as the best so far.

What the rules ``attached-loss-total`` and ``attached-loss-history`` share: both read the same facts of a run, and which
of them a place belongs to is decided here, so that one cause gives one finding.

A value is *kept* if what holds it still does when the next step has begun, if the graph behind it served a ``backward``
(a graph that never did is evaluation, which another rule mends) and if no ``backward`` ever comes through what holds
it.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from codemods.edits.model import Edit, WrapExpression
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.graph import facts
from codemods.graph.program import ParsedFile
from codemods.graph.trace import Accumulation, Frame, Place, Storing, Trace
from codemods.graph.values import Carrier, Const, Join, Node, Plain, Tensor, Unknown, Value
from codemods.rules._carried import averages
from codemods.rules.base import Decision, Observation, Rule

TOTAL = "attached-loss-total"
HISTORY = "attached-loss-history"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_NEEDS_NUMBERS = ("float", "int", "complex")
_KEEPS_OBJECTS = frozenset(
    ("pickle", "multiprocessing", "queue", "threading", "copyreg", "types", "functools", "itertools", "collections")
)
"""Libraries of the standard library that hand on what they get as it is."""
_PLAIN_ARITHMETIC = ("Add", "Sub", "Mult", "Div", "neg")


@dataclass(frozen=True, eq=False)
class _Part:
    """An expression to mend; ``number`` where it is sometimes a number, ``scalar`` where proven to have one element."""

    file: ParsedFile
    expression: ast.expr
    nodes: tuple[Node, ...]
    number: bool
    scalar: bool
    odd: bool
    """Whether it is sometimes neither a tensor nor a number."""


@dataclass(eq=False)
class _Kept:
    """One value that something keeps, in one run: ``nodes`` are its graphs, ``since`` the moment it was put there."""

    rule: str
    place: Place
    name: str
    verb: str
    parts: list[_Part]
    nodes: list[Node]
    sums: list[Node]
    since: int
    inside: frozenset[int] = frozenset()
    """Frames between the call that hands the value over and the place that keeps it."""
    keeper: Carrier | None = None
    """The name that keeps it, where that is a name."""
    tensor: bool = False
    number: bool = False


_Result = tuple[str, Span, str, dict[str, Any]]
"""Path, span, verdict and facts."""

_RESULTS: WeakKeyDictionary[Trace, list[_Result]] = WeakKeyDictionary()
"""What was read of a run: two rules ask for it."""


def observe(rule: Rule, trace: Trace) -> Iterator[Observation]:
    """What one run shows about the places that keep attached values."""
    results = _RESULTS.get(trace)
    if results is None:
        results = _RESULTS[trace] = list(_Ledger(trace).read())
    for path, span, verdict, seen in results:
        yield Observation(rule.name, path, span, "kept", verdict, seen)


class _Ledger:
    """Reads one run."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.steps = sorted(s.place.clock for s in trace.steps)
        self.stores: dict[Carrier, list[tuple[int, Node, Place]]] = defaultdict(list)
        self.sums: dict[int, tuple[str, Span]] = {}
        """The sums that accumulations made, by the identity of their nodes, with where they stand."""
        self.numbers: set[tuple[int, int]] = set()
        """Places that keep something, each with itself and the calls that handed it a plain number."""
        self.roots: set[int] = set()
        self.loops: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """When each loop began and ended, by the identity of its statement."""

    def read(self) -> Iterator[_Result]:
        """What the run shows, place by place."""
        sums = [a for a in self.trace.accumulations if isinstance(a.added, (Tensor, Unknown, Join, Plain, Const))]
        if not self.trace.complete:
            # nothing is known of what would have come
            places = [e.place for e in sums if e.parts] + [e.place for e in self.trace.storings if e.parts]
            for place in places:
                yield place.path, _statement(place), "needed", {"why": "budget"}
            return
        if not self.trace.walks:
            return
        self._index()
        self._find_roots()
        given = [(e.place, e.added) for e in sums] + [(e.place, e.value) for e in self.trace.storings]
        for at, value in given:
            if isinstance(value, (Plain, Const, Join)) and _sometimes_number(value):
                self.numbers |= {(id(at.node), id(p.node)) for p in at.chain()[:4]}
        yield from self._totals(sums)
        yield from self._histories()
        yield from self._bests()

    def _index(self) -> None:
        seen: set[int] = set()
        for node in self.trace.nodes:
            for one in (node, *node.children):
                if id(one) in seen:
                    continue
                seen.add(id(one))
                for carrier, place in one.stores:
                    self.stores[carrier].append((place.clock, one, place))
        for found in self.stores.values():
            found.sort(key=lambda s: s[0])

    def _find_roots(self) -> None:
        """What backward started from; of a value that is one of several, each of them."""
        for walk in self.trace.walks:
            if walk.kind == "backward":
                self.roots |= {id(n) for root in walk.roots for n in _through_phi(root) if n.kind != "phi"}
        for ran in self.trace.ran:
            if isinstance(ran.statement, _LOOPS):
                self.loops[id(ran.statement)].append((ran.first, ran.last))

    def _proven(self, nodes: Iterable[Node]) -> list[Node]:
        """The nodes that a real run is sure to have.

        One of several that a backward started from counts as well: it has a graph when that backward comes.
        """
        return [n for n in nodes if not n.leaf and (n.certain or (n.kind == "phi" and self._sometimes_root(n)))]

    def _sometimes_root(self, node: Node) -> bool:
        return any(p.kind != "phi" and id(p) in self.roots for p in _through_phi(node))

    def _loop_around(self, place: Place, walked: list[Node]) -> tuple[int, int, ast.AST] | None:
        """The innermost loop around ``place`` in which one of ``walked`` was walked: when it began and ended."""
        for loop, _ in reversed(place.turns()):
            for first, last in self.loops.get(id(loop), ()):
                if first <= place.clock < last and any(
                    first <= w.place.clock < last for n in walked for a in n.ancestors() if not a.leaf for w in a.walks
                ):
                    return first, last, loop
        return None

    # sums

    def _totals(self, sums: list[Accumulation]) -> Iterator[_Result]:
        by_place: dict[int, list[Accumulation]] = defaultdict(list)
        for event in sums:
            by_place[id(event.place.node)].append(event)
            for node in _nodes(event.new):
                self.sums.setdefault(id(node), (event.place.path, _statement(event.place)))
        for events in by_place.values():
            for i, event in enumerate(events):
                attached = self._proven(_nodes(event.added))
                if not attached or not event.parts or not _nodes(event.new) or event.grad is not True:
                    continue
                if averages(self.trace, event):
                    continue
                kept = self._kept(
                    TOTAL, event.place, _name(event.target), "adds up", event.parts, attached, _nodes(event.new)
                )
                around = events[max(0, i - 7) : i], events[i + 1 : i + 8]
                yield from self._judge(kept, partial(self._sum_outlives, event, attached, *around))

    def _sum_outlives(
        self, event: Accumulation, attached: list[Node], before: list[Accumulation], after: list[Accumulation]
    ) -> bool:
        """Whether the sum is still there when the next step has begun."""
        return (
            any(self._carried(event, later, attached) for later in after)
            or any(self._carried(former, event, self._proven(_nodes(former.added))) for former in before)
            or self._never_reset(event, attached)
        )

    def _carried(self, first: Accumulation, later: Accumulation, attached: list[Node]) -> bool:
        """Whether the sum of ``first`` is still there when the next step has begun and ``later`` adds to it."""
        sums = {id(n) for n in _nodes(first.new)}
        if not sums or not any(id(a) in sums for n in _nodes(later.old) for a in n.ancestors()):
            return False
        return self._next_step(first.place.clock, later.place.clock, attached)

    def _never_reset(self, event: Accumulation, attached: list[Node]) -> bool:
        """Whether nothing assigns the target anew in the loop whose turns are the steps."""
        around = self._loop_around(event.place, attached)
        frame = event.place.frame
        if around is None or not any(around[2] is loop for loop, _ in event.place.loops):
            return False
        if not isinstance(event.target, ast.Name) or not isinstance(event.old, (Const, Plain, Join)):
            return False
        name = event.target.id
        stores = [
            n for n in ast.walk(around[2]) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        ]
        return all(frame.file.parent(n) is event.place.statement for n in stores)

    def _next_step(self, first: int, last: int, attached: list[Node]) -> bool:
        """Whether a step, or a backward through other graphs than those of ``attached``, lies between two moments."""
        if bisect_right(self.steps, last) > bisect_right(self.steps, first):
            return True
        between = [w for w in self.trace.walks if first < w.place.clock < last]
        if not between:
            return False
        mine = {id(a) for n in attached for a in n.ancestors() if not a.leaf}
        return any(not any(id(n) in mine for n in walk.seen) for walk in between)

    # containers

    def _histories(self) -> Iterator[_Result]:
        by_place: dict[int, list[Storing]] = defaultdict(list)
        summed = {id(a.place.statement) for a in self.trace.accumulations if _nodes(a.new)}
        for event in self.trace.storings:
            if id(event.place.statement) not in summed:
                by_place[id(event.place.node)].append(event)
        for events in by_place.values():
            for i, event in enumerate(events):
                attached = [n for n in self._proven(event.nodes) if n.scalar or _scalar_part(n, event)]
                if not attached:
                    continue
                # an element of a tensor: what its readers get is a tensor whatever was written
                written = list(event.held) if event.method == "element" else []
                kept = self._kept(HISTORY, event.place, _container(event), "keeps", event.parts, attached, written)
                kept.tensor = bool(written)
                around = events[max(0, i - 7) : i], events[i + 1 : i + 8]
                yield from self._judge(kept, partial(self._element_outlives, event, attached, *around))

    def _element_outlives(
        self, event: Storing, attached: list[Node], before: list[Storing], after: list[Storing]
    ) -> bool:
        """Whether the element is still there when the next step has begun."""
        return (
            any(self._still_held(event, later) for later in after)
            or any(self._still_held(former, event) for former in before)
            or self._outlives_turns(event, attached)
        )

    def _still_held(self, first: Storing, later: Storing) -> bool:
        if first.method == "element":
            before = {id(n) for n in first.held}
            return any(id(a) in before for n in later.held for a in n.ancestors()) and self._next_step(
                first.place.clock, later.place.clock, self._proven(first.nodes)
            )
        if getattr(first.container, "oid", 0) != getattr(later.container, "oid", -1):
            return False
        held = {id(n) for node in later.held for n in _through_phi(node)}
        attached = self._proven(first.nodes)
        return any(id(n) in held for n in attached) and self._next_step(first.place.clock, later.place.clock, attached)

    def _outlives_turns(self, event: Storing, attached: list[Node]) -> bool:
        """Whether the container is older than the loop whose turns are the steps, and nothing is taken from it there.

        The simulation runs two turns; what a later turn does first, after a warm-up, is seen once.
        """
        around = self._loop_around(event.place, attached)
        if around is None or event.method == "element" or (event.method == "[]" and _constant_key(event)):
            return False
        first, last, _ = around
        oid = getattr(event.container, "oid", 0)
        return event.born < first and not any(o == oid and first <= at < last for o, at in self.trace.emptied)

    # the best so far

    def _bests(self) -> Iterator[_Result]:
        for node in self.trace.nodes:
            if not node.certain or node.leaf or not node.scalar or not node.walks or not node.stale_reads:
                continue
            for carrier, place in node.stores:
                statement = place.statement
                if not isinstance(statement, ast.Assign) or carrier.kind not in ("local", "global", "attribute"):
                    continue
                part = _assigned(statement, place.node)
                candidate = _candidate(part, carrier.name) if part is not None else None
                if candidate is not None:
                    part = candidate
                elif part is None or not _chosen(place, part):
                    continue
                reads = [r for c, r in node.stale_reads if c == carrier and _later_turn(place, r)]
                if not reads:
                    continue
                kept = self._kept(TOTAL, place, carrier.name, "holds on to", ((part, Tensor(node, True)),), [node], [])
                kept.tensor = True
                kept.keeper = carrier
                yield from self._judge(kept, lambda: True)

    # judging

    def _kept(
        self,
        rule: str,
        place: Place,
        name: str,
        verb: str,
        parts: Iterable[tuple[ast.expr, Value]],
        attached: list[Node],
        sums: list[Node],
    ) -> _Kept:
        file = place.frame.file
        found = [
            _Part(file, e, tuple(_nodes(v)), _sometimes_number(v), _scalar(v), rule == HISTORY and _odd(v))
            for e, v in parts
            if self._proven(_nodes(v))
        ]
        kept = _Kept(rule, place, name, verb, found, attached, sums, place.clock)
        kept.number = (id(place.node), id(place.node)) in self.numbers
        return kept

    def _handed_over(self, kept: _Kept) -> Iterator[_Kept]:
        """Where an argument is kept as it came, the call that hands it over is the cause: others hand numbers.

        The outermost such call comes first, the place that keeps it last.
        """
        inner = kept
        outer = [kept]
        while len(inner.parts) == 1 and len(inner.parts[0].nodes) == 1:
            part = inner.parts[0]
            expression, node = part.expression, part.nodes[0]
            frame = inner.place.frame
            if not isinstance(expression, ast.Name) or frame.call is None:
                break
            if not isinstance(frame.definition, _FUNCTIONS):
                break
            bound = self.stores.get(Carrier("local", frame.fid, expression.id), [])
            if not bound or any(n is not node or p.frame is frame for _, n, p in bound):
                break
            given = _argument(frame, expression.id)
            if given is None or any(frame.birth <= w.place.clock <= frame.end for w in node.walks):
                break
            inner = replace(
                inner,
                rule=HISTORY,
                parts=[replace(part, file=frame.call.frame.file, expression=given)],
                nodes=[node],
                place=frame.call,
                name=f"{_callee(frame.call)}()",
                verb="keeps",
                number=(id(kept.place.node), id(frame.call.node)) in self.numbers,
                since=frame.birth,
                inside=inner.inside | {frame.fid},
            )
            outer.append(inner)
        yield from reversed(outer)

    def _judge(self, first: _Kept, outlives: Callable[[], bool]) -> Iterator[_Result]:
        if any(n.walks for n in first.sums):
            # most sums are walked: residual connections, losses of several tasks
            yield first.place.path, _statement(first.place), "needed", {"why": "walked"}
            return
        if not any(a.walks for n in first.nodes for a in n.ancestors() if not a.leaf):
            return
        freed = any(
            w.retains is False for n in first.nodes for a in n.ancestors() if a.saves and not a.leaf for w in a.walks
        )
        lasting: bool | None = None
        for kept in self._handed_over(first):
            path, span = kept.place.path, _statement(kept.place)
            needed, tensor = self._uses(kept, freed)
            if needed:
                yield path, span, "needed", {"why": needed}
                continue
            lasting = outlives() if lasting is None else lasting
            if lasting:
                yield path, span, "fault", self._facts(kept, tensor)
            return

    def _facts(self, kept: _Kept, tensor: bool) -> dict[str, Any]:
        made = next((n for n in _through_phi(kept.nodes[0]) if n.kind != "phi"), kept.nodes[0])
        trail = [(made.place.path, made.place.line, "graph produced here")]
        walk = next((w for n in kept.nodes for a in n.ancestors() if not a.leaf for w in a.walks), None)
        if walk is not None:
            trail.append((walk.place.path, walk.place.line, "freed here, all but its nodes"))
        trail.append((kept.place.path, kept.place.line, f"carried by {kept.name} from here on"))
        causes: set[tuple[str, Span]] = set()
        own = (kept.place.path, _statement(kept.place))
        for node in kept.nodes:
            for ancestor in node.ancestors():
                found = self.sums.get(id(ancestor))
                if found is not None and found != own:
                    causes.add(found)
        parts = tuple(
            (p.file.path, p.file.span(p.expression), p.number or kept.number, p.scalar, p.odd) for p in kept.parts
        )
        return {
            "belongs": kept.rule,
            "name": kept.name,
            "verb": kept.verb,
            "value": ast.unparse(kept.parts[0].expression) if kept.parts else "losses",
            "parts": parts,
            "tensor": tensor or kept.tensor,
            "causes": tuple(sorted(causes)),
            "trail": tuple(trail),
        }

    def _uses(self, kept: _Kept, freed: bool) -> tuple[str, bool]:
        """Why the graph is needed (empty if it is not), and whether what is kept has to stay a tensor."""
        tensor = False
        pending = list(kept.sums)
        direct = bool(not kept.sums or kept.inside)
        if direct:
            for node in kept.nodes:
                if any(
                    w.place.clock > kept.since and node in w.roots and not self._by_name(node, w.place, kept)
                    for w in node.walks
                ):
                    return "walked", False
                for kind, place in node.uses:
                    if place.clock >= kept.since and not _benign(kind) and not self._by_name(node, place, kept):
                        tensor = True
                for child in node.children:
                    if child.birth <= kept.since:
                        continue
                    if child.kind != "phi" and self._by_name(node, child.place, kept, child.birth - 1):
                        # what is changed in place afterwards changes here as well
                        tensor = tensor or _changes_in_place(child, node)
                        continue
                    pending.append(child)
                    tensor = tensor or not _arithmetic(child, node, kept)
                if node.escapes and kept.rule == HISTORY:
                    tensor = True
        seen: set[int] = set()
        first = {id(n) for n in kept.sums}
        while pending:
            node = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.walks:
                return "walked", False
            if (node.escapes or node.kind == "call") and not freed:
                return "may be walked by code that cannot be seen", False
            if node.escapes or not all(_benign(kind) for kind, _ in node.uses):
                tensor = True
            for child in node.children:
                if id(child) not in seen:
                    pending.append(child)
                    if id(child) not in first:
                        tensor = tensor or not _arithmetic(child, node, kept)
        return "", tensor

    # by which name a value was used

    def _by_name(self, node: Node, place: Place, kept: _Kept, clock: int | None = None) -> bool:
        """Whether code at ``place`` got at ``node`` by a name that had it before it was kept, not through its keeper.

        ``clock`` is the moment just before, if not that of the place.
        """
        at = place.clock if clock is None else clock
        return any(self._had(node, expression, place, kept, at, 0) for expression in _operands(place.node))

    def _had(self, node: Node, expression: ast.expr, place: Place, kept: _Kept, clock: int, depth: int) -> bool:
        frame = place.frame
        owners: set[int] = set()
        if isinstance(expression, ast.Name):
            name, attribute = expression.id, False
            owners = {frame.fid, frame.module_globals, frame.function.closure if frame.function is not None else 0}
        elif isinstance(expression, ast.Attribute):
            name, attribute = expression.attr, True
        else:
            return False
        for carrier in {c for c, _ in node.stores if c.name == name}:
            if (carrier.kind == "attribute") is not attribute or carrier.kind == "element" or carrier == kept.keeper:
                continue
            if not attribute and (carrier.owner not in owners or carrier.owner in kept.inside):
                continue
            stores = self.stores.get(carrier, [])
            at = bisect_right([moment for moment, _, _ in stores], clock) - 1
            # the clock stands still where nothing is recorded: of stores at one moment the last one counts
            if at < 0 or stores[at][1] is not node:
                continue
            moment, _, origin = stores[at]
            if moment < kept.since or (kept.keeper is not None and moment == kept.since):
                return True
            source = _source(origin) if depth < 3 else None
            if source is not None and any(
                self._had(node, e, origin, kept, origin.clock, depth + 1) for e in _operands(source)
            ):
                return True
        return False


# reading nodes and syntax


def _nodes(value: Value) -> list[Node]:
    if isinstance(value, Join):
        return [n for option in value.options for n in _nodes(option)]
    return [value.node] if isinstance(value, (Tensor, Unknown)) and value.node is not None else []


def _through_phi(node: Node) -> Iterator[Node]:
    yield node
    if node.kind == "phi":
        for parent in node.parents:
            yield from _through_phi(parent)


def _scalar(value: Value) -> bool:
    if isinstance(value, Join):
        return all(_scalar(o) for o in value.options)
    if isinstance(value, Tensor):
        return value.scalar or bool(value.node is not None and value.node.scalar)
    if isinstance(value, Unknown):
        return value.node is not None and value.node.scalar
    return isinstance(value, (Plain, Const))


def _scalar_part(node: Node, event: Storing) -> bool:
    return any(_scalar(v) and node in _nodes(v) for _, v in event.parts)


def _sometimes_number(value: Value) -> bool:
    if isinstance(value, Join):
        # of something that cannot be seen nobody knows that it is a tensor
        return any(_sometimes_number(o) or (isinstance(o, Unknown) and o.node is None) for o in value.options)
    if isinstance(value, Const):
        return isinstance(value.value, (int, float))
    return isinstance(value, Plain) and value.kind == "number"


def _odd(value: Value) -> bool:
    """Whether it is sometimes neither a tensor nor a number, such as None."""
    return isinstance(value, Join) and any(
        not isinstance(o, (Tensor, Unknown)) and not _sometimes_number(o) for o in value.options
    )


def _statement(place: Place) -> Span:
    return place.frame.file.span(place.statement if place.statement is not None else place.node)


def _name(target: ast.expr) -> str:
    return ast.unparse(target)


def _callee(place: Place) -> str:
    return ast.unparse(place.node.func) if isinstance(place.node, ast.Call) else "a call"


def _container(event: Storing) -> str:
    node = event.place.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return ast.unparse(node.func.value)
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value)
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target)
    return "a container"


def _constant_key(event: Storing) -> bool:
    node = event.place.node
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def _assigned(statement: ast.Assign, target: ast.AST) -> ast.expr | None:
    """What an assignment gives to one of its targets."""
    for whole in statement.targets:
        if whole is target:
            return statement.value
        if isinstance(whole, (ast.Tuple, ast.List)) and isinstance(statement.value, (ast.Tuple, ast.List)):
            for element, given in zip(whole.elts, statement.value.elts, strict=False):
                if element is target:
                    return given
    return None


def _chosen(place: Place, part: ast.expr) -> bool:
    """Whether a store is one of a maximum or minimum: under an ``if`` that compares what is stored, within a loop."""
    file = place.frame.file
    text = ast.unparse(part)
    outer = file.parent(place.statement) if place.statement is not None else None
    while outer is not None and not isinstance(outer, (*_FUNCTIONS, ast.For, ast.While, ast.AsyncFor)):
        if isinstance(outer, ast.If):
            for test in ast.walk(outer.test):
                if isinstance(test, ast.Compare) and any(
                    ast.unparse(e) == text for e in (test.left, *test.comparators)
                ):
                    return not isinstance(test.ops[0], (ast.Is, ast.IsNot))
        outer = file.parent(outer)
    return False


def _candidate(value: ast.expr, name: str) -> ast.expr | None:
    """What is new in ``min(best, new)`` or ``new if new < best else best``."""
    arms: list[ast.expr] = []
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("min", "max"):
        arms = value.args
    elif isinstance(value, ast.IfExp) and isinstance(value.test, ast.Compare):
        arms = [value.body, value.orelse]
    others = [a for a in arms if getattr(a, "id", getattr(a, "attr", "")) != name]
    return others[0] if len(arms) == 2 and len(others) == 1 else None


def _later_turn(first: Place, later: Place) -> bool:
    turns = {id(loop): turn for loop, turn in first.turns()}
    return any(id(loop) in turns and turn > turns[id(loop)] for loop, turn in later.turns())


def _argument(frame: Frame, name: str) -> ast.expr | None:
    """The expression that the call of ``frame`` gives to the parameter ``name``."""
    call = frame.call.node if frame.call is not None else None
    definition = frame.definition
    if not isinstance(call, ast.Call) or not isinstance(definition, _FUNCTIONS) or frame.function is None:
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [a.arg for a in (*definition.args.posonlyargs, *definition.args.args)]
    if name not in names or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    bound = frame.receiver is not None and frame.function.kind != "staticmethod"
    at = names.index(name) - (1 if bound else 0)
    return call.args[at] if 0 <= at < len(call.args) else None


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    """The names and attributes that an expression, or the head of a statement, reads."""
    heads: list[ast.AST | None]
    if isinstance(node, (ast.If, ast.While, ast.Assert)):
        heads = [node.test]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        heads = [node.iter]
    elif isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.With, ast.AsyncWith, ast.Try)):
        heads = []
    else:
        heads = [node]
    stack = [h for h in heads if h is not None]
    while stack:
        found = stack.pop()
        if isinstance(found, (ast.Name, ast.Attribute)):
            yield found
        if isinstance(found, ast.Subscript):
            # an element of something is what the something keeps
            stack.append(found.slice)
            continue
        stack.extend(ast.iter_child_nodes(found))


def _source(origin: Place) -> ast.AST | None:
    """The expression that a store at ``origin`` took its value from."""
    if isinstance(origin.node, ast.Call):
        return origin.node
    statement = origin.statement
    if isinstance(statement, ast.Assign):
        return _assigned(statement, origin.node)
    return None


# what a use asks for


def _benign(kind: str) -> bool:
    """Whether a use does with a number what it does with a tensor."""
    if kind == "format":
        return True
    how, _, called = kind.partition(":")
    if how != "call":
        return False
    top = called.partition(".")[0]
    return (
        called in _NEEDS_NUMBERS
        or called in facts.LOGGING_METHODS
        or (top in facts.NUMERIC_LIBRARIES and top not in _KEEPS_OBJECTS)
    )


def _arithmetic(child: Node, parent: Node, kept: _Kept) -> bool:
    """Whether an operation gives with a number what it gives with a tensor, as far as printing goes."""
    if child.kind == "phi":
        return True
    at = child.place.node
    label = child.label.partition(":")[0]
    if child.kind == "call":
        return child.label in facts.LOGGING_METHODS
    if child.kind != "op":
        return False
    if isinstance(at, ast.Call):
        return isinstance(at.func, ast.Name) and at.func.id in ("sum", "abs", "round") and label == at.func.id
    if label not in _PLAIN_ARITHMETIC:
        return False
    if label == "Div":
        if child.parents[0] is not parent and parent not in child.parents[:1]:
            return False
        divisor = at.right if isinstance(at, ast.BinOp) else at.value if isinstance(at, ast.AugAssign) else None
        if divisor is None or _may_be_zero(divisor, child.place, kept):
            return False
        if isinstance(at, ast.BinOp) and child.label == "Div" and _is_number(at.left):
            return False
    return True


def _is_number(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant)


_COUNTS_FEW = ("sum", "item", "count_nonzero", "nonzero", "count", "any", "all", "eq", "tolist")


def _may_be_zero(divisor: ast.expr, place: Place, kept: _Kept) -> bool:
    """Whether a divisor is a count that something suggests may be 0 where the sum holds a tensor."""
    if isinstance(divisor, ast.Constant):
        return not divisor.value
    if isinstance(divisor, ast.BinOp):
        if isinstance(divisor.op, ast.FloorDiv):
            return True
        if isinstance(divisor.op, ast.Add):
            sides = (divisor.left, divisor.right)
            return not any(isinstance(s, ast.Constant) and s.value for s in sides)
        if isinstance(divisor.op, ast.Mult):
            return _may_be_zero(divisor.left, place, kept) or _may_be_zero(divisor.right, place, kept)
        if isinstance(divisor.op, ast.Div):
            return _may_be_zero(divisor.left, place, kept)
        return isinstance(divisor.op, ast.Sub)
    if isinstance(divisor, ast.Call):
        if isinstance(divisor.func, ast.Name):
            if divisor.func.id == "max":
                return False
            if divisor.func.id in ("float", "int", "round", "abs") and divisor.args:
                return _may_be_zero(divisor.args[0], place, kept)
        return isinstance(divisor.func, ast.Attribute) and divisor.func.attr in _COUNTS_FEW
    if isinstance(divisor, (ast.Name, ast.Attribute)):
        return _counts_few(divisor, place, kept)
    return False


def _counts_few(counter: ast.Name | ast.Attribute, place: Place, kept: _Kept) -> bool:
    """Whether a counter grows by what may be nothing, or only on some of the paths on which the sum grows."""
    file = place.frame.file
    scope: ast.AST | None = place.frame.definition
    if scope is None or isinstance(counter, ast.Attribute):
        scope = file.tree
    text = ast.unparse(counter)
    grown = kept.place.statement if kept.place.frame.file is file else None
    around = set(_conditions(file, grown))
    for node in ast.walk(scope):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and ast.unparse(node.target) == text:
            if _may_be_nothing(node.value):
                return True
            if grown is not None and not kept.inside and any(c not in around for c in _conditions(file, node)):
                return True
        assigned = isinstance(node, ast.Assign) and any(ast.unparse(t) == text for t in node.targets)
        if isinstance(node, ast.Assign) and assigned and _may_be_nothing(node.value):
            return True
    return False


def _may_be_nothing(value: ast.expr) -> bool:
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _COUNTS_FEW
        for n in ast.walk(value)
    ) or any(isinstance(n, ast.Compare) for n in ast.walk(value))


def _conditions(file: ParsedFile, node: ast.AST | None) -> Iterator[ast.AST]:
    while node is not None:
        node = file.parent(node)
        if isinstance(node, _FUNCTIONS):
            return
        if isinstance(node, (ast.If, ast.Try)):
            yield node


def _changes_in_place(child: Node, node: Node) -> bool:
    at = child.place.node
    if not child.parents or child.parents[0] is not node:
        return False
    return isinstance(at, ast.AugAssign) or (isinstance(at, ast.Call) and child.label.endswith("_"))


# deciding


@dataclass(eq=False)
class _Place:
    """All that was observed at one statement."""

    faults: list[dict[str, Any]] = field(default_factory=list)
    needed: bool = False


def decide(rule: Rule, observations: Iterable[Observation], decision: Decision) -> Iterator[Finding]:
    """The findings of one of the two rules."""
    places: dict[tuple[str, Span], _Place] = defaultdict(_Place)
    for observation in observations:
        place = places[(observation.path, observation.span)]
        if observation.verdict == "fault":
            place.faults.append(observation.facts)
        else:
            place.needed = True
    faulty = {key for key, place in places.items() if place.faults and not place.needed}
    further: dict[tuple[str, Span], list[TrailStep]] = defaultdict(list)
    reported: list[tuple[str, Span]] = []
    for key in sorted(faulty):
        causes = {c for f in places[key].faults for c in f["causes"]} & faulty
        if causes:
            for cause in causes:
                further[cause].append(TrailStep(key[0], key[1].line, "and handed on here"))
        else:
            reported.append(key)
    for key in reported:
        known = places[key].faults
        belongs = HISTORY if any(f["belongs"] == HISTORY for f in known) else TOTAL
        if belongs == rule.name:
            yield _finding(rule, key, known, further[key], decision)


def _finding(
    rule: Rule,
    key: tuple[str, Span],
    known: list[dict[str, Any]],
    further: list[TrailStep],
    decision: Decision,
) -> Finding:
    path, span = key
    first = known[0]
    tensor = any(f["tensor"] for f in known)
    parts: dict[tuple[str, Span], tuple[bool, bool, bool]] = {}
    for seen in known:
        for where, part, number, scalar, odd in seen["parts"]:
            before = parts.get((where, part), (False, True, False))
            parts[(where, part)] = (before[0] or number, before[1] and scalar, before[2] or odd)
    edits: list[tuple[str, Edit]] = []
    promise = rule.promise
    texts = []
    for (where, part), (number, scalar, odd) in sorted(parts.items()):
        style = None if odd else _style(decision.options.total_style, tensor=tensor, number=number, scalar=scalar)
        if style is None:
            promise = Promise.ADVICE
            continue
        prefix, suffix = {"float": ("float(", ")"), "item": ("", ".item()"), "detach": ("", ".detach()")}[style]
        edits.append((where, WrapExpression(part, prefix, suffix)))
        texts.append(f"`{prefix}{first['value']}{suffix}`" if len(parts) == 1 else f"`{prefix}...{suffix}`")
    message = (
        f"{first['name']} {first['verb']} {first['value']} with its graph, which is back-propagated already: "
        "the graph of every step stays in memory and nothing will walk it again"
    )
    if first["verb"] == "holds on to":
        message = (
            f"{first['name']} holds on to {first['value']} with its graph, which stays in memory while later steps run "
            "and which nothing will walk again"
        )
    if not parts:
        promise = Promise.ADVICE
        message += "; they come in a container, and it cannot be seen that nobody else needs it as it is"
        remedy = "detach them where the container is made, or store what is read of them"
    elif promise is Promise.ADVICE:
        edits = []
        message += "; it is not always a tensor, and no one form fits all that is read of it"
        remedy = ""
    else:
        remedy = f"keep {' and '.join(dict.fromkeys(texts))} instead"
    trail = tuple(dict.fromkeys([TrailStep(*step) for step in first["trail"]] + further))[:6]
    return Finding(rule.name, path, span, promise, message, remedy, trail, tuple(edits))


def _style(wanted: str, *, tensor: bool, number: bool, scalar: bool) -> str | None:
    """``float``, ``item`` or ``detach``; None where no form fits.

    What is read as a tensor, or is not proven to have one element, stays one whatever the user prefers: a number would
    break its readers. A value that is sometimes a number has no ``detach`` and no ``item``.
    """
    if number:
        return "float" if scalar and not tensor else None
    if tensor or not scalar:
        return "detach"
    return "float" if wanted == "auto" else wanted
