"""Which attempts run side by side, and how they end."""

from __future__ import annotations

import threading

import pytest

from verify.fixing.beside import Beside


def never() -> None:
    raise AssertionError("nothing was to be cancelled")


def test_the_next_attempt_runs_beside_the_first_and_is_not_made_twice() -> None:
    together, made = threading.Barrier(2, timeout=60), []

    def attempt(trial: str) -> str:
        # Each waits for the other: one after another they would never end.
        together.wait()
        made.append(trial)
        return trial.upper()

    with Beside(attempt, 2, never) as tries:
        assert (tries.outcome("a", ["b"]), tries.outcome("b")) == ("A", "B")
    assert sorted(made) == ["a", "b"]


def test_one_at_a_time_nothing_is_begun_before_it_is_asked_for() -> None:
    made: list[str] = []
    with Beside(made.append, 1, never) as tries:
        tries.outcome("a", ["b"])
        assert made == ["a"]
        tries.outcome("b")
    assert made == ["a", "b"]


def test_equal_trials_are_different_ones() -> None:
    made: list[list[int]] = []
    with Beside(made.append, 2, never) as tries:
        for trial in ([1], [1]):
            tries.outcome(trial)
    assert made == [[1], [1]]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_out_where_the_outcome_is_asked_for(jobs: int) -> None:
    def attempt(trial: int) -> float:
        return 1 / trial

    with Beside(attempt, jobs, never) as tries:
        assert tries.outcome(1, [0]) == 1.0
        with pytest.raises(ZeroDivisionError):
            tries.outcome(0)


def test_what_is_under_way_is_cancelled_when_the_wait_is_interrupted() -> None:
    begun, ended = threading.Event(), threading.Event()

    def attempt(trial: str) -> None:
        begun.set()
        assert ended.wait(60)

    tries = Beside(attempt, 2, ended.set)
    waiting = threading.Thread(target=tries.outcome, args=("a",))
    waiting.start()
    assert begun.wait(60)
    with pytest.raises(KeyboardInterrupt), tries:
        raise KeyboardInterrupt
    waiting.join(60)
    assert (ended.is_set(), waiting.is_alive()) == (True, False)
