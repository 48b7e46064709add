"""Calls that need not be run again: pure functions of a module's forward, remembered by what they read.

A call is remembered if it wrote nothing that was there before it and left no event. It is valid again where its
arguments look the same and every cell that it read holds the very same value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from codemods.graph.model.cells import Key
from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Node, Unseen, Value
from codemods.graph.model.values import (
    Const,
    EnumMember,
    Instance,
    Join,
    Mapping,
    Module,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)

LIMIT = 400
"""Nodes that are followed to see what a result was computed from; larger calls are not remembered."""


@dataclass(frozen=True)
class Origin:
    """What a node of a remembered result was computed from: arguments by their position, and nodes that stay."""

    arguments: tuple[int, ...]
    fixed: tuple[Node, ...]
    kernel: str
    layers: bool


@dataclass(frozen=True)
class Memo:
    """A remembered call: the cells it read, its result, and where each node of that comes from."""

    reads: dict[Key, Any]
    result: Value
    origins: dict[Node, Origin]


def signature(value: Value) -> Any:
    """How an argument looks to a call; None where calls with it are not to be remembered."""
    if isinstance(value, Tensor):
        node = value.node
        known = (node.certain, node.dimensionless) if node is not None else None
        return ("tensor", known, value.scalar, value.index)
    if isinstance(value, Const):
        kind = type(value.value)
        return (kind, value.value) if kind in (int, float, str, bool, type(None), EnumMember) else None
    if isinstance(value, Plain):
        return ("plain", value.kind, value.begin, value.end, value.turn, value.counts)
    if isinstance(value, Unknown):
        known = (value.node.certain, value.node.dimensionless) if value.node is not None else None
        return ("unknown", known, value.module is None)
    if isinstance(value, (Tuple, Join)):
        parts = value.items if isinstance(value, Tuple) else value.options
        found = tuple(signature(part) for part in parts)
        return None if None in found else (type(value).__name__, found)
    if isinstance(value, (Instance, Module, Sequence, Mapping)):
        return ("object", value.oid)
    return None


def nodes_in(value: Value) -> list[Node]:
    """The nodes directly in a value or tuple; a result that holds containers is not remembered."""
    if isinstance(value, (Tensor, Unknown)):
        return [value.node] if value.node is not None else []
    if isinstance(value, (Tuple, Join)):
        parts = value.items if isinstance(value, Tuple) else value.options
        return [node for part in parts for node in nodes_in(part)]
    return []


def simple(value: Value) -> bool:
    """Whether a value has no identity of its own."""
    if isinstance(value, (Tuple, Join)):
        return all(simple(part) for part in (value.items if isinstance(value, Tuple) else value.options))
    if isinstance(value, Unknown):
        return value.module is None
    return isinstance(value, (Tensor, Const, Plain))


def origin(node: Node, born: int, arguments: list[Node], kernels: frozenset[str]) -> Origin | None:
    """What ``node`` was computed from, by a call that began at clock ``born``; None if that is too much to follow."""
    seen = {id(node)}
    stack = [node]
    taken: set[int] = set()
    fixed: dict[int, Node] = {}
    kernel = ""
    layers = False
    positions = {id(argument): i for i, argument in enumerate(arguments)}
    while stack:
        current = stack.pop()
        if id(current) in positions:
            taken.add(positions[id(current)])
            continue
        if current.birth < born or current.leaf:
            fixed[id(current)] = current
            continue
        if current.label in kernels:
            kernel = current.label
        layers = layers or current.kind is NodeKind.MODULE
        for parent in current.parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append(parent)
        if len(seen) > LIMIT:
            return None
    if any(not n.leaf for n in fixed.values()):
        return None
    return Origin(tuple(sorted(taken)), tuple(fixed.values()), kernel, layers)


def rebuild(value: Value, fresh: dict[Node, Node], unseen: tuple[Unseen, ...]) -> Value:
    """The same result with other nodes; ``unseen`` is what the arguments may carry unseen this time."""
    if isinstance(value, (Tensor, Unknown)):
        shadow = value.shadow
        if unseen or any(isinstance(o, Unseen) for o in shadow):
            shadow = (*unseen, *(o for o in shadow if not isinstance(o, Unseen)))
        node = fresh[value.node] if value.node is not None else None
        if node is None and shadow is value.shadow:
            return value
        if isinstance(value, Tensor):
            return replace(value, node=node, shadow=shadow)
        return Unknown(value.oid, value.origin, node, data=value.data, shadow=shadow, public=value.public)
    if isinstance(value, Tuple):
        return Tuple(tuple(rebuild(part, fresh, unseen) for part in value.items), value.names, value.closed)
    if isinstance(value, Join):
        return Join(tuple(rebuild(part, fresh, unseen) for part in value.options))
    return value
