"""The comment that records a refusal: always legal, always heard."""

from __future__ import annotations

import ast

import pytest

from codemods.interactive.ignoring import with_ignore
from codemods.source.suppressions import Suppressions

COMMENT = "# codemod: ignore[rule-a] -- why not"


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("x = 1\ny = 2\n", 2, "x = 1\ny = 2  @\n"),
        ("x = 1", 1, "x = 1  @"),
        ("x = 1  # why  \ny = 2\n", 1, "x = 1  # why  @\ny = 2\n"),
        ("x = \\\n    1\n", 1, "x = \\\n    1  @\n"),
        ("x = '''\na\n'''\n", 1, "x = '''\na\n'''  @\n"),
        ("f(\n    1,\n)\n", 1, "f(\n    1,\n)  @\n"),
        ("@deco\ndef f(\n    a,\n):\n    pass\n", 2, "@deco\ndef f(\n    a,\n):  @\n    pass\n"),
        ("for x in y:\n    pass\n", 1, "for x in y:  @\n    pass\n"),
        ("if x: y = 1\n", 1, "if x: y = 1  @\n"),
        ("x = 1\r\ny = 2\r\n", 1, "x = 1  @\r\ny = 2\r\n"),
        ("x = 1\ry = 2\r", 2, "x = 1\ry = 2  @\r"),
        ("# one\n\nx = 1\n", 3, "# one\n\nx = 1  @\n"),
    ],
)
def test_stands_where_the_statement_ends(text: str, line: int, expected: str) -> None:
    found = with_ignore(text, line, ["rule-a"], " why\n not ")
    assert found == expected.replace("  @", f"  {COMMENT}")
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(text))
    last = line + (found.count("\n") if text.startswith(("x = \\", "x = '''", "f(")) else 0)
    heard = Suppressions.of(found)
    assert heard.covers("rule-a", line, last)
    assert not heard.covers("rule-b", line, last)


@pytest.mark.parametrize("text", ["", "x = (\n", "\n\n", "x = '''\n", "# x = 1\n"])
def test_where_there_is_no_statement_nothing_changes(text: str) -> None:
    assert with_ignore(text, 1, ["rule-a"], "why") == text
