"""Spans as :mod:`ast` sees them, in characters."""

from __future__ import annotations

import ast

import pytest

from codemods.edits.positions import span_of, split_lines
from codemods.terms.spans import Span


def _first(text: str, kind: type[ast.AST]) -> Span:
    tree = ast.parse(text.removeprefix("\ufeff"))
    return span_of(next(node for node in ast.walk(tree) if isinstance(node, kind)), split_lines(text))


@pytest.mark.parametrize(
    ("text", "kind", "span"),
    [
        ("f(x)\n", ast.Call, Span(1, 0, 1, 4)),
        ("é = ü + 'ß'\n", ast.BinOp, Span(1, 4, 1, 11)),
        ("é = (\n  '🙂', x)\n", ast.Tuple, Span(1, 4, 2, 9)),
        ("\ufeffé = x\n", ast.Assign, Span(1, 0, 1, 5)),
        ("'\u2028\x0b\x0c\x1c\x85'; f(\r  x)\r\n", ast.Call, Span(1, 9, 2, 4)),
        ("a\rb\r\nc\nf(x)", ast.Call, Span(4, 0, 4, 4)),
        ("\x0c\n\x0cf(x)", ast.Call, Span(2, 1, 2, 5)),
        ("@d\ndef f():\n\tpass\n", ast.FunctionDef, Span(2, 0, 3, 5)),
        ("x = (a)\n", ast.Assign, Span(1, 0, 1, 7)),
    ],
)
def test_span(text: str, kind: type[ast.AST], span: Span) -> None:
    assert _first(text, kind) == span


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\r\n\rb\n\n", "\x0ca\x0b\u2028b\x1cc\nd"])
def test_lines_are_those_of_ast(text: str) -> None:
    lines = split_lines(text)
    universal = text.replace("\r\n", "\n").replace("\r", "\n")
    assert "\n".join(lines) == universal
    assert all("\r" not in line and "\n" not in line for line in lines)


def test_nodes_without_positions_have_no_span() -> None:
    with pytest.raises(AttributeError):
        span_of(ast.parse("a"), ["a"])
