"""Findings followed through an edit."""

from __future__ import annotations

from codemods.rewriting.continuations import continuations
from codemods.source.line_map import LineMap
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span


def finding(line: int, rule: str = "r", path: str = "a.py", column: int = 0) -> Finding:
    return Finding(rule, path, Span(line, column, line, column + 1), Promise.EXACT, "m")


def follow(before: list[Finding], after: list[Finding], old: str, new: str, *mended: int) -> list[int | None]:
    return continuations(before, after, old={"a.py": old}, new={"a.py": new}, mended=mended)


def test_lines_keep_their_origin_around_an_insertion() -> None:
    lines = LineMap("a\nb\nc\n", "a\nnew\nb\nc\n")
    assert [list(lines.origins(n)) for n in (1, 2, 3, 4)] == [[1], [], [2], [3]]
    assert [lines.origin(n) for n in (1, 2, 3, 4)] == [1, 2, 2, 3]


def test_indentation_and_line_ends_do_not_count() -> None:
    lines = LineMap("for x in y:\r\n    f(x)\rz\n", "with g:\n  for x in y:\n      f(x)\nz\n")
    assert [lines.origin(n) for n in (2, 3, 4)] == [1, 2, 3]


def test_changed_lines_stand_for_changed_lines() -> None:
    assert list(LineMap("a\nb\nc\nd", "a\nB\nC\nd").origins(3)) == [3]
    assert list(LineMap("a\nb\nc\nd", "a\nX\nd").origins(2)) == [2, 3]
    assert LineMap("a\nb", "").origin(1) == 1


def test_a_finding_goes_with_its_line() -> None:
    old, new = "a\nb\nc\n", "new\na\nB\nc\n"
    assert follow([finding(1), finding(3)], [finding(2), finding(4)], old, new) == [0, 1]
    assert follow([finding(1)], [finding(4)], old, new) == [None]
    assert follow([finding(1, "other")], [finding(2)], old, new) == [None]


def test_a_mended_one_is_continued_only_if_no_other_could_be() -> None:
    old, new = "x; x\n", "x; y\n"
    both = [finding(1, column=0), finding(1, column=3)]
    assert follow(both, [finding(1)], old, new, 1) == [0]
    assert follow(both, [finding(1)], old, new, 0) == [1]
    assert follow(both, [finding(1), finding(1)], old, new, 0) == [1, 0]


def test_a_statement_that_moved_takes_its_finding_along() -> None:
    old, new = "moved()\na\nb\nc\n", "a\nb\nc\nmoved()\n"
    assert follow([finding(1)], [finding(4)], old, new) == [0]
    assert follow([finding(1)], [finding(4)], old, new, 0) == [None]
