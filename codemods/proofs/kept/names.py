"""By which name code got at a value: one that had it before it was kept, or the one that keeps it."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Carrier, Node, Place
from codemods.proofs.kept.model import Kept
from codemods.proofs.syntax import DEFINITIONS

Stores = Mapping[Carrier, list[tuple[int, Node, Place]]]
"""What came into each carrier: when, which node, and where."""


def had_before(stores: Stores, node: Node, place: Place, kept: Kept, clock: int | None = None) -> bool:
    """Whether code at ``place`` got at ``node`` by a name that had it before it was kept, not through its keeper.

    ``clock`` is the moment just before, if not that of the place.
    """
    at = place.clock if clock is None else clock
    seen: set[Place] = set()
    return any(_had(stores, node, expression, place, kept, at, seen) for expression in _operands(place.node))


def _had(
    stores: Stores, node: Node, expression: ast.expr, place: Place, kept: Kept, clock: int, seen: set[Place]
) -> bool:
    frame = place.frame
    owners: set[int] = set()
    if isinstance(expression, ast.Name):
        name, attribute = expression.id, False
        owners = {frame.fid, frame.module_globals, frame.function.closure if frame.function is not None else 0}
    elif isinstance(expression, ast.Attribute):
        name, attribute = expression.attr, True
    else:
        return False
    for carrier in {c for c, _ in node.stores if c.name == name}:
        if (
            (carrier.kind is CarrierKind.ATTRIBUTE) is not attribute
            or carrier.kind is CarrierKind.ELEMENT
            or carrier == kept.keeper
        ):
            continue
        if not attribute and (carrier.owner not in owners or carrier.owner in kept.inside):
            continue
        writes = stores.get(carrier, [])
        at = bisect_right([moment for moment, _, _ in writes], clock) - 1
        # the clock stands still where nothing is recorded: of stores at one moment the last one counts
        if at < 0 or writes[at][1] is not node:
            continue
        moment, _, origin = writes[at]
        if moment < kept.since or (kept.keeper is not None and moment == kept.since):
            return True
        source = _source(origin) if origin not in seen else None
        seen.add(origin)
        if source is not None and any(
            _had(stores, node, e, origin, kept, origin.clock, seen) for e in _operands(source)
        ):
            return True
    return False


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    """The names and attributes that an expression, or the head of a statement, reads."""
    heads: list[ast.AST | None]
    if isinstance(node, (ast.If, ast.While, ast.Assert)):
        heads = [node.test]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        heads = [node.iter]
    elif isinstance(node, (*DEFINITIONS, ast.ClassDef, ast.With, ast.AsyncWith, ast.Try)):
        heads = []
    else:
        heads = [node]
    stack = [h for h in heads if h is not None]
    while stack:
        found = stack.pop()
        if isinstance(found, (ast.Name, ast.Attribute)):
            yield found
        if isinstance(found, ast.Subscript):
            # an element of something is what the something keeps
            stack.append(found.slice)
            continue
        stack.extend(ast.iter_child_nodes(found))


def _source(origin: Place) -> ast.AST | None:
    """The expression that a store at ``origin`` took its value from."""
    if isinstance(origin.node, ast.Call):
        return origin.node
    statement = origin.statement
    if isinstance(statement, ast.Assign):
        return assigned(statement, origin.node)
    return None


def assigned(statement: ast.Assign, target: ast.AST) -> ast.expr | None:
    """What an assignment gives to one of its targets."""
    for whole in statement.targets:
        if whole is target:
            return statement.value
        if isinstance(whole, (ast.Tuple, ast.List)) and isinstance(statement.value, (ast.Tuple, ast.List)):
            for element, given in zip(whole.elts, statement.value.elts, strict=False):
                if element is target:
                    return given
    return None
