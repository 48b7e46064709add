"""What is known of a kept value before it is judged, and what kinds of values it may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codemods.graph.model.kinds import NodeKind, PlainKind
from codemods.graph.model.nodes import Carrier, Node, Place, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Storing
from codemods.graph.model.values import Const, Join, Library, Plain, Tensor, Unknown, nodes_of
from codemods.proofs.observations import Shows
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


def through_phi(node: Node) -> Iterator[Node]:
    yield node
    if node.kind is NodeKind.PHI:
        for parent in node.parents:
            yield from through_phi(parent)


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
