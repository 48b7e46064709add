"""Numbers, texts and arrays: what operations make of them."""

from __future__ import annotations

from codemods.graph.model.kinds import PlainKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import ARRAY, NUMBER, TEXT, Const, Plain


def of_plain(name: str, left: Const | Plain, right: Const | Plain) -> Value:
    """An operation of numbers, texts and arrays."""
    if any(isinstance(v, Plain) and v.kind is PlainKind.ARRAY for v in (left, right)):
        return ARRAY
    if isinstance(left, Const) and isinstance(left.value, str):
        if isinstance(right, Const) and isinstance(right.value, str) and name == "Add":
            return Const(left.value + right.value)
        if name != "Add":
            return TEXT
        if isinstance(right, Plain) and right.kind is PlainKind.TEXT:
            return Plain(PlainKind.TEXT, left.value + right.begin, right.end, number=right.number)
        return Plain(PlainKind.TEXT, left.value)
    if isinstance(left, Plain) and left.kind is PlainKind.TEXT and name == "Add":
        if not isinstance(right, Const):
            return Plain(PlainKind.TEXT, left.begin)
        end = left.end if left.number else ""
        return Plain(PlainKind.TEXT, left.begin, end + str(right.value), number=left.number)
    if name == "Sub" and isinstance(left, Plain) and left.turn and left.kind is PlainKind.NUMBER:
        # in the turn before this one
        one = isinstance(right, Const) and type(right.value) is int and right.value == 1
        return Plain(PlainKind.NUMBER, counts=left.counts) if one else NUMBER
    return NUMBER


def is_text(value: Value) -> bool:
    """Whether it is a text."""
    if isinstance(value, Const):
        return isinstance(value.value, str)
    return isinstance(value, Plain) and value.kind is PlainKind.TEXT


def begin_of(value: Value) -> str:
    """What a text begins with, as far as that is known."""
    return value.value if isinstance(value, Const) else value.begin if isinstance(value, Plain) else ""


def end_of(value: Value) -> str:
    """What a text ends with, as far as that is known."""
    return value.value if isinstance(value, Const) else value.end if isinstance(value, Plain) else ""
