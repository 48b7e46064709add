"""What is known of a kept value before it is judged, what kinds of values it may be, and what the run did meanwhile."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from codemods.graph.model.kinds import NodeKind, PlainKind, WalkKind
from codemods.graph.model.nodes import Carrier, Node, Place, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Storing, Trace
from codemods.graph.model.values import Const, Join, Library, Plain, Tensor, Unknown, nodes_of
from codemods.proofs.observations import Shows
from codemods.proofs.syntax import LOOPS
from codemods.source import walking
from codemods.terms.spans import Span

TOTAL = "attached-loss-total"
HISTORY = "attached-loss-history"

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


@dataclass(eq=False)
class Kept:
    """One value that something keeps, in one run: ``nodes`` are its graphs, ``since`` the moment it was put there."""

    rule: str
    place: Place
    name: str
    verb: str
    parts: list[Part]
    nodes: list[Node]
    sums: list[Node]
    since: int
    inside: frozenset[int] = frozenset()
    """Frames between the call that hands the value over and the place that keeps it."""
    keeper: Carrier | None = None
    """The name that keeps it, where that is a name."""
    tensor: bool = False
    number: bool = False
    odd: bool = False
    """Whether what keeps it was given something else elsewhere that is neither a tensor nor a number."""


def through_phi(*nodes: Node) -> Iterator[Node]:
    """Nodes, and for those that are one of several all of these; each once, for many ways may lead to one."""
    seen: set[int] = set()
    stack = [*reversed(nodes)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if node.kind is NodeKind.PHI:
            stack += reversed(node.parents)


def scalar(value: Value) -> bool:
    if isinstance(value, Join):
        return all(scalar(o) for o in value.options)
    if isinstance(value, Tensor):
        return value.scalar or bool(value.node is not None and value.node.scalar)
    if isinstance(value, Unknown):
        return value.node is not None and value.node.scalar
    return isinstance(value, (Plain, Const))


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


def may_be_loss(value: Value) -> bool:
    """Whether it is a tensor or a number, or may be one."""
    if isinstance(value, Join):
        return all(may_be_loss(o) for o in value.options)
    return isinstance(value, (Tensor, Unknown)) or sometimes_number(value)


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


class Run:
    """One run, by what the judges of kept values ask of it; empty until :meth:`index` is called."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.steps = sorted(s.place.clock for s in trace.steps)
        self.stores: dict[Carrier, list[tuple[int, Node, Place]]] = defaultdict(list)
        self.sums: dict[int, tuple[str, Span]] = {}
        """The sums that accumulations made, by the identity of their nodes, with where they stand."""
        self.numbers: set[tuple[int, int]] = set()
        """Places that keep something, each with itself and the calls that handed it a plain number."""
        self.others: set[tuple[int, int]] = set()
        """The same for what is neither a tensor nor a number: None, a text, a list."""
        self.roots: set[int] = set()
        self.loops: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """When each loop began and ended, by the identity of its statement."""

    def index(self) -> None:
        """Read the stores, the roots of backwards and the loops from the trace."""
        self._find_stores()
        self._find_roots()

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

    def _find_stores(self) -> None:
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
        """The nodes that backwards started from; for a value that is one of several, all of them."""
        for walk in self.trace.walks:
            if walk.kind is WalkKind.BACKWARD:
                self.roots |= {id(n) for n in through_phi(*walk.roots) if n.kind is not NodeKind.PHI}
        for ran in self.trace.ran:
            if isinstance(ran.statement, LOOPS):
                self.loops[id(ran.statement)].append((ran.first, ran.last))

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


def _names(code: ast.AST) -> Iterator[str]:
    """The variables and attributes that code reads."""
    for node in walking.walk(code):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr


def _definitions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in walking.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
