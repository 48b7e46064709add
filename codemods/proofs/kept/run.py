"""One run's stores, steps, loops and backwards, as the judges of kept values ask for them."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.graph.model.kinds import NodeKind, WalkKind
from codemods.graph.model.nodes import Carrier, Node, Place
from codemods.graph.model.trace import Trace
from codemods.proofs.kept.model import (
    through_phi,
)
from codemods.proofs.syntax import LOOPS
from codemods.terms.spans import Span


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
                self.roots |= {id(n) for root in walk.roots for n in through_phi(root) if n.kind is not NodeKind.PHI}
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
    for node in ast.walk(code):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr


def _definitions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
