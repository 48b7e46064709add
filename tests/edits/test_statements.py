"""Inserting, removing and moving statements, with the comments and blank lines around them."""

from __future__ import annotations

import pytest

from codemods.terms.edits import DropArgument, InsertStatements, MoveStatement, RemoveStatement, WrapExpression
from tests.edits.tools import check, check_refused, expression, statement


@pytest.mark.parametrize(
    ("before", "anchor", "where", "code", "after"),
    [
        ("a\nb\n", "b", "before", "n", "a\nn\nb\n"),
        ("a\nb\n", "a", "after", "n", "a\nn\nb\n"),
        ("a\nb\n", "b", "after", "n\nm", "a\nb\nn\nm\n"),
        ("a\nb\n", "a", "before", "n", "n\na\nb\n"),
        # Comments directly above stay with their statement, blank lines above the new one.
        ("a\n\n# c\nb  # d\n", "b", "before", "n", "a\n\nn\n# c\nb  # d\n"),
        ("a\n# c\n\nb\n", "b", "before", "n", "a\n# c\n\nn\nb\n"),
        ("a  # d\n# c\nb\n", "a", "after", "n", "a  # d\nn\n# c\nb\n"),
        ("# file\n\n# c\na\n", "a", "before", "n", "# file\n\nn\n# c\na\n"),
        ("#!sh\n# file\na\n", "a", "before", "n", "#!sh\n# file\nn\na\n"),
        ("a\n# end\n", "a", "after", "n", "a\nn\n# end\n"),
        # Semicolons.
        ("a; b; c  # d\n", "b", "before", "n", "a\nn\nb; c  # d\n"),
        ("a; b; c  # d\n", "b", "after", "n", "a; b\nn\nc  # d\n"),
        ("a; b; c;\n", "c", "after", "n", "a; b; c;\nn\n"),
        ("a; b; c\n", "a", "before", "n", "n\na; b; c\n"),
        # One-line suites.
        ("for x in y: a\n", "a", "after", "n", "for x in y:\n    a\n    n\n"),
        ("for x in y: a; b  # c\n", "b", "before", "n", "for x in y:\n    a\n    n\n    b  # c\n"),
        ("if x: a\nelse: b\n", "b", "before", "n", "if x: a\nelse:\n    n\n    b\n"),
        ("if x:\n\tif y: a\n", "a", "before", "n", "if x:\n\tif y:\n\t\tn\n\t\ta\n"),
        ("for x in y: f(\n  a)\n", "f(", "after", "n", "for x in y:\n    f(\n      a)\n    n\n"),
        ("for x in y: a\n", "for", "after", "n", "for x in y: a\nn\n"),
        # Bodies.
        ("for x in y: a\n", "for", "first-in", "n", "for x in y:\n    n\n    a\n"),
        ("for x in y: a\n", "for", "last-in", "n", "for x in y:\n    a\n    n\n"),
        ("while x:\n  a\n  # c\nelse:\n  b\n", "while", "last-in", "n", "while x:\n  a\n  # c\n  n\nelse:\n  b\n"),
        ("while x:\n  a\n\n# c\nb\n", "while", "last-in", "n", "while x:\n  a\n  n\n\n# c\nb\n"),
        ("def f():\n  'doc'\n\n  a\n", "def", "first-in", "n", "def f():\n  'doc'\n  n\n\n  a\n"),
        ("def f():\n  'doc'\n", "def", "first-in", "n", "def f():\n  'doc'\n  n\n"),
        ("def f(): 'doc'\n", "def", "first-in", "n", "def f():\n    'doc'\n    n\n"),
        ("if f:\n  'doc'\n", "if", "first-in", "n", "if f:\n  n\n  'doc'\n"),
        ("@d\ndef f():\n  # c\n  a\n", "def", "first-in", "n", "@d\ndef f():\n  n\n  # c\n  a\n"),
        ("with x:\n\ta\n", "with", "first-in", "if n:\n    m", "with x:\n\tif n:\n\t\tm\n\ta\n"),
        ("if x:\n  a\nelif y:\n  b\n", "elif", "first-in", "n", "if x:\n  a\nelif y:\n  n\n  b\n"),
        # New statements of several lines, with strings and comments.
        ("if x:\n  a\n", "a", "before", "# c\nn(\n    m,\n)  # d", "if x:\n  # c\n  n(\n      m,\n  )  # d\n  a\n"),
        ("if x:\n  a\n", "a", "before", "if n:\n    m\n\nk", "if x:\n  if n:\n    m\n\n  k\n  a\n"),
        ("if x:\n  a\n  b\n", "a", "after", "n\n# d", "if x:\n  a\n  n\n  # d\n  b\n"),
        ("if x:\n  a\n", "a", "after", "n\n# d", "if x:\n  a\n  n\n  # d\n"),
        # Around functions.
        ("a\n\n\ndef f(): pass\n", "def", "before", "n", "a\n\n\nn\n\n\ndef f(): pass\n"),
        ("def f(): pass\n\n\na\n", "def", "after", "n", "def f(): pass\n\n\nn\n\n\na\n"),
        ("class A:\n  def f(): pass\n", "def", "after", "n", "class A:\n  def f(): pass\n\n  n\n"),
    ],
)
def test_statements_are_inserted(before: str, anchor: str, where: str, code: str, after: str) -> None:
    check(before, after, InsertStatements(statement(before, anchor), where, code))  # type: ignore[arg-type]


def test_strings_in_new_statements_are_kept() -> None:
    before = "if x:\n    a\n"
    code = 'n = """\n  m\n"""'
    check(before, 'if x:\n    n = """\n  m\n"""\n    a\n', InsertStatements(statement(before, "a"), "before", code))


def test_insertions_at_one_place_keep_their_order() -> None:
    before = "a\n\nb\n"
    a, b = statement(before, "a"), statement(before, "b")
    edits = [
        InsertStatements(a, "after", "n1"),
        InsertStatements(b, "before", "m1"),
        InsertStatements(a, "after", "n2"),
        InsertStatements(b, "before", "m2"),
    ]
    check(before, "a\nn1\nn2\n\nm1\nm2\nb\n", *edits)


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ("a\nb\nc\n", "b", "a\nc\n"),
        ("a\nb\nc\n", "a", "b\nc\n"),
        ("a\nb\nc\n", "c", "a\nb\n"),
        ("a\n", "a", ""),
        # Comments stay, but for those that speak to tools about the line.
        ("a\n# own\nb  # trailing\nc\n", "b", "a\n# own\n# trailing\nc\n"),
        ("a\n# own\nb  # noqa: E501\nc\n", "b", "a\n# own\nc\n"),
        ("if x:\n  a\n  # own\n  b\nc\n", "b", "if x:\n  a\n  # own\nc\n"),
        ("if x:\n  # own\n  a  # trailing\n", "a", "if x:\n  # own\n  # trailing\n  pass\n"),
        ("# file\na\nb\n", "a", "# file\nb\n"),
        ("a\n# own\nb\n", "b", "a\n# own\n"),
        # Blank lines do not add up.
        ("a\n\nb\n\nc\n", "b", "a\n\nc\n"),
        ("a\n\n\nb\n\nc\n", "b", "a\n\n\nc\n"),
        ("a\nb\n\nc\n", "b", "a\n\nc\n"),
        ("a\n\nb\nc\n", "b", "a\n\nc\n"),
        ("a\n\nb\n", "b", "a\n"),
        ("a\n\nb\n", "a", "b\n"),
        ("# file\n\na\n\nb\n", "a", "# file\n\nb\n"),
        ("def f():\n  a\n\n  b\n", "a", "def f():\n  b\n"),
        ("a\n\n# own\n\nb\n\nc\n", "b", "a\n\n# own\n\n\nc\n"),
        # Semicolons.
        ("a; b; c  # d\n", "b", "a; c  # d\n"),
        ("a; b; c  # d\n", "c", "a; b  # d\n"),
        ("a; b; c  # d\n", "a", "b; c  # d\n"),
        ("a; b;\n", "b", "a\n"),
        ("a; b;\n", "a", "b;\n"),
        # One-line suites.
        ("for x in y: a; b; c  # d\n", "b", "for x in y: a; c  # d\n"),
        ("for x in y: a  # d\n", "a", "for x in y: pass  # d\n"),
        ("for x in y: a  # type: ignore\n", "a", "for x in y: pass\n"),
        # Statements with bodies.
        ("a\nfor x in y:\n  b\n  # c\nd\n", "for", "a\nd\n"),
        ("a\n@d\ndef f(): pass\nd\n", "def", "a\nd\n"),
        ("try:\n  a\nfinally:\n  b\n", "b", "try:\n  a\nfinally:\n  pass\n"),
        ("class A:\n\ta = 1\n", "a", "class A:\n\tpass\n"),
        ("x = \\\n  a\nb\n", "x", "b\n"),
    ],
)
def test_statement_is_removed(before: str, target: str, after: str) -> None:
    check(before, after, RemoveStatement(statement(before, target)))


@pytest.mark.parametrize(
    ("before", "targets", "after"),
    [
        # An else goes.
        ("if x:\n  a\nelse:\n  b\nc\n", "b", "if x:\n  a\nc\n"),
        ("if x: a\nelse: b\n", "b", "if x: a\n"),
        ("for x in y:\n  a\nelse:\n  b\n", "b", "for x in y:\n  a\n"),
        ("while x:\n  a\nelse: b; c\n", "bc", "while x:\n  a\n"),
        # What it says may matter.
        ("if x:\n  a\nelse:  # d\n  b\n", "b", "if x:\n  a\nelse:  # d\n  pass\n"),
        ("if x:\n  a\nelse:\n  # d\n  b\n", "b", "if x:\n  a\nelse:\n  # d\n  pass\n"),
        ("if x:\n  a\nelse:\n  b  # d\n", "b", "if x:\n  a\nelse:\n  # d\n  pass\n"),
        ("if x:\n  a\n# d\nelse:\n  b\n", "b", "if x:\n  a\n# d\nelse:\n  pass\n"),
        ("if x:\n  a\nelse:\n  b  # noqa\n", "b", "if x:\n  a\n"),
        # A branch goes where nothing happens in its test.
        ("if x:\n  a\nb\n", "a", "b\n"),
        ("# d\nif x.y and not z:\n  a\nb\n", "a", "# d\nb\n"),
        ("if torch.cuda.is_available(): a\nb\n", "a", "b\n"),
        ("if f():\n  a\nb\n", "a", "if f():\n  pass\nb\n"),
        ("if x[0]:\n  a\n", "a", "if x[0]:\n  pass\n"),
        ("if x:\n  a\nelif y:\n  b\nc\n", "b", "if x:\n  a\nc\n"),
        ("if x:\n  a\nelif f():\n  b\nc\n", "b", "if x:\n  a\nelif f():\n  pass\nc\n"),
        ("if x:\n  a\nelif y:\n  b\nelse:\n  c\n", "bc", "if x:\n  a\n"),
        ("if x:\n  a\nelif y:\n  b\nelse:\n  c\n", "abc", ""),
        ("if x:\n  if y:\n    a\n  else:\n    b\nc\n", "ab", "c\n"),
        ("for x in y:\n  if z:\n    a\n", "a", "for x in y:\n  pass\n"),
        ("def f():\n  if z:\n    a\n\n  b\n", "a", "def f():\n  b\n"),
        # Only the else is left.
        ("if x:\n  a\nelse:\n  b\n", "a", "if not x:\n  b\n"),
        ("if(x): a\nelse: b\n", "a", "if not x: b\n"),
        ("if not x:\n  a\nelse:\n  b\n", "a", "if x:\n  b\n"),
        ("if x is None:\n  a\nelse:\n  b\n", "a", "if x is not None:\n  b\n"),
        ("if x == 1 or f():\n  a\nelse:\n  b\n", "a", "if not (x == 1 or f()):\n  b\n"),
        ("if x:\n  a\nelif y:\n  b\nelse:\n  c\n", "b", "if x:\n  a\nelif not y:\n  c\n"),
        ("if x:  # d\n  a\nelse:\n  b\n", "a", "if x:  # d\n  pass\nelse:\n  b\n"),
        ("if x:\n  a\nelif y:\n  b\n", "a", "if x:\n  pass\nelif y:\n  b\n"),
        # These are needed.
        ("try:\n  a\nexcept E:\n  b\n", "b", "try:\n  a\nexcept E:\n  pass\n"),
        ("with x:\n  a\n", "a", "with x:\n  pass\n"),
        ("if x:\n  pass\nelse:\n  pass\na\n", "a", "if x:\n  pass\nelse:\n  pass\n"),
    ],
)
def test_branches_that_become_empty(before: str, targets: str, after: str) -> None:
    check(before, after, *(RemoveStatement(statement(before, target)) for target in targets))


def test_all_statements_of_a_line_are_removed() -> None:
    before = "# own\na; b  # c\nd\n"
    check(before, "# own\n# c\nd\n", *(RemoveStatement(statement(before, target)) for target in "ab"))


def test_a_statement_is_removed_and_another_put_in_its_place() -> None:
    before = "if x:\n    # own\n    a  # c\n"
    a = statement(before, "a")
    check(before, "if x:\n    # own\n    n  # c\n", RemoveStatement(a), InsertStatements(a, "after", "n"))
    check(before, "if x:\n    # own\n    n  # c\n", RemoveStatement(a), InsertStatements(a, "before", "n"))
    several = InsertStatements(a, "after", "n\nm")
    check(before, "if x:\n    # own\n    # c\n    n\n    m\n", RemoveStatement(a), several)


def test_removal_takes_edits_within_along() -> None:
    before = "a\nf(b, k=1)\n"
    call = expression(before, "f(b, k=1)")
    edits = [RemoveStatement(statement(before, "f")), DropArgument(call, "k"), WrapExpression(call, "", ".c")]
    check(before, "a\n", *edits)


@pytest.mark.parametrize(
    ("before", "target", "anchor", "where", "after"),
    [
        ("a\nb\nc\n", "c", "b", "before", "a\nc\nb\n"),
        ("a\nb\nc\n", "a", "c", "after", "b\nc\na\n"),
        ("a\nb\nc\n", "a", "b", "after", "b\na\nc\n"),
        # Comments come along.
        ("x\n\n# own\na  # trailing\nb\nc\n", "a", "b", "after", "x\n\nb\n# own\na  # trailing\nc\n"),
        ("x\n\n# other\n\n# own\na\nb\nc\n", "a", "c", "after", "x\n\n# other\n\nb\nc\n# own\na\n"),
        ("# file\n\n# own\na\nb\n", "a", "b", "after", "# file\n\nb\n# own\na\n"),
        ("# file\na\nb\n", "a", "b", "after", "# file\nb\na\n"),
        # Semicolons.
        ("a; b; c  # d\n", "b", "c", "after", "a; c  # d\nb\n"),
        ("a; b  # d\nc\n", "b", "c", "after", "a  # d\nc\nb\n"),
        # Into and out of suites.
        ("for x in y:\n  a\n  b\n", "a", "for", "before", "a\nfor x in y:\n  b\n"),
        ("for x in y:\n  # own\n  a  # c\n", "a", "for", "before", "# own\na  # c\nfor x in y:\n  pass\n"),
        ("for x in y: a  # c\n", "a", "for", "after", "for x in y: pass\na  # c\n"),
        ("for x in y: a; b\n", "a", "for", "after", "for x in y: b\na\n"),
        ("z = 0\nfor x in y:\n\ta\n", "z", "for", "first-in", "for x in y:\n\tz = 0\n\ta\n"),
        ("z = 0\nfor x in y: a\n", "z", "for", "last-in", "for x in y:\n    a\n    z = 0\n"),
        (
            "z = f(\n    1,\n\n    2)\nfor x in y: a\n",
            "z",
            "for",
            "last-in",
            "for x in y:\n    a\n    z = f(\n        1,\n\n        2)\n",
        ),
        (
            "if z:\n  b\n\n  c\nfor x in y:\n    a\n",
            "if",
            "for",
            "last-in",
            "for x in y:\n    a\n    if z:\n      b\n\n      c\n",
        ),
        (
            "with x:\n    def f():\n        a\n    f()\nb\n",
            "def",
            "with",
            "before",
            "def f():\n    a\nwith x:\n    f()\nb\n",
        ),
    ],
)
def test_statement_is_moved(before: str, target: str, anchor: str, where: str, after: str) -> None:
    edit = MoveStatement(statement(before, target), statement(before, anchor), where)  # type: ignore[arg-type]
    check(before, after, edit)


def test_a_statement_is_edited_on_its_way() -> None:
    before = "for x in y:\n    loss.backward(k=f(a))\n    step()\n"
    edits = [
        MoveStatement(statement(before, "loss"), statement(before, "for"), "after"),
        WrapExpression(expression(before, "a"), "", ".b"),
        RemoveStatement(statement(before, "step")),
    ]
    check(before, "for x in y:\n    pass\nloss.backward(k=f(a.b))\n", *edits)


def test_a_statement_moves_into_one_that_moves() -> None:
    before = "a\nfor x in y:\n    b\nc\n"
    edits = [
        MoveStatement(statement(before, "a"), statement(before, "b"), "after"),
        MoveStatement(statement(before, "for"), statement(before, "c"), "after"),
    ]
    check(before, "c\nfor x in y:\n    b\n    a\n", *edits)
    check(before, "c\nfor x in y:\n    b\n    a\n", *reversed(edits))


def test_new_statements_go_into_one_that_moves() -> None:
    before = "if x:\n    for x in y:\n        b\nc\n"
    edits = [
        InsertStatements(statement(before, "b"), "after", "n"),
        MoveStatement(statement(before, "for"), statement(before, "c"), "after"),
    ]
    check(before, "c\nfor x in y:\n    b\n    n\n", *edits)


def test_contradictions_are_refused() -> None:
    before = "a\nfor x in y:\n    b\nfor z in w:\n    c\n"
    a, b, c, x, z = (statement(before, start) for start in ("a", "b", "c", "for x", "for z"))
    check_refused(before, "two places", MoveStatement(a, b, "after"), MoveStatement(a, c, "after"))
    check_refused(before, "both removed and moved", MoveStatement(a, b, "after"), RemoveStatement(a))
    check_refused(before, "into or next to itself", MoveStatement(x, b, "after"))
    check_refused(before, "into or next to itself", MoveStatement(x, x, "first-in"))
    check_refused(before, "into or next to itself", MoveStatement(x, x, "after"))
    check_refused(before, "into each other", MoveStatement(x, c, "after"), MoveStatement(z, b, "after"))
    check_refused(before, "that is to be removed", RemoveStatement(x), InsertStatements(b, "after", "n"))
    check_refused(before, "that is to be removed", RemoveStatement(x), InsertStatements(x, "last-in", "n"))
    check_refused(before, "that is to be removed", RemoveStatement(x), MoveStatement(a, b, "after"))


def test_what_is_not_there_is_refused() -> None:
    before = "if x:\n    a = 1\nelif y:\n    b\n"
    a = statement(before, "a")
    check_refused(before, "no statement at line 2, column 6", RemoveStatement(a._replace(column=5)))
    check_refused(before, "no statement", RemoveStatement(a._replace(end_column=6)))
    check_refused(before, "no statement", RemoveStatement(expression(before, "1")))
    check_refused(before, "no statement with a body", InsertStatements(a, "first-in", "n"))
    check_refused(before, "elif", RemoveStatement(statement(before, "elif")))
    check_refused(before, "elif", InsertStatements(statement(before, "elif"), "before", "n"))


@pytest.mark.parametrize("code", ["", "# nothing", "a b", "  a"])
def test_code_without_statements_is_refused(code: str) -> None:
    before = "a\n"
    check_refused(before, "statements|parse", InsertStatements(statement(before, "a"), "after", code))


def test_a_block_that_moves_is_set_apart_as_it_was() -> None:
    before = "a\nb\n\nc\nd\n"
    edits = [
        MoveStatement(statement(before, "c"), statement(before, "a"), "before"),
        MoveStatement(statement(before, "d"), statement(before, "a"), "before", blank_below=1),
    ]
    check(before, "c\nd\n\na\nb\n", *edits)
