from __future__ import annotations

import sys
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.source.suppressions import Suppressions

RULE = "surplus-retain-graph"
OTHER = "stored-graph"


@pytest.mark.parametrize(
    "comment",
    [
        "# codemod: ignore",
        "#codemod:ignore",
        "#  Codemod :  IGNORE",
        "# noqa: E501  # codemod: ignore",
        "# codemod: ignore because the graph is walked again",
        "# codemod: ignore, see below",
        "# codemod: ignore[surplus-retain-graph]",
        "# codemod: ignore [ stored-graph ,  Surplus_Retain-Graph ] as said",
        "# codemod: ignore[stored-graph,surplus-retain-graph,]",
        "# codemod: ignore[surplus-retain-graph",
        "# codemod: ignore[stored-graph]  # codemod: ignore[surplus-retain-graph]",
    ],
)
def test_a_comment_on_the_line(comment: str) -> None:
    said = Suppressions.of(f"x = 1\nloss.backward(retain_graph=True)  {comment}\ny = 2\n")
    assert said.covers(RULE, 2, 2)
    assert not said.covers(RULE, 1, 1)
    assert not said.covers(RULE, 3, 3)


@pytest.mark.parametrize(
    "line",
    [
        "x = 1",
        "x = 1  # codemod: ignored",
        "x = 1  # codemod: ignore-me",
        "x = 1  # codemod: ignore_file",
        "x = 1  # codemods: ignore",
        "x = 1  # codemod ignore",
        "x = 1  # ignore",
        "x = 1  # codemod: ignore[stored-graph]",
        "x = 1  # codemod: ignore[surplus]",
        "x = 1  # codemod: ignore[]",
        "x = '# codemod: ignore'",
        "x = '''\n# codemod: ignore'''",
        "'# codemod: ignore-file'",
        "x = f'{1}# codemod: ignore'",
        "# codemod: ignore\nx = 1",
    ],
)
def test_what_is_no_such_comment(line: str) -> None:
    said = Suppressions.of(f"{line}\n")
    assert not any(said.covers(RULE, number, number) for number in (1, 2))


def test_named_rules_only() -> None:
    said = Suppressions.of("x = 1  # codemod: ignore[stored-graph]\ny = 2  # codemod: ignore\n")
    assert said.covers(OTHER, 1, 1)
    assert not said.covers(RULE, 1, 1)
    assert said.covers(OTHER, 2, 2)
    assert said.covers(RULE, 2, 2)


@pytest.mark.parametrize("commented", [1, 2, 3, 4])
def test_any_line_of_a_statement_stands_for_all_of_it(commented: int) -> None:
    lines = ["loss.backward(", "    retain_graph=True,", "    # why", ")", "y = 2"]
    lines[commented - 1] += "  # codemod: ignore"
    said = Suppressions.of("\n".join(lines))
    for first, last in ((1, 4), (2, 2), (1, 1), (4, 4)):
        assert said.covers(RULE, first, last)
    assert not said.covers(RULE, 5, 5)


def test_of_a_block_its_head_and_its_last_line() -> None:
    head = Suppressions.of("def f(a,  # codemod: ignore\n      b):\n    x = 1\n    y = 2\n")
    assert head.covers(RULE, 1, 4)
    assert head.covers(RULE, 2, 4)
    assert not head.covers(RULE, 3, 4)
    inner = Suppressions.of("for x in y:\n    a = 1\n    b = 2  # codemod: ignore\n    c = 3\n")
    assert inner.covers(RULE, 3, 3)
    assert not inner.covers(RULE, 1, 4)
    assert Suppressions.of("for x in y:\n    a = 1  # codemod: ignore\n").covers(RULE, 1, 2)


def test_continuations_semicolons_and_decorators() -> None:
    said = Suppressions.of("x = 1 + \\\n    2  # codemod: ignore\na = 1; b = 2  # codemod: ignore\n@f\ndef g(): pass")
    assert said.covers(RULE, 1, 1)
    assert said.covers(RULE, 3, 3)
    assert not said.covers(RULE, 4, 4)
    assert not said.covers(RULE, 5, 5)


def test_a_whole_file() -> None:
    said = Suppressions.of("x = 1\n\n    # see there. # codemod: ignore-file\n")
    assert said.covers(RULE, 1, 1)
    assert said.covers(OTHER, 99, 100)
    some = Suppressions.of("x = [  # codemod: ignore-file [stored-graph]\n]\n# codemod: IGNORE-FILE[a-rule]")
    assert some.covers(OTHER, 7, 7)
    assert some.covers("a-rule", 7, 7)
    assert not some.covers(RULE, 1, 1)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end(end: str) -> None:
    said = Suppressions.of(end.join(["\x0cx = 1", "y = 2  # codemod: ignore", "z = 3"]))
    assert [said.covers(RULE, number, number) for number in (1, 2, 3)] == [False, True, False]


@pytest.mark.parametrize(
    "rest", ["x = (", "'''", "if x:\n        a\n    b\n", "\tx\n        y\n", "x = 'a", "$ ? `", "\0", "print 'a'\n  x"]
)
def test_text_that_is_no_python_keeps_what_came_before(rest: str) -> None:
    said = Suppressions.of(f"x = 1  # codemod: ignore\n\n{rest}")
    assert said.covers(RULE, 1, 1)


def test_an_unfinished_statement_keeps_its_comment() -> None:
    assert Suppressions.of("x = 1\ny = (1,  # codemod: ignore\n").covers(RULE, 2, 2)


def test_text_that_says_nothing_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize, "generate_tokens", None)
    assert not Suppressions.of("x = 1  # type: ignore\n" * 1000).covers(RULE, 1, 1)


PIECES = [
    "# codemod: ignore",
    "# codemod: ignore-file[",
    "[",
    "]",
    "(",
    ")",
    "\n",
    "\r",
    "  ",
    "x",
    "'",
    '"""',
    "\\",
    "\0",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_read_without_a_word(text: str) -> None:
    assert Suppressions.of(text).covers(RULE, sys.maxsize, sys.maxsize) in (True, False)
