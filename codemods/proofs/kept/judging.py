"""Whether the graph of a kept value is needed, and what must be kept of it: the tensor, or a number."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from codemods.graph.model.arguments import given_for
from codemods.graph.model.kinds import CarrierKind, NodeKind, UseKind, WalkKind
from codemods.graph.model.nodes import Carrier, Node, Place, Use, Value, all_descendants
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import nodes_of
from codemods.proofs.kept.earlier import Earlier
from codemods.proofs.kept.uses import (
    HISTORY,
    Kept,
    Part,
    arithmetic,
    benign,
    changes_in_place,
    odd,
    scalar,
    sometimes_number,
    statement_span,
)
from codemods.proofs.observations import Shows
from codemods.proofs.reach import through_phi
from codemods.proofs.syntax import DEFINITIONS, LOOPS, last_name
from codemods.proofs.unseen import Outside, Way, leaves_sight
from codemods.source import walking
from codemods.terms.spans import Span

Result = tuple[str, Span, Shows, dict[str, Any]]
"""Path, span, what is shown, and facts."""
_HISTORY = (UseKind.HISTORY_READ, UseKind.REFUSED, UseKind.GRADIENT_READ)


class Run:
    """One run, by what the judges of kept values ask of it; empty until :meth:`index` is called."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.outside = Outside(trace)
        self.steps = sorted(s.place.clock for s in trace.steps)
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
        self.earlier = Earlier(self.trace)
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
        kept = Kept(rule, place, name, verb, found, attached, sums, place.clock)
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
            trail.append((walk.place.path, walk.place.line, "freed here, all but its nodes"))
        trail.append((kept.place.path, kept.place.line, f"carried by {kept.name} from here on"))
        behind = {id(ancestor) for node in kept.nodes for ancestor in node.ancestors()}
        causes = {self.run.sums[key] for key in behind & self.run.sums.keys()}
        causes.discard((kept.place.path, statement_span(kept.place)))
        parts = tuple(
            (p.file.path, p.file.span(p.expression), p.number or kept.number, p.scalar, p.odd or kept.odd)
            for p in kept.parts
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
        if any(not earlier.had(node, walk.place, kept) for walk in walks):
            return None
        later = (use for use in node.uses if use.place.clock >= kept.since and not benign(use))
        # `kept[-1] is loss` reads the node by two names, and one of them is what is kept
        own = [use for use in later if use.name == "is" or not earlier.had(node, use.place, kept)]
        return None if any(map(_asks_for_history, own)) else bool(own)

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
        return tensor or _carrier_of(kept.name) in self.run.read_later


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
    return use.kind in _HISTORY and not use.detached


def _callee(place: Place) -> str:
    return ast.unparse(place.node.func) if isinstance(place.node, ast.Call) else "a call"


def _names(code: ast.AST) -> Iterator[str]:
    """The variables and attributes that code reads."""
    for node in walking.walk(code):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            yield last_name(node)


def _definitions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in walking.walk(tree) if isinstance(node, DEFINITIONS)]
