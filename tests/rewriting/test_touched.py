"""Which lines run only if a rewrite matters."""

from __future__ import annotations

from textwrap import dedent

from codemods.edits.apply import apply_edits
from codemods.rewriting.touched import Touched, touched_by
from codemods.terms.edits import (
    AddDecorator,
    DropArgument,
    Edit,
    InsertStatements,
    MoveStatement,
    RemoveStatement,
    WrapBlock,
)
from codemods.terms.spans import Span

TEXT = dedent(
    '''\
    import torch

    def evaluate(net, x):
        """Report."""
        y = net(x)
        return y

    for x in data:
        h = net(x)
        loss = h.sum()
        loss.backward(
            retain_graph=True)
        step()
    print(evaluate(net, x))
    '''
)
DEF = Span(3, 0, 6, 12)
BACKWARD = Span(11, 4, 12, 26)
PRINT = Span(14, 0, 14, 23)
LOOP = Span(8, 0, 13, 10)
STORE = Span(9, 4, 9, 14)


def lines(edit: Edit) -> tuple[set[int], set[int]]:
    """The lines to watch before and after ``edit``."""
    touched = touched_by({"t.py": [edit]}, {"t.py": TEXT})
    new = apply_edits(TEXT, [edit])
    after = touched.after({"t.py": TEXT}, {"t.py": new})
    return {line for _, line in touched.before()}, {line for _, line in after}


def test_a_changed_statement_is_its_lines() -> None:
    before, after = lines(DropArgument(BACKWARD, "retain_graph"))
    assert before == {11, 12}
    assert after == {11}


def test_a_decorator_counts_by_the_body_not_by_the_definition() -> None:
    before, after = lines(AddDecorator(DEF, "torch.no_grad()"))
    assert before == {5, 6}
    assert after == {6, 7}


def test_a_wrapped_block_is_what_it_wraps() -> None:
    before, after = lines(WrapBlock(PRINT, PRINT, "with torch.no_grad():"))
    assert before == {14}
    assert 15 in after


def test_what_is_inserted_after_a_loop_runs_only_after_it() -> None:
    before, after = lines(InsertStatements(LOOP, "after", "done()"))
    assert before == {13, 14}
    assert after == {14}


def test_what_is_inserted_before_a_statement_runs_with_it() -> None:
    before, after = lines(InsertStatements(STORE, "before", "h = None"))
    assert before == {9}
    assert after == {10} or after == {9, 10}


def test_what_is_put_first_in_a_function_is_its_body() -> None:
    before, after = lines(InsertStatements(DEF, "first-in", "x = x + 1"))
    assert before == {5, 6}
    assert {6, 7} <= after
    assert 3 not in after


def test_a_moved_statement() -> None:
    before, after = lines(MoveStatement(STORE, PRINT, "before"))
    assert before == {9, 14}
    assert 14 in after


def test_a_file_without_change_is_watched_as_it_is() -> None:
    touched = Touched(frozenset({("a.py", 3)}), frozenset({("a.py", 5)}))
    assert touched.after({}, {}) == {("a.py", 3), ("a.py", 5)}


def test_of_a_removed_statement_the_statements_behind_it_are_watched() -> None:
    text = "def f(x):\n    y = 1\n    x = x\n    y = y\n    if y:\n        return x\n    return y\n"
    edit = RemoveStatement(Span(3, 4, 3, 9))
    touched = touched_by({"a.py": [edit]}, {"a.py": text})
    assert touched.before() == {("a.py", line) for line in (3, 4, 5, 7)}
    after = text.replace("    x = x\n    y = y\n", "")
    assert touched.after({"a.py": text}, {"a.py": after}) == {("a.py", 3), ("a.py", 5)}


def test_of_the_last_statement_of_a_suite_those_before_it_are_watched() -> None:
    text = "def f(x):\n    y = 1\n    x = x\n"
    touched = touched_by({"a.py": [RemoveStatement(Span(3, 4, 3, 9))]}, {"a.py": text})
    assert touched.before() == {("a.py", 2), ("a.py", 3)}


def test_what_is_added_within_a_line_of_several_statements() -> None:
    text = "a = 1; b = 2\nc = 3\n"
    edit = InsertStatements(Span(1, 0, 1, 5), "after", "x = 0")
    touched = touched_by({"t.py": [edit]}, {"t.py": text})
    new = apply_edits(text, [edit])
    added = new.splitlines().index("x = 0") + 1
    assert ("t.py", added) in touched.after({"t.py": text}, {"t.py": new})


OLD = "def f(x):\n    if x:\n        y = 1\n    else:\n        y = 2\n    return (x +\n            y)\n"


def changed(first: int, last: int, new: str) -> list[list[int]]:
    """The statements of which the old lines become ``new``, each by its lines in the new text."""
    rows = OLD.splitlines(keepends=True)
    text = "".join([*rows[: first - 1], new, *rows[last:]])
    touched = Touched(frozenset(("a.py", line) for line in range(first, last + 1)), frozenset(), whole=True)
    found = touched.statements({"a.py": OLD}, {"a.py": text})
    return sorted(sorted(line for _, line in lines) for lines in found)


def test_each_statement_of_a_hunk_counts_by_itself() -> None:
    assert changed(3, 5, "        y = 3\n    else:\n        y = 4\n") == [[3], [5]]
    assert changed(2, 3, "    if x > 1:\n        y = 1\n") == [[2], [3]]
    assert changed(6, 7, "    return (x -\n            y)\n") == [[6, 7]]


def test_a_new_header_over_a_line_that_moves_to_the_right_counts_and_its_condition_too() -> None:
    new = OLD.replace("        y = 1\n", "        if z:\n            y = 1\n", 1)
    touched = Touched(frozenset({("a.py", 3)}), frozenset(), whole=True)
    assert changed(3, 3, "        if z:\n            y = 1\n") == [[3], [4]]
    assert [part.text for part in touched.parts({"a.py": OLD}, {"a.py": new}, {})] == ["z"]
    assert changed(3, 3, "        y = 3\n") == [[3]]


def test_what_does_nothing_when_it_runs_does_not_count() -> None:
    assert changed(3, 3, "        'text'\n        pass\n        z: int\n        y = 3\n") == [[6]]


def test_what_a_hunk_takes_away_counts_where_it_still_stands() -> None:
    touched = Touched(frozenset({("a.py", 2), ("a.py", 3)}), frozenset(), whole=True)
    assert touched.replaced({}, {}, {"a.py": OLD}) == [frozenset({("a.py", 2)}), frozenset({("a.py", 3)})]
    after = OLD.replace("    if x:\n        y = 1\n    else:\n        y = 2\n", "    y = 2\n")
    whole = Touched(frozenset(("a.py", line) for line in (2, 3, 4)), frozenset(), whole=True)
    assert whole.after({"a.py": OLD}, {"a.py": after}) != frozenset()


def test_of_a_rewrite_only_what_is_written_counts() -> None:
    after = OLD.replace("    if x:\n        y = 1\n", "    with g():\n        if x:\n            y = 1\n", 1)
    edit = Touched(frozenset({("a.py", 2), ("a.py", 3)}), frozenset())
    assert edit.statements({"a.py": OLD}, {"a.py": after}) == []
    rewritten = Touched(frozenset({("a.py", 3)}), frozenset())
    found = rewritten.statements({"a.py": OLD}, {"a.py": OLD.replace("y = 1", "y = float(x)")})
    assert found == [frozenset({("a.py", 3)})]


def test_a_header_that_lines_changed_places_with_is_not_written() -> None:
    old = "a = f()\nb = g(a)\nfor x in data:\n    h(x, b)\n"
    new = "for x in data:\n    a = f()\n    b = g(a)\n    h(x, b)\n"
    hunks = Touched(frozenset({("a.py", 1), ("a.py", 2)}), frozenset({("a.py", 3), ("a.py", 4)}), whole=True)
    assert hunks.after({"a.py": old}, {"a.py": new}) == {("a.py", 2), ("a.py", 3)}
    # One that was not there before is.
    fresh = new.replace("for x in data:", "for x in sorted(data):")
    assert ("a.py", 1) in hunks.after({"a.py": old}, {"a.py": fresh})
