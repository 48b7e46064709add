"""What the tests of edits share: spans found by what stands there, and the checks that every rewrite has to pass."""

from __future__ import annotations

import ast

import pytest

from codemods.edits.apply import apply_edits
from codemods.edits.positions import span_of, split_lines
from codemods.terms.edits import Edit, EditError
from codemods.terms.spans import Span


def expression(text: str, code: str, number: int = 0) -> Span:
    """The span of the expression that reads ``code``, after ``number`` others."""
    return _span(text, code, ast.expr, number)


def statement(text: str, code: str, number: int = 0) -> Span:
    """The span of the statement that begins with ``code``, after ``number`` others."""
    return _span(text, code, ast.stmt, number)


def _span(text: str, code: str, kind: type[ast.AST], number: int) -> Span:
    lines = split_lines(text)
    plain = "\n".join(lines)
    found = []
    for node in ast.walk(ast.parse(plain)):
        if isinstance(node, kind):
            segment = ast.get_source_segment(plain, node) or ""
            if segment == code if kind is ast.expr else segment.startswith(code):
                found.append(span_of(node, lines))
    return sorted(found)[number]


def check(before: str, after: str, *edits: Edit) -> None:
    """Check that ``edits`` make ``after`` of ``before``, and the same of a file that Windows might have made of it."""
    assert apply_edits(before, list(edits)) == after
    ast.parse(after)
    if "\r" in before:
        return
    if before.endswith("\n") and "\n" in before[:-1] and not before.endswith("\n\n"):
        before, after = before[:-1], after[:-1]
    # What two findings ask for is made once.
    made = apply_edits("\ufeff" + before.replace("\n", "\r\n"), [*edits, *edits])
    assert made == "\ufeff" + after.replace("\n", "\r\n")


def check_refused(before: str, reason: str, *edits: Edit) -> None:
    """Check that ``edits`` are refused for a reason that matches ``reason``."""
    with pytest.raises(EditError, match=reason):
        apply_edits(before, list(edits))
