"""Calls that need not be run again: forwards and the pure functions in them, remembered by what they read.

A call is remembered if it wrote nothing that was there before it and left no event. It is valid again where its
arguments look the same and every cell that it read holds the very same value. It leaves the same graph then.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

from codemods.graph.model.cells import Key
from codemods.graph.model.facts.layers import OTHER_KERNELS
from codemods.graph.model.facts.memory import TURNED
from codemods.graph.model.facts.operations import FOLDING
from codemods.graph.model.kinds import Escape, NodeKind
from codemods.graph.model.nodes import Frame, Node, Place, Shadow, Unseen, Use, Value
from codemods.graph.model.opacity import opaque
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
class Asked:
    """A call that may be remembered: its ``key``, the ``nodes`` that its arguments carry, and the ``containers`` among
    them, of which it only matters what they hold."""

    key: tuple[Any, ...]
    nodes: list[Node]
    containers: list[Sequence | Mapping]


@dataclass(frozen=True)
class Step:
    """A node of the graph that a remembered call leaves: one that it made, or several that the same of its results were
    computed from.

    ``result`` is the node among them that is one of a result. Its ``parents`` are steps before it by their number,
    arguments by minus one less their position, and leaves.
    """

    result: Node | None
    parents: tuple[int | Node, ...]
    like: Node
    """What it looks like, but for what is said here."""
    kind: NodeKind
    saves: bool
    certain: bool
    uses: tuple[Use, ...]
    escapes: tuple[Escape, ...]
    nodes: tuple[Node, ...]
    """All that it stands for."""


@dataclass(frozen=True)
class Memo:
    """A remembered call: the cells it read, its result, and the graph of that.

    ``noted`` are the uses and escapes that it noted at the nodes of its arguments. ``handed`` tells where code that
    cannot be seen got things in it, which of before, and whether models came with them; None if it got nothing.
    ``made`` is what may be graphs that such code made in it, another one each time, ``carried`` which of them the nodes
    of each step may carry. ``frame`` is the call itself, in which its places are told.
    """

    frame: Frame
    reads: dict[Key, Any]
    result: Value
    steps: tuple[Step, ...]
    noted: tuple[tuple[tuple[Use, ...], tuple[Escape, ...]], ...]
    handed: tuple[Place, tuple[Value, ...], bool] | None
    made: tuple[Unseen, ...] = ()
    carried: tuple[tuple[Unseen, ...], ...] = ()

    def again(self, place: Place, now: Place, frame: Frame | None) -> Place:
        """A ``place`` of the call in one that gives the same ``now``: where the line stands in its ``frame``, if it has
        one, else where it is called."""
        there = None if frame is None else place.seen_from(self.frame)
        if there is None or frame is None:
            return now
        return Place(there.node, there.statement, frame, there.loops, now.clock)


def signature(value: Value) -> Any:
    """How an argument looks to a call, its graph and what containers hold aside; None where calls with it are not to be
    remembered."""
    if isinstance(value, Tensor):
        node = value.node
        known = (node.certain, node.dimensionless) if node is not None else None
        return ("tensor", known, value.scalar, value.index)
    if isinstance(value, Const):
        kind = type(value.value)
        return (kind, value.value) if kind in (int, float, str, bool, type(None), EnumMember) else None
    if isinstance(value, Plain):
        return ("plain", value.kind, value.begin, value.end, value.turn, value.counts, value.number)
    if isinstance(value, Unknown):
        known = (value.node.certain, value.node.dimensionless) if value.node is not None else None
        return ("unknown", known, value.module is None, value.data, value.path)
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


def events_at(nodes: Iterable[Node]) -> list[tuple[int, int]]:
    """How many uses and escapes are noted at nodes."""
    return [(len(node.uses), len(node.escapes)) for node in nodes]


def graph_of(
    results: list[Node], born: int, arguments: list[Node], apart: Container[Node], *, whole: bool
) -> tuple[Step, ...] | None:
    """The graph that a call leaves which began at clock ``born``: each step after what it was computed from. None if it
    is too large, or if more than arguments and leaves went into it.

    Nodes of which the same results were computed are one step: a backward through one of these goes through them all.
    Each node that says more by itself than that it is there is a step of its own, and those ``apart`` are; so is every
    node of a ``whole`` forward, of which rules ask what it has saved.
    """
    positions: dict[Node, int] = {}
    for i, argument in enumerate(arguments):
        positions.setdefault(argument, -1 - i)
    wanted = [node for node in dict.fromkeys(results) if node not in positions and not node.leaf]
    inside = _inside(wanted, born, positions)
    if inside is None:
        return None
    youngest_first = sorted(inside, key=lambda n: -n.birth)
    for node in youngest_first:
        for parent in node.parents:
            if parent in inside:
                inside[parent] |= inside[node]
    shown = set(wanted)
    # a result that is one of several stays so: rules ask what made it
    alone = {n for n in inside if whole or n in apart or _says_more(n) or (n.kind is NodeKind.PHI and n in shown)}
    # what such a node went into cannot be one with what went into it
    level: dict[Node, int] = {}
    groups: dict[tuple[int, int, int], list[Node]] = {}
    for node in reversed(youngest_first):
        level[node] = max((level[p] + (p in alone) for p in node.parents if p in inside), default=0)
        groups.setdefault((inside[node], level[node], node.birth if node in alone else 0), []).append(node)
    # what goes into more results comes first
    order = sorted(groups, key=lambda key: (-key[0].bit_count(), *key[1:]))
    numbers = positions | {node: i for i, key in enumerate(order) for node in groups[key]}
    return tuple(_step(groups[key], shown, numbers) for key in order)


def _inside(results: list[Node], born: int, positions: Container[Node]) -> dict[Node, int] | None:
    """The nodes that a call made for its results, each result with a bit of its own; None if that is too much."""
    inside = {result: 1 << i for i, result in enumerate(results)}
    stack = [*results]
    while stack:
        node = stack.pop()
        if node.birth < born or len(inside) > LIMIT:
            return None
        for parent in node.parents:
            if parent not in inside and parent not in positions and not parent.leaf:
                inside[parent] = 0
                stack.append(parent)
    return inside


def _says_more(node: Node) -> bool:
    """Whether rules look at the node itself: it cannot be seen how it was made, or what runs without gradients, or code
    did something with it."""
    product = node.label in FOLDING or node.label in TURNED
    return opaque(node) or product or node.label in OTHER_KERNELS or bool(node.uses or node.escapes)


def _step(nodes: list[Node], results: set[Node], numbers: dict[Node, int]) -> Step:
    own = numbers[nodes[0]]
    result = next((node for node in nodes if node in results), None)
    parents = (numbers.get(parent, parent) for node in nodes for parent in node.parents)
    like = result or nodes[-1]
    layers = any(node.kind is NodeKind.MODULE for node in nodes)
    saving = [node for node in nodes if node.saves]
    return Step(
        result,
        tuple(dict.fromkeys(parent for parent in parents if parent != own)),
        like,
        like.kind if len(nodes) == 1 else NodeKind.MODULE if layers else NodeKind.OP,
        bool(saving),
        like.certain if result is not None else any(node.certain for node in saving or nodes),
        tuple(like.uses),
        tuple(like.escapes),
        tuple(nodes),
    )


def tensors_in(values: Iterable[Value]) -> list[Tensor]:
    """The tensors directly in values and tuples."""
    found: list[Tensor] = []
    stack = [*values]
    while stack:
        value = stack.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (Tuple, Join)):
            stack += value.items if isinstance(value, Tuple) else value.options
    return found


class Again:
    """A remembered result given once more: other nodes, and tensors that share memory among themselves only."""

    def __init__(
        self, nodes: dict[Node, Node], unseen: Shadow, made: dict[Unseen, Unseen], identity: Callable[[], int]
    ) -> None:
        self.nodes = nodes
        self.unseen = unseen
        """What the arguments may carry unseen this time."""
        self.made = made
        """What code that cannot be seen may have made this time, by what it made the first time."""
        self.identity = identity
        self.bases: dict[int, Tensor] = {}

    def rebuild(self, value: Value) -> Value:
        """The same value of this time."""
        if isinstance(value, Tensor):
            bases = tuple(self._base(base) for base in value.bases)
            return replace(value, node=self._node(value), shadow=self._shadow(value), bases=bases)
        if isinstance(value, Unknown):
            # what such code makes is another thing each time
            return Unknown(
                self.identity() if self.made else value.oid,
                value.origin,
                self._node(value),
                data=value.data,
                shadow=self._shadow(value),
                public=value.public,
            )
        if isinstance(value, Tuple):
            return Tuple(tuple(self.rebuild(part) for part in value.items), value.names, value.closed)
        if isinstance(value, Join):
            return Join(tuple(self.rebuild(part) for part in value.options))
        return value

    def _base(self, base: Tensor) -> Tensor:
        return self.bases.setdefault(id(base), replace(base))

    def _node(self, value: Tensor | Unknown) -> Node | None:
        return None if value.node is None else self.nodes.get(value.node, value.node)

    def _shadow(self, value: Tensor | Unknown) -> Shadow:
        if not self.unseen and not value.shadow:
            return ()
        made = (self.made[o] for o in value.shadow if isinstance(o, Unseen) and o in self.made)
        origins = (o for o in value.shadow if not isinstance(o, Unseen))
        return (*self.unseen, *made, *(self.nodes.get(o, o) if isinstance(o, Node) else o for o in origins))
