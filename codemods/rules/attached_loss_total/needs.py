"""Whether the graph of a kept value is needed, and what must be kept of it: the tensor, or a number."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from codemods.graph.model.arguments import given_for
from codemods.graph.model.facts.libraries import NUMERIC_LIBRARIES, is_logging
from codemods.graph.model.facts.python import NUMBERS_OF
from codemods.graph.model.kinds import Altered, CarrierKind, NodeKind, PlainKind, UseKind, WalkKind
from codemods.graph.model.nodes import Carrier, Node, Place, Use, Value, all_descendants
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Storing, Trace
from codemods.graph.model.values import Const, Join, Library, Plain, Tensor, Unknown, nodes_of, scalar
from codemods.proofs.bindings import memory_of
from codemods.proofs.earlier import Earlier, Keeping
from codemods.proofs.observations import Shows
from codemods.proofs.reach import through_phi, told_apart
from codemods.proofs.syntax import DEFINITIONS, LOOPS
from codemods.proofs.unseen import Outside, Way, leaves_sight
from codemods.rules.attached_loss_total.divisors import Divisors
from codemods.source import walking
from codemods.source.walking import last_name
from codemods.terms.spans import Span

TOTAL = "attached-loss-total"
HISTORY = "attached-loss-history"
_NEEDS_NUMBERS = ("float", "int", "complex")
_OF_NUMBERS = ("float", "int", "round", "abs", "str", "format", "max", "min")
_TEXTS = ("str", "format", "repr", "ascii")
_OF_TEXTS = ("float", "int", "len", "eval", "hash", "complex", "bool", "sorted", "set", "list", "tuple")
_COMPARING = frozenset(("bisect", "heapq", "operator", "random", "statistics"))
"""Libraries of Python that hand on, order or add up what they get, numbers and tensors alike (docs)."""
_PLAIN_ARITHMETIC = ("Add", "Sub", "Mult", "Div", "neg")
_HISTORY = (UseKind.HISTORY_READ, UseKind.REFUSED, UseKind.GRADIENT_READ)

Result = tuple[str, Span, Shows, dict[str, Any]]
"""Path, span, what is shown, and facts."""


@dataclass(frozen=True, eq=False)
class Part:
    """An expression to mend; ``number`` where it is sometimes a number, ``scalar`` where proven to have one element."""

    file: ParsedFile
    expression: ast.expr
    nodes: tuple[Node, ...]
    number: bool
    scalar: bool
    odd: bool
    """Whether it is sometimes neither a tensor nor a number."""


class Copy(NamedTuple):
    """A list, or a dict where it holds ``pairs``, that is copied: what stands at ``span``, or, where that is the call
    that copies it, what ``source`` says; ``mixed`` where not all that it holds are tensors."""

    path: str
    span: Span
    pairs: bool
    source: str
    mixed: bool


@dataclass(eq=False)
class Kept(Keeping):
    """One value that something keeps, in one run: ``nodes`` are its graphs, ``sums`` those of its holder."""

    rule: str
    place: Place
    name: str
    verb: str
    parts: list[Part]
    nodes: list[Node]
    sums: list[Node]
    tensor: bool = False
    number: bool = False
    odd: bool = False
    """Whether what keeps it was given something else elsewhere that is neither a tensor nor a number."""
    freed: bool = False
    """Whether a backward has freed of its graph what walking takes."""
    grown: Place | None = None
    """Where it is kept in the end, where a call hands it over."""
    meant: bool = False
    """Whether it has its graph on purpose: the graph of gradients was asked for."""
    copies: tuple[Copy, ...] = ()
    """Containers that are copied on their way."""


class Run:
    """One run, by what is asked of kept values; each answer is worked out when it is asked for first."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.outside = Outside(trace)
        self.steps = sorted(s.place.clock for s in trace.steps)
        kinds = (Tensor, Unknown, Join, Plain, Const)
        self.grown = [a for a in (*trace.accumulations, *trace.growths) if isinstance(a.added, kinds)]

    @cached_property
    def earlier(self) -> Earlier:
        return Earlier(self.trace)

    @cached_property
    def sums(self) -> dict[int, tuple[str, Span]]:
        """The sums that accumulations made, by the identity of their nodes, with where they stand."""
        found: dict[int, tuple[str, Span]] = {}
        for event in self.grown:
            for node in nodes_of(event.new):
                found.setdefault(id(node), (event.place.path, statement_span(event.place)))
        return found

    @cached_property
    def numbers(self) -> set[tuple[int, int]]:
        """Places that keep something, each with itself and the calls that handed it a plain number."""
        given = [(e.place, e.added) for e in self.grown] + [(e.place, e.value) for e in self.trace.storings]
        return {pair for place, value in given if sometimes_number(value) for pair in _with_calls(place)}

    @cached_property
    def others(self) -> set[tuple[int, int]]:
        """The same for what is neither a tensor nor a number: None, a text, a list."""
        stored = (e for e in self.trace.storings if not e.nodes and (odd(e.value) or odd_part(e.value)))
        return {pair for event in stored for pair in _with_calls(event.place)}

    @cached_property
    def read_later(self) -> set[str]:
        """What the functions read that code gets which cannot be seen, and those of their files that they name."""
        files = dict.fromkeys(frame.file for frame in self.trace.frames)
        pending: list[ast.AST] = [*self.trace.called_unseen]
        names: set[str] = set()
        while pending:
            fresh = set(_names(pending.pop())) - names
            names |= fresh
            pending += [one for file in files for one in file.once(_definitions, file.tree) if one.name in fresh]
        return names

    @cached_property
    def changed(self) -> dict[Node, list[tuple[int, Altered]]]:
        """When tensors are changed in place by whatever name, and how, by the nodes whose memory that is."""
        found: dict[Node, list[tuple[int, Altered]]] = defaultdict(list)
        for change in self.trace.alterations:
            nodes = {node for value in memory_of(change.value) for node in nodes_of(value)}
            for node in nodes if change.how is not Altered.REQUIRES_GRAD else ():
                found[node].append((change.place.clock, change.how))
        return found

    @cached_property
    def roots(self) -> set[int]:
        """The nodes that backwards started from; for a value that is one of several, all of them."""
        walks = (walk for walk in self.trace.walks if walk.kind is WalkKind.BACKWARD)
        return {id(n) for walk in walks for n in through_phi(*walk.roots) if n.kind is not NodeKind.PHI}

    @cached_property
    def loops(self) -> dict[int, list[tuple[int, int]]]:
        """When each loop began and ended, by the identity of its statement."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for ran in self.trace.ran:
            if isinstance(ran.statement, LOOPS):
                found[id(ran.statement)].append((ran.first, ran.last))
        return found

    def proven(self, nodes: Iterable[Node]) -> list[Node]:
        """The nodes that a real run is sure to have.

        One of several that a backward started from counts as well: it has a graph when that backward comes.
        """
        return [n for n in nodes if not n.leaf and (n.certain or (n.kind is NodeKind.PHI and self._sometimes_root(n)))]

    def _sometimes_root(self, node: Node) -> bool:
        return any(p.kind is not NodeKind.PHI and id(p) in self.roots for p in through_phi(node))

    def loop_around(self, place: Place, walked: list[Node]) -> tuple[int, int, ast.AST] | None:
        """The innermost loop around ``place`` in which one of ``walked`` was walked: when it began and ended."""
        for loop, _ in reversed(place.turns()):
            for first, last in self.loops.get(id(loop), ()):
                if first <= place.clock < last and any(
                    first <= w.place.clock < last for n in walked for a in n.ancestors() if not a.leaf for w in a.walks
                ):
                    return first, last, loop
        return None

    def next_step(self, first: int, last: int, attached: list[Node]) -> bool:
        """Whether a step, or a backward through other graphs than those of ``attached``, lies between two moments."""
        if bisect_right(self.steps, last) > bisect_right(self.steps, first):
            return True
        between = [w for w in self.trace.walks if first < w.place.clock < last]
        if not between:
            return False
        mine = {id(a) for n in attached for a in n.ancestors() if not a.leaf}
        return any(not any(id(n) in mine for n in walk.seen) for walk in between)


class Judge:
    """Says of kept values whether their graph is needed, and whether they have to stay tensors."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def kept(
        self,
        rule: str,
        place: Place,
        name: str,
        verb: str,
        parts: Iterable[tuple[ast.expr, Value]],
        attached: list[Node],
        sums: list[Node],
    ) -> Kept:
        """What is known of a value: ``attached`` are its graphs, ``sums`` those of its holder."""
        file = place.frame.file
        found = [
            Part(file, e, tuple(nodes_of(v)), sometimes_number(v), scalar(v), rule == HISTORY and odd(v))
            for e, v in parts
            if self.run.proven(nodes_of(v))
        ]
        kept = Kept(rule, place, name, verb, found, attached, sums, since=place.clock)
        kept.number = (id(place.node), id(place.node)) in self.run.numbers
        kept.odd = (id(place.node), id(place.node)) in self.run.others
        return kept

    def results(self, first: Kept, outlives: Callable[[], bool]) -> Iterator[Result]:
        """The observations about a kept value, which ``outlives`` its step or not."""
        if any(n.walks for n in first.sums):
            # most sums are walked: residual connections, losses of several tasks
            yield needed_at(first.place)
            return
        if not any(a.walks for n in first.nodes for a in n.ancestors() if not a.leaf):
            return
        walked = [w for n in first.nodes for a in n.ancestors() if a.saves and not a.leaf for w in a.walks]
        first.freed = any(w.retains is False for w in walked)
        # who asks for the graph of gradients means it to be walked
        first.meant = not first.freed and any(w.creates is not False for w in walked)
        lasting: bool | None = None
        for kept in self._handed_over(first):
            tensor = self._stays_tensor(kept)
            if tensor is None:
                yield needed_at(kept.place)
                continue
            lasting = outlives() if lasting is None else lasting
            if lasting:
                yield kept.place.path, statement_span(kept.place), Shows.FAULT, self._facts(kept, tensor)
            return

    def _handed_over(self, kept: Kept) -> Iterator[Kept]:
        """Where an argument is kept as it came, the call that hands it over is the cause: others hand numbers.

        The outermost such call comes first, the place that keeps it last.
        """
        inner = kept
        outer = [kept]
        while len(inner.parts) == 1 and len(inner.parts[0].nodes) == 1:
            part = inner.parts[0]
            expression, node = part.expression, part.nodes[0]
            frame = inner.place.frame
            if (
                not isinstance(expression, ast.Name)
                or frame.call is None
                or not isinstance(frame.definition, DEFINITIONS)
            ):
                break
            bound = self.run.earlier.stores.get(Carrier(CarrierKind.LOCAL, frame.fid, expression.id), [])
            if not bound or any(n is not node or p.frame is frame for _, n, p in bound):
                break
            given = given_for(frame, expression.id)
            if given is None or any(frame.birth <= w.place.clock <= frame.end for w in node.walks):
                break
            inner = replace(
                inner,
                rule=HISTORY,
                grown=kept.place,
                parts=[replace(part, file=frame.call.frame.file, expression=given)],
                nodes=[node],
                place=frame.call,
                name=f"{_callee(frame.call)}()",
                verb="keeps",
                number=(id(kept.place.node), id(frame.call.node)) in self.run.numbers,
                odd=(id(kept.place.node), id(frame.call.node)) in self.run.others,
                since=frame.birth,
                inside=inner.inside | {frame.fid},
            )
            outer.append(inner)
        yield from reversed(outer)

    def _facts(self, kept: Kept, tensor: bool) -> dict[str, Any]:
        made = next((n for n in through_phi(kept.nodes[0]) if n.kind is not NodeKind.PHI), kept.nodes[0])
        trail = [(made.place.path, made.place.line, "graph produced here")]
        walk = next((w for n in kept.nodes for a in n.ancestors() if not a.leaf for w in a.walks), None)
        if walk is not None:
            note = "retained here" if walk.retains else "freed here; its nodes stay in memory"
            trail.append((walk.place.path, walk.place.line, note))
        trail.append((kept.place.path, kept.place.line, f"carried by {kept.name} from here on"))
        behind = {id(ancestor) for node in kept.nodes for ancestor in node.ancestors()}
        causes = {self.run.sums[key] for key in behind & self.run.sums.keys()}
        causes.discard((kept.place.path, statement_span(kept.place)))
        parts = tuple(
            # no form fits what is sometimes neither a tensor nor a number
            (p.file.path, p.file.span(p.expression), p.number or kept.number or odd, p.scalar and not odd)
            for p in kept.parts
            for odd in (p.odd or kept.odd,)
        )
        return {
            "belongs": kept.rule,
            "name": kept.name,
            "verb": kept.verb,
            "value": ast.unparse(kept.parts[0].expression) if kept.parts else "losses",
            "parts": parts,
            "copies": kept.copies,
            "tensor": tensor or kept.tensor,
            "causes": tuple(sorted(causes)),
            "trail": tuple(trail),
        }

    def _stays_tensor(self, kept: Kept) -> bool | None:
        """Whether what is kept has to stay a tensor; None where its graph is needed."""
        tensor = False
        pending = list(kept.sums)
        if not kept.sums or kept.inside:
            for node in kept.nodes:
                as_tensor = self._direct_uses(kept, node)
                if as_tensor is None or (kept.meant and self._in_other_hands(kept, node)):
                    return None
                children, changed = self._computed_later(kept, node)
                pending += children
                tensor = tensor or as_tensor or changed or (bool(node.escapes) and kept.rule == HISTORY)
        return self._uses_of_sums(kept, pending, tensor)

    def _direct_uses(self, kept: Kept, node: Node) -> bool | None:
        """The same for one of the kept nodes itself, since it is kept."""
        earlier = self.run.earlier
        walks = (walk for walk in node.walks if walk.place.clock > kept.since and node in walk.roots)
        if told_apart(node) or any(not earlier.had(node, walk.place, kept) for walk in walks):
            return None
        changes = [how for at, how in self.run.changed.get(node, ()) if at >= kept.since]
        if Altered.SHAPE in changes:
            # it has other memory from then on than what shared its own
            return None
        later = (use for use in node.uses if use.place.clock >= kept.since and not benign(use))
        # `kept[-1] is loss` reads the node by two names, and one of them is what is kept
        own = [use for use in later if use.name == "is" or not earlier.had(node, use.place, kept)]
        return None if any(map(_asks_for_history, own)) else bool(own or changes)

    def _computed_later(self, kept: Kept, node: Node) -> tuple[list[Node], bool]:
        """What was computed of a kept node since it is kept, and whether that takes a tensor."""
        found: list[Node] = []
        tensor = False
        for child in node.children:
            # under a key that is not known it is put beside what lay there, a moment before it is kept
            beside = child.kind is NodeKind.PHI and child.place.statement is kept.place.statement
            if child.birth <= kept.since and not beside:
                continue
            if child.kind is not NodeKind.PHI and self.run.earlier.had(node, child.place, kept, child.birth - 1):
                # what is changed in place afterwards changes here as well
                tensor = tensor or changes_in_place(child, node)
                continue
            found.append(child)
            tensor = tensor or not arithmetic(child, node, kept)
        return found, tensor

    def _in_other_hands(self, kept: Kept, node: Node) -> bool:
        """Whether code that cannot be seen may walk it: what has been freed nobody can."""
        if kept.freed:
            return False
        if kept.meant and (leaves_sight([node], (Way.STORED,)) or self.run.outside.keeps_node(node)):
            return True
        return leaves_sight([node], (Way.ESCAPED, Way.MADE))

    def _uses_of_sums(self, kept: Kept, pending: list[Node], tensor: bool) -> bool | None:
        """The same for values computed from the kept one, and from these again."""
        seen: set[Node] = set()
        for node in all_descendants(pending):
            seen.add(node)
            if node.walks or self._in_other_hands(kept, node) or any(map(_asks_for_history, node.uses)):
                return None
            tensor = tensor or bool(node.escapes) or not all(map(benign, node.uses))
            for child in node.children:
                if child not in seen and child not in kept.sums:
                    tensor = tensor or not arithmetic(child, node, kept)
        return tensor or self.run.outside.reflected or _carrier_of(kept.name) in self.run.read_later


def _with_calls(place: Place) -> list[tuple[int, int]]:
    """What is done at a place, by its identity, with itself and with each of the calls that lead to it."""
    return [(id(place.node), id(at.node)) for at in place.chain()]


def needed_at(place: Place) -> Result:
    """What is told of a place whose graph is needed, or of which not all is known."""
    return place.path, statement_span(place), Shows.NEEDED, {}


def _carrier_of(name: str) -> str:
    """The variable or the attribute that ``name`` reads, as people write it: ``total`` of ``self.total["loss"]``."""
    try:
        node = ast.parse(name, mode="eval").body
    except SyntaxError:
        return ""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return last_name(node)


def _asks_for_history(use: Use) -> bool:
    return not use.detached and (use.kind in _HISTORY or (use.kind is UseKind.FORMAT and _read_back(use.place)))


def _callee(place: Place) -> str:
    return ast.unparse(place.node.func) if isinstance(place.node, ast.Call) else "a call"


def _names(code: ast.AST) -> Iterator[str]:
    """The variables and attributes that code reads."""
    for node in walking.walk(code):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            yield last_name(node)


def _definitions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in walking.walk(tree) if isinstance(node, DEFINITIONS)]


def scalar_part(node: Node, event: Storing) -> bool:
    return any(scalar(v) and node in nodes_of(v) for _, v in event.parts)


def sometimes_number(value: Value) -> bool:
    if isinstance(value, Join):
        return any(sometimes_number(o) for o in value.options)
    if isinstance(value, Unknown):
        # of something that cannot be seen nobody knows that it is a tensor, unless a backward says so
        return value.node is None or any(n.kind is NodeKind.CALL and not n.certain for n in through_phi(value.node))
    if isinstance(value, Library):
        return value.node is None
    if isinstance(value, Const):
        return isinstance(value.value, (int, float))
    return isinstance(value, Plain) and value.kind is PlainKind.NUMBER


def odd(value: Value) -> bool:
    """Whether it is sometimes neither a tensor nor a number, such as None, or may be."""
    return isinstance(value, Join) and any(odd_part(o) for o in value.options)


def odd_part(value: Value) -> bool:
    """The same for a value that is not a choice among several."""
    if isinstance(value, (Library, Unknown)):
        return value.node is None
    return not isinstance(value, Tensor) and not sometimes_number(value)


def statement_span(place: Place) -> Span:
    return place.frame.file.span(place.statement if place.statement is not None else place.node)


def benign(use: Use) -> bool:
    """Whether a use works with a number as it does with a tensor, except for the digits that people read.

    A Python float adds in double precision. What is computed from it may decide how training goes on: a seed, a best
    value, a length. So a number has to go straight to people.
    """
    if use.detached or use.kind not in (UseKind.FORMAT, UseKind.CALL):
        return False
    if use.kind is UseKind.FORMAT or is_logging(use.name):
        return True
    top = use.name.partition(".")[0]
    known = use.name in _NEEDS_NUMBERS or use.name in NUMBERS_OF or top in _COMPARING
    return (known or (top in NUMERIC_LIBRARIES and top != "pickle")) and _told(use.place)


def _read_back(place: Place) -> bool:
    """Whether code looks into the text that is made there, which is another of what has no graph."""
    file = place.frame.file
    inner: ast.AST = place.node
    for node in file.outward(inner):
        if isinstance(node, ast.Call) and inner is not node.func:
            if not isinstance(node.func, ast.Name) or node.func.id not in _TEXTS:
                return isinstance(node.func, ast.Name) and node.func.id in _OF_TEXTS
        elif isinstance(node, (ast.Compare, ast.Subscript, ast.If, ast.While, ast.IfExp)):
            return not isinstance(node, ast.IfExp) or inner is node.test
        elif isinstance(node, ast.stmt):
            return False
        inner = node
    return False


def _told(place: Place) -> bool:
    """Whether what is computed there is only printed, formatted or thrown away."""
    file = place.frame.file
    node: ast.AST | None = place.node
    while node is not None:
        inner, node = node, file.parent(node)
        if isinstance(node, (ast.FormattedValue, ast.Expr)):
            return True
        if isinstance(node, ast.Call) and inner is not node.func:
            if isinstance(node.func, ast.Name) and node.func.id == "print":
                return True
            if not isinstance(node.func, ast.Name) or node.func.id not in _OF_NUMBERS:
                return isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)
        elif not isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.keyword, ast.Starred)):
            return False
    return False


def arithmetic(child: Node, parent: Node, kept: Kept) -> bool:
    """Whether an operation gives with a number what it gives with a tensor, as far as printing goes."""
    if child.kind is NodeKind.PHI:
        return True
    at = child.place.node
    label = child.operation
    if child.kind is NodeKind.CALL:
        return is_logging(child.label)
    if child.kind is not NodeKind.OP:
        return False
    if isinstance(at, ast.Call):
        return isinstance(at.func, ast.Name) and at.func.id in ("sum", "abs", "round") and label == at.func.id
    if label not in _PLAIN_ARITHMETIC:
        return False
    if label != "Div":
        return True
    # by 0.0 a number raises, and a tensor gives infinity
    by_it = child.label == "Div:by" or parent is not child.parents[0]
    by_it = by_it or (isinstance(at, ast.BinOp) and child.label == "Div" and isinstance(at.left, ast.Constant))
    if by_it or not isinstance(at, (ast.BinOp, ast.AugAssign)):
        return False
    divisor, dividend = (at.right, at.left) if isinstance(at, ast.BinOp) else (at.value, at.target)
    return Divisors(kept.grown or kept.place).never_zero(divisor, child.place, dividend)


def changes_in_place(child: Node, node: Node) -> bool:
    at = child.place.node
    if not child.parents or child.parents[0] is not node:
        return False
    return isinstance(at, ast.AugAssign) or (isinstance(at, ast.Call) and child.label.endswith("_"))
