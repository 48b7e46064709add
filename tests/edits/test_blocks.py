"""Putting statements under a new header: indented as the file is, strings untouched."""

from __future__ import annotations

import ast

import pytest

from codemods.terms.edits import (
    DropArgument,
    InsertStatements,
    MoveStatement,
    RemoveStatement,
    WrapBlock,
    WrapExpression,
)
from tests.edits.tools import check, check_refused, expression, statement

HEADER = "with n:"


@pytest.mark.parametrize(
    ("before", "first", "last", "after"),
    [
        ("a\nb\nc\n", "b", "b", "a\nwith n:\n    b\nc\n"),
        ("a\nb\nc\n", "a", "c", "with n:\n    a\n    b\n    c\n"),
        # The indentation is that of the block around or, at module level, that of the blocks within.
        ("def f():\n\ta\n", "a", "a", "def f():\n\twith n:\n\t\ta\n"),
        ("def f():\n  a\n", "a", "a", "def f():\n  with n:\n    a\n"),
        ("if x:\n        a\n", "a", "a", "if x:\n        with n:\n                a\n"),
        ("if x:\n    y\nfor x in y:\n  a\n", "for", "for", "if x:\n    y\nwith n:\n  for x in y:\n    a\n"),
        ("class A:\n  x\n  def f():\n      a\n", "a", "a", "class A:\n  x\n  def f():\n      with n:\n          a\n"),
        # Comments and blank lines: those above stay above, those between move along.
        ("a\n\n# c\nb  # d\n\n# e\nc\n", "b", "c", "a\n\n# c\nwith n:\n    b  # d\n\n    # e\n    c\n"),
        (
            "if x:\n    # c\n    b  # d\n\n    # e\n    c\n    # f\n",
            "b",
            "c",
            "if x:\n    # c\n    with n:\n        b  # d\n\n        # e\n        c\n    # f\n",
        ),
        # Lines of blanks stay as they are, wherever they stand.
        (
            "def f():\n    for x in y:\n        a\n        \n        b(\n            c,\n            \n        )\n  \n"
            "        # d\n            \n    \n    e\n",
            "for",
            "for",
            "def f():\n    with n:\n        for x in y:\n            a\n        \n            b(\n                c,\n"
            "            \n            )\n  \n            # d\n            \n    \n    e\n",
        ),
        ("for x in y:\n\ta\n\t\n  \n\tb\nc\n", "for", "for", "with n:\n\tfor x in y:\n\t\ta\n\t\n  \n\t\tb\nc\n"),
        ("# file\n\nb\n", "b", "b", "# file\n\nwith n:\n    b\n"),
        ("b\n\n\n# end\n", "b", "b", "with n:\n    b\n\n\n# end\n"),
        # Continued lines move along.
        (
            "b = f(\n    c,\n\n    # d\n    d,\n)\n",
            "b",
            "b",
            "with n:\n    b = f(\n        c,\n\n        # d\n        d,\n    )\n",
        ),
        ("if x:\n  b = c + \\\n    d\n", "b", "b", "if x:\n  with n:\n    b = c + \\\n      d\n"),
        ("if x:\n    b = f(c,\n  d)\n", "b", "b", "if x:\n    with n:\n        b = f(c,\n  d)\n"),
        # Statements with bodies.
        (
            "for x in y:\n    a\n\n    b\nelse:\n    c\nd\n",
            "for",
            "for",
            "with n:\n    for x in y:\n        a\n\n        b\n    else:\n        c\nd\n",
        ),
        ("@d\n# c\ndef f(): pass\n", "def", "def", "with n:\n    @d\n    # c\n    def f(): pass\n"),
        # Semicolons.
        ("a; b; c  # d\n", "b", "b", "a\nwith n:\n    b\nc  # d\n"),
        ("a; b; c  # d\n", "a", "b", "with n:\n    a; b\nc  # d\n"),
        ("a; b; c  # d\n", "b", "c", "a\nwith n:\n    b; c  # d\n"),
        ("# e\na; b;  # d\nc\n", "b", "c", "# e\na\nwith n:\n    b;  # d\n    c\n"),
        # One-line suites.
        ("for x in y: a  # c\n", "a", "a", "for x in y:\n    with n:\n        a  # c\n"),
        ("for x in y: a; b\n", "b", "b", "for x in y:\n    a\n    with n:\n        b\n"),
        ("if x:\n\tif y: f(a,\n\t\tb)\n", "f(", "f(", "if x:\n\tif y:\n\t\twith n:\n\t\t\tf(a,\n\t\t\t\tb)\n"),
        ("if x: f(a,\n\n  b)\n", "f(", "f(", "if x:\n    with n:\n        f(a,\n\n          b)\n"),
        ("if x: a\nelif y: b\nelse: c\n", "b", "b", "if x: a\nelif y:\n    with n:\n        b\nelse: c\n"),
        ("try: a\nexcept E: b\n", "b", "b", "try: a\nexcept E:\n    with n:\n        b\n"),
    ],
)
def test_statements_are_wrapped(before: str, first: str, last: str, after: str) -> None:
    check(before, after, WrapBlock(statement(before, first), statement(before, last), HEADER))


def test_strings_keep_every_byte() -> None:
    before = (
        'def f():\n    """doc\n    string"""\n    s = """\n  text\n    {x}\n\n"""\n    t = f"""{\n    x = }\n  {y}"""\n'
        "    u = 'a\\\n    b'\n"
    )
    edit = WrapBlock(statement(before, "s ="), statement(before, "u ="), HEADER)
    after = (
        'def f():\n    """doc\n    string"""\n    with n:\n        s = """\n  text\n    {x}\n\n"""\n        t = f"""{\n'
        '    x = }\n  {y}"""\n        u = \'a\\\n    b\'\n'
    )
    check(before, after, edit)
    wrapped, original = ast.parse(after).body[0], ast.parse(before).body[0]
    assert isinstance(wrapped, ast.FunctionDef)
    assert isinstance(original, ast.FunctionDef)
    block = wrapped.body[1]
    assert isinstance(block, ast.With)
    assert [ast.dump(node) for node in block.body] == [ast.dump(node) for node in original.body[1:]]


def test_line_ends_are_those_of_the_neighbours() -> None:
    before = "a\r\nif x:\r\n    b\n    c\r\n"
    edit = WrapBlock(statement(before, "b"), statement(before, "c"), HEADER)
    check(before, "a\r\nif x:\r\n    with n:\n        b\n        c\r\n", edit)


def test_headers_of_other_blocks() -> None:
    before = "a\n"
    a = statement(before, "a")
    check(before, "if not n:  # c\n    a\n", WrapBlock(a, a, "if not n:  # c"))
    check(before, "for _ in n:\n    a\n", WrapBlock(a, a, "for _ in n:"))


def test_blocks_nest() -> None:
    before = "a\nb\nc\n"
    a, b, c = (statement(before, name) for name in "abc")
    after = "with n:\n    with m:\n        a\n        b\n    c\n"
    check(before, after, WrapBlock(a, b, "with m:"), WrapBlock(a, c, HEADER))
    check(before, after, WrapBlock(a, c, HEADER), WrapBlock(a, b, "with m:"))
    after = "with n:\n    a\n    with m:\n        b\n        c\n"
    check(before, after, WrapBlock(b, c, "with m:"), WrapBlock(a, c, HEADER))
    check(before, "with n:\n    with m:\n        a\nb\nc\n", WrapBlock(a, a, HEADER), WrapBlock(a, a, "with m:"))


def test_blocks_in_blocks_of_others() -> None:
    before = "for x in y:\n    a\n"
    for_, a = statement(before, "for"), statement(before, "a")
    after = "with n:\n    for x in y:\n        with m:\n            a\n"
    check(before, after, WrapBlock(a, a, "with m:"), WrapBlock(for_, for_, HEADER))


def test_wrapped_statements_are_edited() -> None:
    before = "for x in y:\n    total += f(loss, k=1)\n    a\n    b\n"
    first, last = statement(before, "total"), statement(before, "b")
    edits = [
        WrapBlock(first, last, HEADER),
        DropArgument(expression(before, "f(loss, k=1)"), "k"),
        WrapExpression(expression(before, "loss"), "float(", ")"),
        RemoveStatement(statement(before, "a")),
        MoveStatement(last, statement(before, "for"), "after"),
        InsertStatements(first, "before", "above"),
        InsertStatements(first, "after", "within"),
        InsertStatements(last, "after", "below"),
    ]
    after = "for x in y:\n    above\n    with n:\n        total += f(float(loss))\n        within\n    below\nb\n"
    check(before, after, *edits)


def test_contradictions_are_refused() -> None:
    before = "a\nb\nc\nif x:\n    d\n"
    a, b, c, d = (statement(before, name) for name in "abcd")
    check_refused(before, "cross", WrapBlock(a, b, HEADER), WrapBlock(b, c, HEADER))
    check_refused(before, "before the first", WrapBlock(b, a, HEADER))
    check_refused(before, "not in one suite", WrapBlock(a, d, HEADER))
    check_refused(before, "all statements", WrapBlock(a, b, HEADER), RemoveStatement(a), RemoveStatement(b))


@pytest.mark.parametrize("header", ["with n", "n", "with n: a", "", "with n:\n    a\nwith m:"])
def test_what_is_no_header_is_refused(header: str) -> None:
    before = "a\n"
    a = statement(before, "a")
    check_refused(before, "not the header of a block", WrapBlock(a, a, header))


def test_nothing_else_changes_in_a_crooked_file() -> None:
    before = "\x0c\n# \u2028é\nif x :\n\n  y = 'ü' ; a ;  b  # d\x0b\n\n\n  # e\n  \n\t\nz\\\n = 1"
    after = before.replace("y = 'ü' ; a ;  b", "y = 'ü'\n  with n:\n    a\n  b")
    a = statement(before, "a")
    check(before, after, WrapBlock(a, a, HEADER))
