"""What is proven of a graph: which nodes a backward reaches on every path, what an operation needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property

from codemods.graph.model.facts.libraries import KEEPING_NOTHING
from codemods.graph.model.facts.memory import TURNED
from codemods.graph.model.facts.operations import FOLDING
from codemods.graph.model.kinds import NodeKind, UseKind
from codemods.graph.model.nodes import Node, Walk
from codemods.graph.model.opacity import opaque
from codemods.graph.model.state import FROZEN

_MASK = 64
"""Nodes that are looked at in one walk; the newest ones are enough to prove what two walks share."""


def reached_surely(walk: Walk, nodes: Iterable[Node]) -> set[int]:
    """Which of ``nodes`` (their ``id``) a walk reaches whatever path was taken."""
    bits = {id(n): 1 << i for i, n in enumerate(sorted(nodes, key=lambda n: -n.birth)[:_MASK])}
    reached = _reached(walk, bits)
    return {key for key, bit in bits.items() if reached & bit}


def reached_by_both(first: Walk, second: Walk, nodes: Collection[Node]) -> set[int]:
    """The same for two walks."""
    return reached_surely(first, nodes) & reached_surely(second, nodes)


def spread(nodes: Iterable[Node], onward: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Nodes and all that ``onward`` leads to from them; each once, for many ways may lead to one."""
    seen: set[Node] = set()
    stack = [*nodes][::-1]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack += [*onward(node)][::-1]


def through_phi(*nodes: Node) -> Iterator[Node]:
    """Nodes, and for those that are one of several all of these."""
    return spread(nodes, lambda node: node.parents if node.kind is NodeKind.PHI else ())


def reaches_one_of(walk: Walk, groups: list[list[Node]]) -> list[bool]:
    """Of each group, whether a walk reaches one of its nodes whatever path was taken."""
    bits: dict[int, int] = {}
    for i, group in enumerate(groups):
        for node in group:
            bits[id(node)] = bits.get(id(node), 0) | 1 << i
    reached = _reached(walk, bits)
    return [bool(reached & 1 << i) for i in range(len(groups))]


def _reached(walk: Walk, bits: dict[int, int]) -> int:
    """The bits of the nodes that a walk reaches whatever path was taken.

    What is back-propagated is attached; so of a join that all its history goes through, one of the parents is there,
    and what they all reach is reached. Where other history comes beside such a join, the join may be missing.
    """
    if not bits:
        return 0
    masks: dict[int, int] = {}
    optional: dict[int, bool] = {}
    for node in sorted(walk.seen, key=lambda n: n.birth):
        parents = [p for p in node.parents if id(p) in masks]
        mine = bits.get(id(node), 0)
        if node.kind is NodeKind.PHI:
            optional[id(node)] = not node.certain or any(optional[id(p)] for p in parents)
            masks[id(node)] = mine | _common(masks[id(p)] for p in parents)
            continue
        present = [masks[id(p)] for p in parents if not optional[id(p)]]
        optional[id(node)] = bool(parents) and not present
        if present or not parents:
            for other in present:
                mine |= other
        else:
            mine |= _common(masks[id(p)] for p in parents)
        masks[id(node)] = mine
    return _common(masks.get(id(root), 0) for root in walk.roots)


def _common(masks: Iterable[int]) -> int:
    result = -1
    for mask in masks:
        result &= mask
    return max(result, 0)


def folds(node: Node) -> bool:
    """Whether a product may be computed by another kernel where an operand asks for gradients or does not: both are
    computed, where a parameter always asks for them, and one is a view whose rows do not lie side by side."""
    computed = [parent for parent in node.parents if not parent.leaf or parent.label == "input"]
    folded = node.kind is NodeKind.OP and node.label in FOLDING and len(computed) > 1
    return folded and any(parent.label in TURNED for parent in computed)


def maybe_frozen(walk: Walk) -> bool:
    """Whether parameters that a walk reaches ask for gradients on some paths only."""
    return any(walk.cells.get((-node.birth, FROZEN)) == "maybe" for node in walk.seen if node.leaf)


def library_model(node: Node) -> bool:
    """Whether a library's module made it, one that keeps no graph and takes no gradients."""
    parts = (p.leaf and p.label.startswith(KEEPING_NOTHING) for p in node.parents)
    return node.kind is NodeKind.MODULE and (node.public or any(parts))


def surely_attached(node: Node) -> bool:
    """Whether it is proven to have a graph, and one that dies with its step."""
    return node.certain and not node.leaf and not opaque(node)


def reach(roots: Iterable[Node]) -> set[Node]:
    """The nodes that a backward from ``roots`` reaches, surely or on one of the paths that the code may take."""
    found = set(roots)
    stack = [*found]
    while stack:
        node = stack.pop()
        more = () if opaque(node) else [parent for parent in node.parents if parent not in found]
        found.update(more)
        stack += more
    return found


class SurePaths:
    """What a walk comes to whichever path the code took, of all the ``nodes`` of a run, in the order of their birth."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = nodes

    @cached_property
    def _missing(self) -> dict[Node, bool]:
        """Of each node, whether it has no history on some path: what it is computed from is data there, or cut."""
        found: dict[Node, bool] = {}
        for node in self._nodes:
            known = [found.get(p, False) for p in node.parents]
            if node.kind is NodeKind.PHI:
                found[node] = not node.certain or any(known)
            else:
                found[node] = bool(known) and all(known)
        return found

    def below(self, source: Node) -> set[Node]:
        """The nodes that a walk through ``source`` surely comes to; none if ``source`` may be without a history."""
        if self._missing.get(source) and not source.certain:
            return set()

        def surely(node: Node) -> Iterable[Node]:
            # what is there has a history: where each part may be missing, one is not
            there = [p for p in node.parents if not self._missing.get(p)]
            return () if opaque(node) else there or node.parents

        return set(spread([source], surely))


def origins(node: Node, *, sure: bool = True) -> list[Node]:
    """The nodes that a value joined from several paths may be; if it must be ``sure``, empty where it is missing or
    detached on one of them."""
    found = list(through_phi(node))
    if sure and any(one.kind is NodeKind.PHI and not one.certain for one in found):
        return []
    return [one for one in found if one.kind is not NodeKind.PHI]


def weighted(node: Node) -> bool:
    """Whether parameters act on what the node is computed from, as in a layer, rather than being added to it."""
    if node.kind is NodeKind.MODULE:
        return any(p.leaf for p in node.parents)
    return node.saves and any(_parameter(p) for p in node.parents)


def _parameter(node: Node) -> bool:
    while not node.leaf and node.kind is NodeKind.OP and len(node.parents) == 1 and not node.saves:
        node = node.parents[0]
    return node.leaf


def told_apart(node: Node) -> bool:
    """Whether code asks which object it is, or gives it attributes of its own."""
    return any(use.kind is UseKind.IDENTITY and not use.detached for use in node.uses)


def gradient_read(node: Node, since: int) -> bool:
    """Whether code reads its gradient, or hooks it, after a moment."""
    return any(use.kind is UseKind.GRADIENT_READ and not use.detached and use.place.clock > since for use in node.uses)


def asks_for_history(node: Node) -> bool:
    """Whether code asks whether it has a graph, or for its gradient, or which object it is."""
    kinds = (UseKind.HISTORY_READ, UseKind.REFUSED, UseKind.GRADIENT_READ, UseKind.IDENTITY)
    return any(use.kind in kinds and not use.detached for use in node.uses)
