"""Promises as checks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codemods.terms.findings import Promise
from tests.verify.builders import FREED, OTHER, record, run
from verify.judging.judge import Check, check
from verify.measured.results import Outcome, Run
from verify.measured.values import Site, Trouble

LOSSES = [1.0, 0.5, 0.25, 0.2, 0.15, 0.1, 0.05, 0.04, 0.03]
OTHERWISE = [1.0, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0]
GROWING = [10, 20, 30, 40, 50, 60, 70, 80, 90]
SYNTAX = Trouble("SyntaxError", "invalid syntax", "other")
MISSING = Trouble("FileNotFoundError", "no data", "missing")
FINE = run(record(LOSSES))
HANGS = replace(run(record([], leak=None, end=None), outcome=Outcome.TIMEOUT), wall=100.0)


def judged(promise: Promise, before: Run, after: Run, *, deterministic: bool | None = True) -> Check:
    return check(promise, before, after, deterministic=deterministic, tolerance=1e-3)


@pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT])
def test_the_same_is_kept(promise: Promise) -> None:
    result = judged(promise, FINE, FINE)
    assert result.held is True
    assert result.why.startswith("bit for bit the same over 9 steps and 9 backwards")


def test_rounding_breaks_exact_and_keeps_equivalent() -> None:
    close = run(record([*LOSSES[:-1], 0.03 + 1e-7]))
    assert judged(Promise.EXACT, FINE, close).held is False
    result = judged(Promise.EQUIVALENT, FINE, close)
    assert result.held is True
    assert "losses differ by at most 1e-07" in result.why
    assert "within 0.001" in result.why


@pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT])
def test_other_numbers_break(promise: Promise) -> None:
    result = judged(promise, FINE, run(record(OTHERWISE)))
    assert result.held is False
    assert "call 3 of the backward at train.py:8" in result.why


def test_what_is_not_deterministic_proves_no_equality() -> None:
    result = judged(Promise.EXACT, FINE, FINE, deterministic=False)
    assert result.held is None
    assert "not deterministic" in result.why


def test_what_was_saved_is_said() -> None:
    before = run(record(LOSSES, leak=True, live=GROWING))
    result = judged(Promise.EXACT, before, FINE)
    assert result.held is True
    assert "graph growth 10 nodes a step before, none after" in result.why
    wasted = judged(Promise.EXACT, run(record(LOSSES, wasted=60)), FINE)
    assert "forwards that built a graph for nothing: 60 before, 0 after" in wasted.why


def test_a_run_without_any_backward_proves_nothing() -> None:
    nothing = run(record([], end="completed"))
    assert judged(Promise.EXACT, nothing, nothing).held is None


@pytest.mark.parametrize("promise", list(Promise)[:4])
@pytest.mark.parametrize(
    "after",
    [
        run(record([], error=SYNTAX)),
        run(record(LOSSES[:2], error=FREED)),
        run(record(LOSSES[:2], error=OTHER)),
        run(record([], error=MISSING)),
        run(record(LOSSES, leak=True, live=GROWING)),
        HANGS,
        run(outcome=Outcome.NOT_STARTED),
    ],
    ids=["syntax", "freed", "other", "missing", "leaks", "hangs", "not started"],
)
def test_a_rewrite_that_makes_things_worse_is_broken(promise: Promise, after: Run) -> None:
    assert judged(promise, FINE, after).held is False


def test_a_rewritten_tree_that_does_not_import_is_broken_even_where_the_original_fails() -> None:
    before = run(record([], error=MISSING))
    assert judged(Promise.EXACT, before, run(record([], error=SYNTAX))).held is False


@pytest.mark.parametrize("promise", list(Promise)[:4])
def test_what_an_original_that_ran_out_of_time_would_have_done_is_not_known(promise: Promise) -> None:
    """As of a script that stops behind a long import, on a machine that is busy with others."""
    slow = run(record(LOSSES[:1], end=None), outcome=Outcome.TIMEOUT)
    for after in (run(record(LOSSES[:1], error=OTHER)), run(record(LOSSES[:4], error=MISSING))):
        result = judged(promise, slow, after)
        assert result.held is None, result.why
    assert "does not end in time" in judged(promise, slow, run(record(LOSSES[:1], error=OTHER))).why


@pytest.mark.parametrize("promise", list(Promise)[:4])
def test_one_that_had_come_further_by_then_tells(promise: Promise) -> None:
    slow = run(record(LOSSES[:5], end=None), outcome=Outcome.TIMEOUT)
    assert judged(promise, slow, run(record(LOSSES[:2], error=OTHER))).held is False
    assert judged(promise, slow, run(record([], error=SYNTAX))).held is False
    # A graph that is freed is the rewrite's doing wherever it comes.
    assert judged(promise, run(record(LOSSES[:1]), outcome=Outcome.TIMEOUT), run(record([], error=FREED))).held is False


def test_both_failing_alike_is_not_judged() -> None:
    before = run(record([], error=MISSING))
    assert judged(Promise.EXACT, before, before).held is None
    assert judged(Promise.REPAIR, before, before).held is None


class TestRepair:
    RAISES = run(record(LOSSES[:2], error=FREED))
    LEAKS = run(record(LOSSES, leak=True, live=GROWING))

    def test_an_error_that_is_gone(self) -> None:
        result = judged(Promise.REPAIR, self.RAISES, FINE)
        assert result.held is True
        assert "Trying to backward" in result.why
        assert "bit for bit up to there (2 steps and 2 backwards)" in result.why
        assert "flat" in result.why

    def test_an_error_that_is_still_there(self) -> None:
        assert judged(Promise.REPAIR, self.RAISES, self.RAISES).held is False

    def test_other_numbers_before_the_error(self) -> None:
        result = judged(Promise.REPAIR, self.RAISES, run(record([1.0, 0.7, *LOSSES[2:]])))
        assert result.held is False
        assert "before it the programs differ" in result.why

    def test_the_error_turned_into_growth(self) -> None:
        assert judged(Promise.REPAIR, self.RAISES, self.LEAKS).held is False

    def test_growth_that_is_gone_may_learn_something_else(self) -> None:
        result = judged(Promise.REPAIR, self.LEAKS, run(record(OTHERWISE)))
        assert result.held is True
        assert "grows by 10 nodes a step (held by losses)" in result.why
        assert "losses differ by at most 0.15" in result.why

    def test_growth_that_is_still_there(self) -> None:
        assert judged(Promise.REPAIR, self.LEAKS, self.LEAKS).held is False

    def test_nothing_to_repair_and_other_numbers(self) -> None:
        result = judged(Promise.REPAIR, FINE, run(record(OTHERWISE)))
        assert result.held is False
        assert "without error and growth" in result.why

    def test_an_old_form_that_stops_today_is_repaired(self) -> None:
        before = run(record([], error=Trouble("TypeError", "iteration over a 0-d tensor", "other")))
        result = judged(Promise.REPAIR, before, FINE)
        assert result.held is True
        assert "iteration over a 0-d tensor" in result.why

    def test_nothing_to_repair_and_the_same_numbers(self) -> None:
        assert judged(Promise.REPAIR, FINE, FINE).held is None

    def test_out_of_memory_is_a_fault(self) -> None:
        before = run(record(LOSSES[:3], leak=None, end=None), outcome=Outcome.MEMORY)
        result = judged(Promise.REPAIR, before, FINE)
        assert result.held is True

    def test_a_later_error_of_another_kind_is_told(self) -> None:
        result = judged(Promise.REPAIR, self.RAISES, run(record(LOSSES[:5], error=OTHER)))
        assert result.held is False
        assert "first error is gone" in result.why

    def test_without_determinism_the_error_still_counts(self) -> None:
        assert judged(Promise.REPAIR, self.RAISES, FINE, deterministic=False).held is True


class TestBehaviour:
    def test_runs_and_is_flat(self) -> None:
        result = judged(Promise.BEHAVIOUR, FINE, run(record(OTHERWISE)))
        assert result.held is True
        assert "learns something else" in result.why

    def test_no_step_proves_nothing(self) -> None:
        assert judged(Promise.BEHAVIOUR, run(record([])), run(record([]))).held is None


@pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR])
def test_an_original_that_stops_late_excuses_no_other_numbers_before(promise: Promise) -> None:
    before = run(record(LOSSES[:4], error=OTHER))
    result = judged(promise, before, run(record(OTHERWISE)))
    assert result.held is False
    assert "call 3 of the backward at train.py:8" in result.why
    assert judged(promise, before, FINE).held is True


def test_old_forms_that_stop_today() -> None:
    before = run(record([], error=Trouble("IndexError", "invalid index of a 0-dim tensor", "other")))
    result = judged(Promise.EXACT, before, FINE)
    assert result.held is True
    assert "stops today" in result.why


def stopped(message: str, line: int, steps: int = 2) -> Run:
    """A run that an error which is not the graph's ends at ``line``."""
    made = record([0.5, 0.25][:steps], error=Trouble("ValueError", message, "other"))
    made.error_site = Site("train.py", line, "main")
    return run(made)


@pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR])
def test_who_gets_past_one_error_of_the_program_to_meet_another_is_not_judged(promise: Promise) -> None:
    result = judged(promise, stopped("no next", 12), stopped("no data", 30))
    assert result.held is None
    assert "gets past that, and stops elsewhere: ValueError: no data at train.py:30" in result.why


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(stopped("no data", 30, steps=1), id="earlier"),
        pytest.param(stopped("no such name", 12), id="in the same line"),
        pytest.param(stopped("no such name", 40), id="in a line of the rewrite"),
    ],
)
def test_another_error_of_the_rewrite_is_broken(after: Run) -> None:
    before = stopped("no next", 12)
    result = check(
        Promise.EXACT,
        before,
        after,
        deterministic=True,
        tolerance=1e-3,
        touched={("train.py", line) for line in (12, 40)},
    )
    assert result.held is False
