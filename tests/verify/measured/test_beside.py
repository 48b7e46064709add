"""Which process of one run is held beside which of another."""

from __future__ import annotations

from tests.verify.builders import record, run
from verify.measured.records import Record


def child(*words: str, number: float = 0.0) -> Record:
    made = record([number], process="child")
    made.about = {"argv": list(words)}
    return made


def pairs(mine: list[Record], theirs: list[Record]) -> list[int | None]:
    """For each of ``mine`` the place of its partner among ``theirs``."""
    found = run(*mine).beside(run(*theirs))
    return [next((place for place, each in enumerate(theirs) if each is other), None) for _, other in found]


def test_children_are_told_apart_by_their_words() -> None:
    main, one, two = record([1.0]), child("worker.py", "1"), child("worker.py", "2")
    assert pairs([main, one, two], [record([1.0]), child("worker.py", "2"), child("worker.py", "1")]) == [0, 2, 1]


def test_children_of_the_same_words_come_in_their_order() -> None:
    mine = [child("worker.py", number=number) for number in (1.0, 1.0, 2.0)]
    assert pairs(mine, [child("worker.py"), child("worker.py"), child("worker.py")]) == [0, 1, 2]
    assert pairs(mine, [child("worker.py")]) == [0, None, None]


def test_children_of_other_words_take_what_is_left() -> None:
    mine = [child("worker.py", "1"), child("worker.py", "2")]
    assert pairs(mine, [child("worker.py", "2"), child("worker.py", "3")]) == [1, 0]


def test_a_process_of_another_name_is_none_of_them() -> None:
    assert pairs([record([1.0]), child("a")], [record([1.0]), record([1.0], process="rank-1")]) == [0, None]
