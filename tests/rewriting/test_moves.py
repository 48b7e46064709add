"""A change by hand that moves a statement into another block, or out of one."""

from __future__ import annotations

import pytest

from codemods.rewriting.moves import moved


def told(here: str, there: str, line: int) -> list[tuple[str, str]]:
    """What has to be seen of the blocks around ``line`` of ``here``."""
    return [(piece.part.kind, piece.part.text) for piece in moved(here, there, "a.py", {line})]


CONDITION = "if a and b:\n    f()\n    g()\n"
OUT = "if a and b:\n    f()\ng()\n"
TRY = "try:\n    f()\n    g()\nexcept E:\n    h()\n"
BEHIND = "try:\n    f()\nexcept E:\n    h()\ng()\n"
ENDING = "try:\n    f()\nfinally:\n    g()\n"
PLAIN = "try:\n    f()\nfinally:\n    pass\ng()\n"


@pytest.mark.parametrize(
    ("here", "there", "line", "parts"),
    [
        (CONDITION, OUT, 3, [("both", "a"), ("ran", "b"), ("both", "b")]),
        (OUT, CONDITION, 3, []),
        (TRY, BEHIND, 3, [("ended", "try")]),
        (BEHIND, TRY, 5, []),
        (ENDING, PLAIN, 4, [("ended", "try")]),
        ("for x in y:\n    f()\n    g()\n", "for x in y:\n    f()\ng()\n", 3, [("loop", "y")]),
        ("with suppress(E):\n    f()\n    g()\n", "with suppress(E):\n    f()\ng()\n", 3, [("ended", "suppress(E)")]),
        # Another statement of the same text stays where it was.
        ("if a:\n    g()\n    f()\n    g()\n", "if a:\n    g()\n    f()\ng()\n", 4, [("both", "a")]),
    ],
)
def test_blocks_that_are_left_or_entered(here: str, there: str, line: int, parts: list[tuple[str, str]]) -> None:
    assert told(here, there, line) == parts


@pytest.mark.parametrize(
    ("here", "there", "line"),
    [
        # in another order
        ("if a:\n    f()\n    g()\n", "if a:\n    g()\n    f()\n", 2),
        # out of a block that leaves nothing out, and ends no error
        ("with no_grad():\n    f()\n    g()\n", "with no_grad():\n    f()\ng()\n", 3),
        # another statement: what it is made of is asked for elsewhere
        ("if a:\n    f()\n    g(1)\n", "if a:\n    f()\ng(2)\n", 3),
        # into a function of its own, which is called where it stood
        ("if a:\n    g()\n", "def h():\n    g()\nif a:\n    h()\n", 2),
        ("if a:\n    pass\n    g()\n", "if a:\n    g()\npass\n", 2),
        ("if a:\n    g(\n", "g()\n", 2),
    ],
)
def test_what_moves_through_no_condition(here: str, there: str, line: int) -> None:
    assert told(here, there, line) == []


def test_a_statement_that_one_hunk_takes_away_and_another_puts_back() -> None:
    old, new = "g()\nif a:\n    f()\n", "if a:\n    g()\n    f()\n"
    assert [piece.part.text for piece in moved(new, old, "a.py", (), {1})] == ["a"]
    assert moved(new, old, "a.py", (), {3}) == []
