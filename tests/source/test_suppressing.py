"""Suppression comments put into texts and taken out of them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codemods.source.suppressing import ToSuppress, comment_text, is_reason, with_comments, without_rules
from codemods.source.suppressions import Suppressions

RULE = "stored-graph"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x = 1  # codemod: ignore[stored-graph]\n"),
        ("x = 1", "x = 1  # codemod: ignore[stored-graph]"),
        ("x = 1   \n", "x = 1  # codemod: ignore[stored-graph]\n"),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa: E501  # codemod: ignore[stored-graph]\n"),
        ("x = f(  # type: ignore\n    1)\n", "x = f(  # type: ignore  # codemod: ignore[stored-graph]\n    1)\n"),
        ("x = 1 + \\\n    2\n", "x = 1 + \\\n    2  # codemod: ignore[stored-graph]\n"),
        ('x = """\n# no\n"""\n', 'x = """\n# no\n"""  # codemod: ignore[stored-graph]\n'),
        ('x = f"""{\n1}"""\n', 'x = f"""{\n1}"""  # codemod: ignore[stored-graph]\n'),
        ("1\\\n  # why", "1\\\n  # why  # codemod: ignore[stored-graph]"),
        ("x = 1; y = 2\n", "x = 1; y = 2  # codemod: ignore[stored-graph]\n"),
        ("for x in y:\n    z()\n", "for x in y:  # codemod: ignore[stored-graph]\n    z()\n"),
        ("for x in y: z()\n", "for x in y: z()  # codemod: ignore[stored-graph]\n"),
        ("x = 1  # codemod: ignore[other]\n", "x = 1  # codemod: ignore[other, stored-graph]\n"),
        ("x  # codemod: ignore[other] -- why  # noqa\n", "x  # codemod: ignore[other, stored-graph] -- why  # noqa\n"),
        ("x = 1  # codemod: ignore[]\n", "x = 1  # codemod: ignore[stored-graph]\n"),
        ("x = 1  # codemod: ignore[other\n", "x = 1  # codemod: ignore[other, stored-graph]\n"),
        (
            "x = f(\n    1,  # codemod: ignore[other]\n)\n",
            "x = f(\n    1,  # codemod: ignore[other, stored-graph]\n)\n",
        ),
        ("x = 1\r\ny = 2\r\n", "x = 1  # codemod: ignore[stored-graph]\r\ny = 2\r\n"),
        ("x = 1\rz = 2\r", "x = 1  # codemod: ignore[stored-graph]\rz = 2\r"),
    ],
)
def test_a_comment_is_put(before: str, after: str) -> None:
    last = {"x = 1 + \\\n    2\n": 2, 'x = """\n# no\n"""\n': 3}.get(before, 1)
    new, unplaced = with_comments(before, [ToSuppress(RULE, 1, last)])
    assert (new, unplaced) == (after, [])
    assert with_comments(new, [ToSuppress(RULE, 1, last)]) == (new, [])


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # codemod: ignore\n",
        "x = 1  # codemod: ignore[stored-graph]\n",
        "# codemod: ignore-file\nx = 1\n",
        "# codemod: ignore-file[stored-graph]\n\n",
    ],
)
def test_what_is_suppressed_already_stays_as_it_is(text: str) -> None:
    line = text.count("\n", 0, max(text.find("x"), 0)) + 1
    assert with_comments(text, [ToSuppress(RULE, line, line)]) == (text, [])


def test_several_findings_of_a_statement_share_a_comment() -> None:
    new, _ = with_comments(
        "x = f(\n    1)\n", [ToSuppress("b", 1, 2), ToSuppress("a", 1, 2), ToSuppress("c", 2, 2)], "see there"
    )
    assert new == "x = f(  # codemod: ignore[a, b, c] -- see there\n    1)\n"


def test_another_reason_is_another_comment() -> None:
    new, _ = with_comments("x = 1  # codemod: ignore[a] -- old\n", [ToSuppress("b", 1, 1)], "new")
    assert new == "x = 1  # codemod: ignore[a] -- old  # codemod: ignore[b] -- new\n"
    said = Suppressions.of(new)
    assert [comment.reason for comment in said.comments] == ["old", "new"]
    assert (
        with_comments("x = 1  # codemod: ignore[a] -- old\n", [ToSuppress("b", 1, 1)], "old")[0].count("codemod") == 1
    )


def test_the_first_line_with_room_is_taken() -> None:
    long = "x = f(" + "a" * 80 + ",\n    1,\n    2)\n"
    assert with_comments(long, [ToSuppress(RULE, 1, 3)])[0].splitlines()[1] == "    1,  # codemod: ignore[stored-graph]"
    wide = long + "# " + "-" * 150 + "\n"
    assert with_comments(wide, [ToSuppress(RULE, 1, 3)])[0].splitlines()[0].endswith("# codemod: ignore[stored-graph]")
    single = "x = f(" + "a" * 80 + ")\n"
    assert with_comments(single, [ToSuppress(RULE, 1, 1)])[0].endswith(")  # codemod: ignore[stored-graph]\n")


@pytest.mark.parametrize("text", ["x = (\n", "'''", "if x:\n        a\n    b\n"])
def test_text_that_is_no_python_is_left(text: str) -> None:
    assert with_comments(text, [ToSuppress(RULE, 1, 1)]) == (text, [ToSuppress(RULE, 1, 1)])


def test_a_line_without_a_statement() -> None:
    assert with_comments("x = 1\n\n", [ToSuppress(RULE, 2, 2)]) == ("x = 1\n\n", [ToSuppress(RULE, 2, 2)])


@pytest.mark.parametrize("reason", ["because", "see #12", "ends -- twice", "naïve"])
def test_reasons(reason: str) -> None:
    assert is_reason(reason)
    (comment,) = Suppressions.of(f"x = 1  {comment_text({'a'}, reason)}\n").comments
    assert (comment.rules, comment.reason) == (("a",), reason)


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "a\rb", "x # codemod: ignore", "x # noqa"])
def test_what_is_no_reason(reason: str) -> None:
    assert not is_reason(reason)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # codemod: ignore[a]\n", "x = 1\n"),
        ("x = 1  # codemod: ignore[a] -- why not\n", "x = 1\n"),
        ("x = 1  # codemod: ignore[a] -- see #12  # noqa\n", "x = 1  # noqa\n"),
        ("x = 1  # noqa  # codemod: ignore[a]\n", "x = 1  # noqa\n"),
        ("x = 1  # codemod: ignore[a, keep] -- why\n", "x = 1  # codemod: ignore[keep] -- why\n"),
        ("# codemod: ignore-file[a]\nx = 1\n", "x = 1\n"),
        ("    # codemod: ignore[a]\r\nx = 1\r\n", "x = 1\r\n"),
        ("# codemod: ignore-file[a]  # said they\nx = 1\n", "# said they\nx = 1\n"),
    ],
)
def test_a_comment_is_taken_out(before: str, after: str) -> None:
    (comment,) = Suppressions.of(before).comments
    assert without_rules(before, {comment: ["a"]}) == after


PIECES = [
    "x = f(",
    ")",
    "1",
    "\n",
    "    ",
    "if x:",
    '"""',
    "\\\n",
    "  # why",
    "  # codemod: ignore[b]",
    "y = 2",
    "\r\n",
]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@example("    1\\\n  # why", 1)
@example("1\\\n  # why", 1)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.integers(1, 6))
def test_the_program_stays_what_it_was_and_a_second_time_changes_nothing(text: str, line: int) -> None:
    new, unplaced = with_comments(text, [ToSuppress(RULE, line, line)])
    if unplaced:
        assert new == text
        return
    assert Suppressions.of(new).covers(RULE, line, line)
    assert with_comments(new, [ToSuppress(RULE, line, line)]) == (new, [])
    try:
        tree = ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return
    assert ast.dump(ast.parse(new)) == tree
