"""What is kept, by which names code reads it, and what each use needs: its graph, the tensor, or just a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.graph.model.facts.libraries import NUMERIC_LIBRARIES, is_logging
from codemods.graph.model.facts.python import NUMBERS_OF
from codemods.graph.model.kinds import NodeKind, PlainKind, UseKind
from codemods.graph.model.nodes import Carrier, Node, Place, Use, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Storing
from codemods.graph.model.values import Const, Join, Library, Plain, Tensor, Unknown, nodes_of
from codemods.proofs.reach import through_phi
from codemods.proofs.syntax import DEFINITIONS, method
from codemods.source.walking import walk
from codemods.terms.spans import Span

TOTAL = "attached-loss-total"
HISTORY = "attached-loss-history"
_NEEDS_NUMBERS = ("float", "int", "complex")
_OF_NUMBERS = ("float", "int", "round", "abs", "str", "format", "max", "min")
_COMPARING = frozenset(("bisect", "heapq", "operator", "random", "statistics"))
"""Libraries of Python that hand on, order or add up what they get, numbers and tensors alike (docs)."""
_PLAIN_ARITHMETIC = ("Add", "Sub", "Mult", "Div", "neg")
_COUNTS_FEW = ("sum", "item", "count_nonzero", "nonzero", "count", "any", "all", "eq", "tolist")


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
    holder: int = 0
    """The identity of the container that keeps it as it is, not within another container."""
    tensor: bool = False
    number: bool = False
    odd: bool = False
    """Whether what keeps it was given something else elsewhere that is neither a tensor nor a number."""
    freed: bool = False
    """Whether a backward has freed of its graph what walking takes."""
    meant: bool = False
    """Whether it has its graph on purpose: the graph of gradients was asked for."""


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


def benign(use: Use) -> bool:
    """Whether a use works with a number as it does with a tensor, except for the digits that people read.

    A Python float adds in double precision. What is computed from it may decide how training goes on: a seed, a best
    value, a length. So a number has to go straight to people.
    """
    if use.detached or use.kind not in (UseKind.FORMAT, UseKind.CALL):
        return False
    if use.kind is UseKind.FORMAT or is_logging(use.name):
        return True
    top = use.name.partition(".")[0]
    known = use.name in _NEEDS_NUMBERS or use.name in NUMBERS_OF or top in _COMPARING
    return (known or (top in NUMERIC_LIBRARIES and top != "pickle")) and _told(use.place)


def _told(place: Place) -> bool:
    """Whether what is computed there is only printed, formatted or thrown away."""
    file = place.frame.file
    node: ast.AST | None = place.node
    while node is not None:
        inner, node = node, file.parent(node)
        if isinstance(node, (ast.FormattedValue, ast.Expr)):
            return True
        if isinstance(node, ast.Call) and inner is not node.func:
            if isinstance(node.func, ast.Name) and node.func.id == "print":
                return True
            if not isinstance(node.func, ast.Name) or node.func.id not in _OF_NUMBERS:
                return isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)
        elif not isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.keyword, ast.Starred)):
            return False
    return False


def arithmetic(child: Node, parent: Node, kept: Kept) -> bool:
    """Whether an operation gives with a number what it gives with a tensor, as far as printing goes."""
    if child.kind is NodeKind.PHI:
        return True
    at = child.place.node
    label = child.operation
    if child.kind is NodeKind.CALL:
        return is_logging(child.label)
    if child.kind is not NodeKind.OP:
        return False
    if isinstance(at, ast.Call):
        return isinstance(at.func, ast.Name) and at.func.id in ("sum", "abs", "round") and label == at.func.id
    if label not in _PLAIN_ARITHMETIC:
        return False
    if label != "Div":
        return True
    # by 0.0 a number raises, and a tensor gives infinity
    by_it = child.label == "Div:by" or parent is not child.parents[0]
    by_it = by_it or (isinstance(at, ast.BinOp) and child.label == "Div" and isinstance(at.left, ast.Constant))
    divisor = at.right if isinstance(at, ast.BinOp) else at.value if isinstance(at, ast.AugAssign) else None
    return not by_it and divisor is not None and not _may_be_zero(divisor, child.place, kept)


def _may_be_zero(divisor: ast.expr, place: Place, kept: Kept) -> bool:
    """Whether a divisor is a count that something suggests may be 0 where the sum holds a tensor."""
    match divisor:
        case ast.Constant(value=value):
            return not value
        case ast.BinOp(op=ast.FloorDiv() | ast.Sub()):
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return not any(isinstance(side, ast.Constant) and side.value for side in (left, right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _may_be_zero(left, place, kept) or _may_be_zero(right, place, kept)
        case ast.BinOp(left=left, op=ast.Div()):
            return _may_be_zero(left, place, kept)
        case ast.Call(func=ast.Name(id="float" | "int" | "round" | "abs"), args=[given, *_]):
            return _may_be_zero(given, place, kept)
        case ast.Name() | ast.Attribute():
            return _counts_few(divisor, place, kept)
    return method(divisor) in _COUNTS_FEW


def _counts_few(counter: ast.Name | ast.Attribute, place: Place, kept: Kept) -> bool:
    """Whether a counter grows by what may be nothing, or only on some of the paths on which the sum grows."""
    file = place.frame.file
    scope: ast.AST | None = place.frame.definition
    if scope is None or isinstance(counter, ast.Attribute):
        scope = file.tree
    text = ast.unparse(counter)
    grown = kept.place.statement if kept.place.frame.file is file else None
    around = set(_conditions(file, grown))
    for node in walk(scope):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and ast.unparse(node.target) == text:
            elsewhere = not around.issuperset(_conditions(file, node))
            if _may_be_nothing(node.value) or (grown is not None and not kept.inside and elsewhere):
                return True
        if isinstance(node, ast.Assign) and text in map(ast.unparse, node.targets) and _may_be_nothing(node.value):
            return True
    return False


def _may_be_nothing(value: ast.expr) -> bool:
    return any(isinstance(n, ast.Compare) or method(n) in _COUNTS_FEW for n in walk(value))


def _conditions(file: ParsedFile, node: ast.AST | None) -> Iterator[ast.AST]:
    while node is not None:
        node = file.parent(node)
        if isinstance(node, DEFINITIONS):
            return
        if isinstance(node, (ast.If, ast.Try)):
            yield node


def changes_in_place(child: Node, node: Node) -> bool:
    at = child.place.node
    if not child.parents or child.parents[0] is not node:
        return False
    return isinstance(at, ast.AugAssign) or (isinstance(at, ast.Call) and child.label.endswith("_"))
