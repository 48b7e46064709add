"""All edits of a file in one go: what is kept of any file, and what is refused whatever is asked for."""

from __future__ import annotations

import pytest

from codemods.edits.apply import apply_edits
from codemods.terms.edits import AddHelper, DropArgument, InsertStatements, RemoveStatement, WrapExpression
from codemods.terms.spans import Span
from tests.edits.tools import check, check_refused, expression, statement

CALL = "f(a, k=True)"


@pytest.mark.parametrize("text", ["", "a", "\ufeffa\r\n", "\x0cnot Python("])
def test_nothing_to_do_changes_nothing(text: str) -> None:
    assert apply_edits(text, []) == text


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "{}\n",
        "{}\r",
        "{}\r\n\r\n",
        "\n\n\n{}\n\n\n",
        "\ufeff{}\r\n",
        "a\r\nb\n{}\rc\r\n",
        "a\r{}",
        "{}\r\n# end",
        "{}  # end \t ",
        "{} ;",
        "  \n\t\n{}\n  ",
        # Form feeds: libcst loses those in front of code.
        "\x0c{}\n",
        "a\n\x0c{}\n",
        "a\n\x0cb\n# c\n\x0c@d\ndef g(): pass\n\x0c\n\x0c# e\n{}",
        "if a:\n    b\n\x0c    c\n{}",
        # What splits lines for others than Python.
        "'\x0b\x0c\x1c\x85\u2028'; {}\n",
        "# \x0b\x1c\x85\u2028\n{}\n",
        # Odd layout.
        "x  =  {} ;  y\n",
        "x = \\\n    {}\n",
        "if a :\n\tb\nelse :\n        {}\n",
        "if a:\n   # b\n {}\n # c\n  # d\n# e\n",
        "class A  ( B ) :\n  def f ( self ) -> {} : pass\n",
        "def f(\n  a = {}\n): pass\n",
        'f"""{{\n  {}\n}}"""\n',
        "x = [\n\n  # a\n    {} # b\n\n  , ]\n",
        "with (\n  {} as a,\n  b,\n): pass\n",
        pytest.param("try: pass\nexcept* {}: pass\n", marks=pytest.mark.skipif("sys.version_info < (3, 11)")),
        "match {}:\n  case [a, *_] if b: pass\n",
        "@{}\nclass A: pass\n",
        "lambda *, a={}: a\n",
        "print({}, file=a)\nexec('a')\n",
    ],
)
def test_every_other_byte_is_kept(around: str) -> None:
    before, after = (around.format(call) if "{{" in around else around.replace("{}", call) for call in (CALL, "f(a)"))
    edit = DropArgument(expression(before.removeprefix("\ufeff"), CALL), "k")
    assert apply_edits(before, [edit]) == after


def test_edits_may_come_in_any_order() -> None:
    before = "a = f(x)\nb = f(y)\n"
    edits = [
        WrapExpression(expression(before, "f(y)"), "", ".z"),
        InsertStatements(statement(before, "b"), "before", "n"),
        WrapExpression(expression(before, "x"), "", ".z"),
        RemoveStatement(statement(before, "b")),
    ]
    check(before, "a = f(x.z)\nn\n", *edits)
    check(before, "a = f(x.z)\nn\n", *reversed(edits))


@pytest.mark.parametrize("text", ["f(", "a\x00b", "  a", "\\\n", "a = 1\n\\\n"])
def test_what_cannot_be_parsed_is_refused(text: str) -> None:
    check_refused(text, "not Python|libcst cannot parse", AddHelper("h", "def h(): pass"))


@pytest.mark.parametrize("fed", ["  \x0c    y", "    if x:\n\x0c        y\n    z"])
def test_a_form_feed_within_an_indentation_is_refused_in_a_line(fed: str) -> None:
    told = r"a form feed stands in the indentation of line [34], where libcst cannot read it\Z"
    check_refused(f"def f():\n    x\n{fed}\n", told, AddHelper("h", "def h(): pass"))


@pytest.mark.parametrize(
    "deep",
    ["-" * 5_000 + "a", "a" + ".a" * 5_000, "+".join(["a"] * 5_000), "(" * 5_000 + "a" + ")" * 5_000],
    ids=["operators", "attributes", "sum", "parentheses"],
)
def test_what_is_nested_too_deeply_is_refused(deep: str) -> None:
    check_refused(f"{CALL}\nx = {deep}\n", "nested too deeply|not Python", DropArgument(Span(1, 0, 1, 12), "k"))


def test_a_long_chain_is_edited() -> None:
    before = f"{CALL}\nx = {'+'.join(['a'] * 150)}\n" + "if a: b\n" + "elif a: b\n" * 150
    assert apply_edits(before, [DropArgument(Span(1, 0, 1, 12), "k")]) == before.replace(CALL, "f(a)")


def test_what_is_no_edit_is_refused() -> None:
    check_refused("a\n", "str is not an edit", "remove")  # type: ignore[arg-type]
