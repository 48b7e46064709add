"""Whether code gets at a kept value by what had it before it was kept, so that its keeper may let go of the graph."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Carrier, Node, Place
from codemods.graph.model.program import receiver_name
from codemods.graph.model.trace import Reading, Trace
from codemods.source.walking import children


@dataclass(eq=False, kw_only=True)
class Keeping:
    """That something keeps a value from a moment on."""

    since: int
    inside: frozenset[int] = frozenset()
    """Frames between the call that hands the value over and the place that keeps it."""
    keeper: Carrier | None = None
    """The name that keeps it, where that is a name."""
    holder: int = 0
    """The identity of the container that keeps it as it is, not within another container."""


class Earlier:
    """What held which node when, in one run."""

    def __init__(self, trace: Trace) -> None:
        self.stores: dict[Carrier, list[tuple[int, Node, Place]]] = defaultdict(list)
        """What came into each carrier: when, which node, and where."""
        seen: set[int] = set()
        for node in trace.nodes:
            for one in (node, *node.children):
                if id(one) in seen:
                    continue
                seen.add(id(one))
                for carrier, place in one.stores:
                    self.stores[carrier].append((place.clock, one, place))
        for found in self.stores.values():
            found.sort(key=lambda s: s[0])
        self._readings: dict[int, list[Reading]] = defaultdict(list)
        for reading in trace.readings:
            if isinstance(reading.place.node, ast.Subscript):
                self._readings[id(reading.place.node)].append(reading)
        self._put: dict[int, list[int]] = defaultdict(list, {oid: [*moments] for oid, moments in trace.puts.items()})
        for storing in trace.storings:
            self._put[getattr(storing.container, "oid", 0)].append(storing.place.clock)

    def had(self, node: Node, place: Place, kept: Keeping, clock: int | None = None) -> bool:
        """Whether code at ``place`` got at ``node`` by what had it before it was kept, not through its keeper.

        ``clock`` is the moment just before, if not that of the place.
        """
        at = place.clock if clock is None else clock
        seen: set[Place] = set()
        return any(self._had(node, expression, place, kept, at, seen) for expression in _operands(place.node))

    def _had(self, node: Node, expression: ast.expr, place: Place, kept: Keeping, clock: int, seen: set[Place]) -> bool:
        if isinstance(expression, ast.Subscript):
            return self._element_had(node, expression, place, kept, clock, seen)
        for carrier in _carriers(node, expression, place, kept):
            held = self._held(node, carrier, clock)
            if held is None:
                continue
            moment, origin = held
            if moment < kept.since or (kept.keeper is not None and moment == kept.since):
                return True
            source = _source(origin) if origin not in seen else None
            seen.add(origin)
            if source is not None and any(
                self._had(node, e, origin, kept, origin.clock, seen) for e in _operands(source)
            ):
                return True
        return False

    def _element_had(
        self, node: Node, expression: ast.Subscript, place: Place, kept: Keeping, clock: int, seen: set[Place]
    ) -> bool:
        """The same for an element of a container: one that is not the keeper, held the node before, and got nothing
        since."""
        if not kept.holder or node not in place.frame.took.get(expression, ()):
            return False
        # of a tuple nothing is noted: it stays as it was made
        if readings := self._readings.get(id(expression), []):
            at = bisect_right([reading.place.clock for reading in readings], clock) - 1
            if at < 0 or node not in readings[at].nodes:
                return False
            carrier = readings[at].carrier
            if carrier.kind is not CarrierKind.ELEMENT or carrier.owner == kept.holder:
                return False
            if any(kept.since <= moment <= clock for moment in self._put.get(carrier.owner, ())):
                return False
            held = self._held(node, carrier, clock)
            if held is not None and held[0] < kept.since:
                return True
        # a display that a name was given holds what it did then
        base = expression.value
        return isinstance(base, (ast.Name, ast.Attribute)) and self._had(node, base, place, kept, clock, seen)

    def _held(self, node: Node, carrier: Carrier, clock: int) -> tuple[int, Place] | None:
        """When and where ``node`` came into a carrier that holds it at ``clock``, as far as that is recorded.

        The clock stands still where nothing is recorded: of stores at one moment those of the last place count, which
        are several where a container came into a name.
        """
        writes = self.stores.get(carrier, [])
        at = bisect_right([moment for moment, _, _ in writes], clock) - 1
        if at < 0:
            return None
        last, _, where = writes[at]
        for moment, one, origin in reversed(writes[: at + 1]):
            if moment != last or origin.node is not where.node:
                return None
            if one is node:
                return moment, origin
        return None


def _carriers(node: Node, expression: ast.expr, place: Place, kept: Keeping) -> Iterator[Carrier]:
    """The variables or attributes that held the node once and that ``expression`` reads, but for the keeper."""
    frame = place.frame
    owners: set[int] = set()
    if isinstance(expression, ast.Name):
        name, attribute = expression.id, False
        owners = {frame.fid, frame.module_globals, frame.function.closure if frame.function is not None else 0}
    elif isinstance(expression, ast.Attribute):
        name, attribute = expression.attr, True
        own = _receiver(expression.value, place)
        owners = {own} if own else {c.owner for c, _ in node.stores}
        if not own and any(c.name == name and at.clock >= kept.since for c, at in node.stores):
            # it may be one that got the node from the keeper
            return
    else:
        return
    for carrier in {c for c, _ in node.stores if c.name == name}:
        if (
            (carrier.kind is CarrierKind.ATTRIBUTE) is not attribute
            or carrier.kind is CarrierKind.ELEMENT
            or carrier == kept.keeper
        ):
            continue
        if carrier.owner in owners and (attribute or carrier.owner not in kept.inside):
            yield carrier


def _receiver(expression: ast.expr, place: Place) -> int:
    """The identity of the object whose method a place is in, where that is what the expression names; else 0."""
    definition = place.frame.definition
    named = isinstance(expression, ast.Name) and definition is not None and expression.id == receiver_name(definition)
    return getattr(place.frame.receiver, "oid", 0) if named else 0


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    """The names, attributes and elements that an expression, or the head of a statement, reads.

    Not what calls in it are given: they may give what they got from elsewhere, from the keeper too.
    """
    stack: list[ast.AST] = [node]
    if isinstance(node, ast.stmt) and (hasattr(node, "body") or isinstance(node, (ast.Assert, ast.Match))):
        stack = [getattr(node, head) for head in ("test", "iter", "subject") if hasattr(node, head)]
    while stack:
        found = stack.pop()
        if isinstance(found, (ast.Name, ast.Attribute, ast.Subscript)):
            yield found
        if isinstance(found, ast.Subscript):
            # what the container had says nothing of who has this element
            stack.append(found.slice)
            continue
        if found is node or not isinstance(found, ast.Call):
            stack.extend(children(found))


def _source(origin: Place) -> ast.AST | None:
    """The expression that a store at ``origin`` took its value from."""
    if isinstance(origin.node, ast.Call):
        return origin.node
    statement = origin.statement
    if isinstance(statement, ast.Assign):
        source = assigned(statement, origin.node)
        return None if isinstance(source, ast.Call) else source
    return None


def assigned(statement: ast.Assign, target: ast.AST) -> ast.expr | None:
    """What an assignment gives to one of its targets."""
    for whole in statement.targets:
        if whole is target:
            return statement.value
        if isinstance(whole, (ast.Tuple, ast.List)) and isinstance(statement.value, (ast.Tuple, ast.List)):
            places = len(whole.elts) == len(statement.value.elts)
            for element, given in zip(whole.elts, statement.value.elts, strict=False):
                if element is target and places:
                    return given
    return None
