"""What steps put into containers: which one, is it emptied, by which backward the step ends, who uses it later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.kinds import UseKind, WalkKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.program import receiver_name
from codemods.graph.model.trace import GROWN, Reading, Storing, Trace
from codemods.graph.model.values import Sequence
from codemods.proofs.carried import Ledger
from codemods.proofs.reach import reach, surely_attached
from codemods.proofs.syntax import LOOPS, everywhere, is_own
from codemods.proofs.turns import crossed, named
from codemods.proofs.unseen import leaves_sight

ADDING = frozenset({"append", "appendleft", "add", "insert", GROWN})
"""Methods by which a container gets one thing more."""


def filled(place: Place) -> ast.AST:
    """What a place puts something into: what its method is called on, or what it adds to; else the place itself."""
    node = place.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value
    return node.target if isinstance(node, ast.AugAssign) else node


def filled_attribute(place: Place) -> ast.Attribute | None:
    """The attribute of a method's own object that a call puts something into, itself or an element of it; None of
    anything else."""
    inner = filled(place) if isinstance(place.node, ast.Call) else None
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    own = receiver_name(place.frame.definition)
    return inner if isinstance(inner, ast.Attribute) and is_own(inner, own) else None


def training_walk(ledger: Ledger, node: Node, loop: ast.AST) -> Walk | None:
    """A backward in the turn that made the node, over the graph that it holds."""
    mine = {n for n in reach([node]) if not n.leaf}
    return next((walk for walk in turn_walks(ledger, node, loop) if not mine.isdisjoint(walk.seen)), None)


def turn_walks(ledger: Ledger, node: Node, loop: ast.AST) -> Iterator[Walk]:
    """The backwards in the turn of a loop that made a node."""
    for walk in ledger.trace.walks:
        same = not crossed(node.place, walk.place) and _same_turn(node.place, walk.place, loop)
        if walk.kind is WalkKind.BACKWARD and same:
            yield walk


def _same_turn(one: Place, other: Place, loop: ast.AST) -> bool:
    return any(a is loop for a, _ in one.turns()) and any(a is loop for a, _ in other.turns())


def piles(ledger: Ledger, storings: list[Storing]) -> Iterator[tuple[Storing, Walk]]:
    """What a step has put into a list in which a later one finds it, with the backward of its step."""
    for i, old in enumerate(storings):
        if old.method not in ADDING or old.grad is not True:
            continue
        for later in storings[i + 1 :]:
            loop = crossed(old.place, later.place)
            if not isinstance(loop, LOOPS):
                continue
            for node in set(old.nodes) & set(later.held):
                ending = training_walk(ledger, node, loop) if surely_attached(node) else None
                if ending is not None and not any(w.place.clock > later.place.clock for w in node.walks):
                    yield old, ending


def emptied(trace: Trace, storing: Storing) -> bool:
    """Whether a list has a limit, is emptied at some time, or was made while training went on already."""
    container = storing.container
    assert isinstance(container, Sequence)
    if container.bounded or any(oid == container.oid for oid, _ in trace.emptied):
        return True
    name = named(filled(storing.place))
    return storing.born > trace.walks[0].place.clock or any(
        isinstance(node, ast.Subscript)
        and (isinstance(node.ctx, ast.Del) or (isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Slice)))
        and named(node.value) == name
        for _, node in everywhere(trace)
    )


def unwalked(node: Node) -> bool:
    """Whether neither it nor what is computed from it is ever walked or leaves for code that cannot be seen."""
    return not any(one.walks or leaves_sight([one]) or _graph_asked(one) for one in node.descendants())


def harmless(ledger: Ledger, storing: Storing) -> bool:
    """Whether nothing back-propagates through the stored value after its step, here or in code that cannot be seen."""
    node = storing.value.node
    if node is None:
        return True
    if any(leaves_sight([one]) or _graph_asked(one, storing.place.clock) for one in node.descendants()):
        return False
    # a later walk may come to it only through what its own step made of it
    after = [r for r in ledger.readings_of.get(node, ()) if r.place.clock > storing.place.clock]
    first = min((r.place.clock for r in after if in_container(storing, r)), default=None)
    if first is None:
        return True
    return not any(walk.place.clock > first and node in walk.seen for walk in ledger.trace.walks)


def in_container(storing: Storing, reading: Reading) -> bool:
    """Whether what is read may be the container that a value was put into: of one that is made anew by each value, any
    that holds it."""
    return storing.method == GROWN or getattr(storing.container, "oid", 0) in reading.containers


def _graph_asked(node: Node, since: int = 0) -> bool:
    """Whether code asks for its gradient or which object it is, or since that moment whether it has a graph."""
    return any(
        not use.detached
        and (
            use.kind in (UseKind.GRADIENT_READ, UseKind.IDENTITY)
            or (use.kind in (UseKind.HISTORY_READ, UseKind.REFUSED) and use.place.clock >= since)
        )
        for use in node.uses
    )
