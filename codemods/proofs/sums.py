"""Sums that grow turn by turn: whether each term has its own forward, and which sums are running means."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Node, Place, Value, Walk, all_ancestors
from codemods.graph.model.trace import Accumulation, Storing, Trace
from codemods.graph.model.values import Const, Plain, Tensor, Unknown, nodes_of
from codemods.proofs.blocks import within
from codemods.proofs.reach import library_model
from codemods.proofs.syntax import LOOPS


@dataclass(eq=False)
class Sum:
    """A sum that grows by one statement in a loop: what came to it in two turns."""

    statement: ast.stmt
    target: str
    added: ast.expr
    place: Place
    term: Node
    other: Node
    second: Node
    """A node of the sum after its second turn."""

    @property
    def frame(self) -> Any:
        return self.place.frame

    @property
    def loop(self) -> ast.AST:
        return self.place.loops[-1][0]

    def in_the_loop(self, place: Place) -> bool:
        """Whether something happened in one of the turns of the loop."""
        turns = self.place.loops[:-1]
        at = place.seen_from(self.frame)
        if at is None or at.loops[: len(turns)] != turns or len(at.loops) <= len(turns):
            return False
        return at.loops[len(turns)][0] is self.loop


def sums_of(trace: Trace) -> list[Sum]:
    """The sums that a run saw grow in the first two turns of a loop."""
    found: list[Sum] = []
    groups: dict[tuple[int, int, Any], list[Accumulation | Storing]] = defaultdict(list)
    events_: list[Accumulation | Storing] = [*trace.accumulations, *trace.storings]
    for event in events_:
        place = event.place
        if place.loops and place.statement is not None and isinstance(place.loops[-1][0], LOOPS):
            groups[id(place.statement), place.frame.fid, place.loops[:-1]].append(event)
    for events in groups.values():
        turns = [e.place.loops[-1][1] for e in events]
        if turns[:2] == [0, 1]:
            made = _sum_of(events[0], events[1])
            if made is not None:
                found.append(made)
    return found


def _sum_of(first: Any, second: Any) -> Sum | None:
    statement = first.place.statement
    if isinstance(first, Storing) and isinstance(second, Storing):
        call = getattr(statement, "value", None)
        if first.method != "append" or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        term, other = _node(first.value), _node(second.value)
        if term is None or other is None or call.args != [first.value_expr] or call.keywords:
            return None
        if len(first.held) > 1 or other is term or getattr(first.container, "bounded", False):
            # it held something before, or forgets what came first
            return None
        target = ast.unparse(call.func.value)
        return Sum(statement, target, first.value_expr, first.place, term, other, other)
    if not isinstance(first, Accumulation) or not isinstance(second, Accumulation):
        return None
    target = ast.unparse(first.target)
    if isinstance(statement, ast.AugAssign):
        added = statement.value
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        sides = [s for s in (statement.value.left, statement.value.right) if ast.unparse(s) != target]
        if len(sides) != 1 or len(statement.targets) != 1:
            return None
        added = sides[0]
    else:
        return None
    term, other, total, new = _node(first.added), _node(second.added), _node(first.new), _node(second.new)
    if term is None or other is None or total is None or new is None or not _plain(first.old):
        return None
    if not any(n is total or (n.kind is NodeKind.PHI and total in n.parents) for n in nodes_of(second.old)):
        return None
    return Sum(statement, target, added, first.place, term, other, new)


def _node(value: Value, *, certain: bool = True) -> Node | None:
    if isinstance(value, (Tensor, Unknown)) and value.node is not None and (value.node.certain or not certain):
        return value.node
    return None


def _plain(value: Value) -> bool:
    return isinstance(value, (Const, Plain)) or (isinstance(value, Tensor) and value.node is None)


def sums_through_calls(trace: Trace, walk: Walk) -> bool:
    """Whether the walked value was summed in functions that an earlier loop calls, each turn with its own forward."""
    at = walk.place
    depth = len(at.loops)
    for sum_ in trace.accumulations:
        place = sum_.place.seen_from(at.frame)
        if place is None or sum_.place.frame is at.frame or place.clock > at.clock or len(place.loops) <= depth:
            continue
        loop, turn = place.loops[depth]
        if place.loops[:depth] != at.loops or turn != 1 or not isinstance(loop, LOOPS):
            continue
        seen = {id(n) for n in walk.seen}
        old, new = _node(sum_.old, certain=False), _node(sum_.new, certain=False)
        if old is None or new is None or id(new) not in seen:
            continue
        first, second = (*at.loops, (loop, 0)), (*at.loops, (loop, 1))
        before = [n for n in old.ancestors() if within(n.place, first, at.frame)]
        added = _node(sum_.added, certain=False)
        if added is None or not own_forward(before):
            continue
        mine = list(added.ancestors())
        if own_forward([n for n in mine if within(n.place, second, at.frame)]) and not share(mine, before):
            return True
    return False


def own_forward(nodes: Iterable[Node]) -> bool:
    """Whether a layer with parameters ran."""
    return any(n.kind is NodeKind.MODULE and any(p.leaf for p in n.parents) for n in nodes)


def may_remember(node: Node) -> bool:
    """Whether what made a node cannot be seen: a spiking layer keeps its state, graph and all, in itself."""
    return node.kind is NodeKind.CALL or (
        node.kind is NodeKind.MODULE and node.label == "module" and not library_model(node)
    )


def share(mine: Iterable[Node], others: Iterable[Node]) -> bool:
    return not {n for n in others if not n.leaf}.isdisjoint(mine)


class Means:
    """The running means of one run."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def _taking_part(self) -> frozenset[Node]:
        """What was detached and takes part in what is back-propagated, and what that was computed from."""
        detached = {o for walk in self.trace.walks for n in walk.seen for o in n.shadow if isinstance(o, Node)}
        return frozenset(all_ancestors(detached))

    def averages(self, event: Accumulation) -> bool:
        """Whether a sum is a running mean whose value, detached, takes part in what is back-propagated.

        Such a mean belongs to the computation and to ``stored-graph``; one that is only looked at is a total.
        """
        expression = event.place.node
        if not isinstance(expression, ast.BinOp) or not isinstance(expression.op, ast.Add):
            return False
        text = ast.unparse(event.target)
        if any(ast.unparse(side) == text for side in (expression.left, expression.right)):
            return False
        return not self._taking_part.isdisjoint(nodes_of(event.new))
