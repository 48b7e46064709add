"""What the tests of edits share: spans found by what stands there, and the checks that every rewrite has to pass."""

from __future__ import annotations

import ast
import difflib

import pytest

from codemods.edits import EditError, apply_edits, span_of, split_lines
from codemods.edits.model import Edit
from codemods.findings import Span


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
    """Check that ``edits`` make ``after`` of ``before``, with other line ends and without one at the end too."""
    assert apply_edits(before, list(edits)) == after
    ast.parse(after)
    if "\r" not in before:
        # What two findings ask for is made once.
        marked = "\ufeff" + before.replace("\n", "\r\n")
        assert apply_edits(marked, [*edits, *edits]) == "\ufeff" + after.replace("\n", "\r\n")
    if before.endswith("\n") and not before.endswith("\n\n"):
        assert apply_edits(before[:-1], list(edits)) == after[:-1]


def check_refused(before: str, reason: str, *edits: Edit) -> None:
    """Check that ``edits`` are refused for a reason that matches ``reason``."""
    with pytest.raises(EditError, match=reason):
        apply_edits(before, list(edits))


def changed_lines(before: str, after: str) -> set[int]:
    """The lines of ``before``, from 1, that are not in ``after``, or between which something was put."""
    matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    changed: set[int] = set()
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal":
            changed.update(range(start + 1, max(end, start + 1) + 1))
    return changed
