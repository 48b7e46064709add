"""How runs end, what they catch on the way, and what that says of promises; made-up records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codemods.terms.findings import Promise
from tests.verify.builders import FREED, OTHER, record, run
from verify.judging.endings import Pace, Quality, earlier, pace, quality, worse
from verify.judging.judge import Check, check, gets_past
from verify.measured.records import Caught, Record
from verify.measured.results import Outcome, Run
from verify.measured.values import Site, Trouble

LOSSES = [1.0, 0.5, 0.25, 0.2, 0.15, 0.1, 0.05, 0.04, 0.03]
PROMISES = list(Promise)[:4]
FINE = run(record(LOSSES))
NO_GRAD = Trouble("RuntimeError", "element 0 of tensors does not require grad", "other")


def left(losses: list[float], end: str | None, status: int = 0) -> Run:
    """A run of so many losses that left with ``status``."""
    made = record(losses)
    made.end, made.status = end, status if end == "exit" else None
    return replace(run(made, outcome=Outcome.RAISED if status else Outcome.OK), status=status)


def catching(losses: list[float], *errors: Trouble, at: int = 1, process: str = "main") -> Record:
    """A training that goes on from ``errors``, all of which come after step ``at``."""
    made = record(losses, process=process)
    made.caught = [Caught(Site("train.py", 8, "train"), error, at, at + 1) for error in errors]
    return made


def judged(promise: Promise, before: Run, after: Run, *, alone: bool = True, deterministic: bool = True) -> Check:
    return check(promise, before, after, deterministic=deterministic, tolerance=1e-3, alone=alone)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (FINE, Quality.WELL),
        (left(LOSSES, "completed"), Quality.WELL),
        (left(LOSSES, "exit"), Quality.WELL),
        (run(record(LOSSES), outcome=Outcome.TIMEOUT), Quality.LIMIT),
        (left(LOSSES, None), Quality.GONE),
        (left(LOSSES, None, 3), Quality.DEAD),
        (left(LOSSES, "exit", 1), Quality.DEAD),
        (left(LOSSES, None, -15), Quality.DEAD),
        (run(record(LOSSES, error=OTHER)), Quality.DEAD),
        (run(record(LOSSES), outcome=Outcome.MEMORY), Quality.DEAD),
        (run(outcome=Outcome.NOT_STARTED), Quality.NEVER),
    ],
)
def test_qualities(made: Run, expected: Quality) -> None:
    assert quality(made) is expected


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.value)
@pytest.mark.parametrize(
    ("after", "words"),
    [
        (left(LOSSES[:4], None, 3), "ends with status 3"),
        (left(LOSSES, None, 3), "ends with status 3"),
        (left(LOSSES, "exit", 1), "ends with status 1"),
        (left(LOSSES[:4], None), "leaves without a word"),
        (left(LOSSES, None), "leaves without a word"),
        (left(LOSSES[:4], None, -9), "is killed by signal 9"),
        (left(LOSSES[:4], "completed"), "ends: 4 of 9 steps"),
        (left(LOSSES[:4], "exit"), "ends: 4 of 9 steps"),
        (left([], "completed"), "ends: 0 of 9 steps"),
    ],
)
def test_a_worse_or_earlier_end_is_never_kept(promise: Promise, after: Run, words: str) -> None:
    for before in (FINE, left(LOSSES, "completed")):
        result = judged(promise, before, after)
        assert result.held is False
        assert words in result.why


@pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT], ids=lambda promise: promise.value)
@pytest.mark.parametrize("end", [("completed", 0), ("exit", 1), (None, 0), (None, 3)], ids=str)
def test_the_same_end_is_no_worse(promise: Promise, end: tuple[str | None, int]) -> None:
    assert judged(promise, left(LOSSES, *end), left(LOSSES, *end)).held is True


def test_who_is_stopped_has_not_ended() -> None:
    waiting = run(record([*LOSSES, 0.02, 0.01]))
    assert earlier(waiting, FINE) == ""
    assert judged(Promise.EXACT, waiting, FINE).held is True
    assert earlier(waiting, left(LOSSES, "completed")) != ""


def test_a_program_that_dies_in_both_may_not_die_earlier() -> None:
    assert judged(Promise.EXACT, left(LOSSES, None, 1), left(LOSSES[:5], None, 1)).held is False


def test_an_earlier_end_of_what_is_not_deterministic_proves_nothing() -> None:
    result = judged(Promise.REPAIR, FINE, left(LOSSES[:4], "completed"), deterministic=False)
    assert result.held is None


def test_fewer_backwards_are_earlier_only_for_exact() -> None:
    before, after = record(LOSSES), record(LOSSES[:4], end="completed")
    before.steps, after.steps = [], []
    assert judged(Promise.EXACT, run(before), run(after)).held is False
    # Backwards may have been merged.
    assert judged(Promise.EQUIVALENT, run(before), run(after)).held is not False


def timed(steps: int, pace: float, end: float, *, reason: str | None = "watchdog", losses: list[float] = LOSSES) -> Run:
    """A run of so many steps, one each ``pace`` seconds, that is stopped after ``end`` seconds for want of time."""
    made = record(losses[:steps])
    made.steps = [replace(each, time=pace * (number + 1)) for number, each in enumerate(made.steps)]
    made.backwards = [replace(each, time=pace * (number + 0.9)) for number, each in enumerate(made.backwards)]
    made.end, made.ended = reason, end
    late = reason in ("watchdog", None)
    return replace(run(made, outcome=Outcome.TIMEOUT if late else Outcome.OK), wall=end + 1)


class TestOutOfTime:
    """How fast a machine is, changes from run to run: what has no time is not broken for that."""

    IN_TIME = timed(9, 1.0, 9.0, reason="steps")

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT], ids=lambda promise: promise.value)
    @pytest.mark.parametrize("reason", ["watchdog", None])
    def test_a_slow_program_is_judged_as_far_as_it_comes(self, promise: Promise, reason: str | None) -> None:
        slow = timed(5, 4.0, 23.0, reason=reason)
        assert pace(self.IN_TIME, slow) is Pace.GOES_ON
        result = judged(promise, self.IN_TIME, slow)
        assert (result.held, "over 5 steps" in result.why) == (True, True), result.why

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT], ids=lambda promise: promise.value)
    def test_a_slow_program_that_computes_something_else_is_broken(self, promise: Promise) -> None:
        other = timed(5, 4.0, 23.0, losses=[1.0, 0.5, 0.3, 0.2, 0.1])
        assert judged(promise, self.IN_TIME, other).held is False

    @pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.value)
    def test_one_that_stands_still_is_broken(self, promise: Promise) -> None:
        for hangs in (timed(5, 1.0, 23.0), timed(5, 1.0, 23.0, reason=None), timed(1, 1.0, 23.0), timed(0, 1.0, 23.0)):
            result = judged(promise, self.IN_TIME, hangs)
            assert (result.held, "does not end in time" in result.why) == (False, True), result.why

    @pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.value)
    def test_what_may_be_either_is_not_judged(self, promise: Promise) -> None:
        for either in (timed(1, 4.0, 9.0), timed(0, 1.0, 9.0), timed(5, 1.0, 8.5)):
            assert pace(self.IN_TIME, either) is Pace.UNKNOWN
            result = judged(promise, self.IN_TIME, either)
            assert result.held is None
            assert "whether it hangs or the machine was busy" in result.why

    def test_a_long_stretch_of_the_original_is_no_hang(self) -> None:
        """As of a validation behind the fifth step."""
        validates = timed(9, 1.0, 49.0, reason="steps")
        steps = [replace(each, time=each.time + 40.0 * (each.call > 5)) for each in validates.record.steps]
        validates = replace(validates, records=(replace(validates.record, steps=steps),))
        assert pace(validates, timed(5, 1.0, 45.0)) is Pace.GOES_ON
        assert pace(validates, timed(4, 1.0, 45.0)) is Pace.HANGS

    def test_who_has_time_has_no_pace(self) -> None:
        assert pace(self.IN_TIME, self.IN_TIME) is None
        assert pace(self.IN_TIME, timed(5, 4.0, 23.0, reason="completed")) is None


class TestProcesses:
    def ranks(self, steps: int, end: str | None) -> Run:
        other = record(LOSSES[:steps], process="rank-1")
        other.end = end
        return run(record(LOSSES, process="rank-0"), other)

    def test_a_rank_that_leaves_is_seen_although_the_other_goes_on(self) -> None:
        assert "3 of 9 steps" in earlier(self.ranks(9, "steps"), self.ranks(3, None))

    def test_a_rank_that_is_ended_with_the_other_is_not(self) -> None:
        assert earlier(self.ranks(9, "steps"), self.ranks(8, None)) == ""

    def test_a_process_that_does_not_train_any_more(self) -> None:
        assert "rank-1 does not train" in earlier(self.ranks(9, "steps"), run(record(LOSSES, process="rank-0")))

    def test_a_main_process_that_fails_beside_workers_that_were_stopped(self) -> None:
        def made(status: int) -> Run:
            main = record([], end="exit")
            main.status = status
            return replace(run(main, record(LOSSES, process="worker"), outcome=Outcome.OK), status=status)

        assert worse(made(0), made(1)) == "the rewritten program ends with status 1, which the one before does not"
        assert worse(made(1), made(1)) == worse(made(1), made(0)) == ""

    def test_what_another_process_catches_counts(self) -> None:
        before = run(record(LOSSES), catching(LOSSES[:3], process="worker"))
        after = run(record(LOSSES), catching(LOSSES[:3], NO_GRAD, process="worker"))
        assert judged(Promise.EXACT, before, after).held is False


class TestCaught:
    @pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.value)
    @pytest.mark.parametrize("error", [NO_GRAD, FREED], ids=["no grad", "freed"])
    def test_new_errors_break_any_promise(self, promise: Promise, error: Trouble) -> None:
        for at in (1, 8):
            result = judged(promise, FINE, run(catching(LOSSES, error, error, at=at)))
            assert result.held is False
            assert "caught 2 times" in result.why

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT], ids=lambda promise: promise.value)
    def test_as_many_as_before_are_none_of_the_change(self, promise: Promise) -> None:
        both = run(catching(LOSSES, NO_GRAD, NO_GRAD))
        assert judged(promise, both, both).held is True

    def test_more_than_before_are(self) -> None:
        result = judged(Promise.EXACT, run(catching(LOSSES, NO_GRAD)), run(catching(LOSSES, NO_GRAD, NO_GRAD)))
        assert result.held is False
        assert "less often" in result.why

    def test_more_in_a_longer_run_are_not(self) -> None:
        longer = catching(LOSSES, NO_GRAD)
        longer.caught.append(longer.caught[0]._replace(steps_before=8, backwards=9))
        assert judged(Promise.EXACT, run(catching(LOSSES[:5], NO_GRAD)), run(longer)).held is True

    def test_numbers_in_a_message_make_no_new_error(self) -> None:
        shapes = [Trouble("RuntimeError", f"Mismatch in shape: got [{size}]", "other") for size in (3, 4)]
        one, other = (run(catching(LOSSES, shape)) for shape in shapes)
        assert judged(Promise.EXACT, one, other).held is True

    def test_the_error_that_ends_a_run_is_not_caught(self) -> None:
        made = record(LOSSES[:2], error=FREED)
        made.caught = [Caught(Site("train.py", 8, "train"), FREED, 2, 3)]
        result = judged(Promise.REPAIR, run(made), FINE)
        assert result.held is True

    def test_a_repair_whose_error_is_now_caught(self) -> None:
        result = judged(Promise.REPAIR, run(record(LOSSES[:2], error=FREED)), run(catching(LOSSES, FREED, at=2)))
        assert result.held is False
        assert "still there" in result.why
        assert "caught 1 time" in result.why

    def test_a_repair_of_what_was_caught(self) -> None:
        before = run(catching(LOSSES, FREED, FREED))
        assert judged(Promise.REPAIR, before, FINE).held is True
        assert judged(Promise.REPAIR, before, run(catching(LOSSES, FREED))).held is False
        assert judged(Promise.REPAIR, before, before).held is False

    def test_a_repair_of_growth_leaves_what_is_caught_on_purpose(self) -> None:
        leaking = catching(LOSSES, FREED)
        leaking.census = record(LOSSES, leak=True).census
        assert judged(Promise.REPAIR, run(leaking), run(catching(LOSSES, FREED))).held is True


class TestPast:
    DEAD = run(record(LOSSES[:4], error=OTHER))

    def test_what_goes_on_is_past(self) -> None:
        assert gets_past(self.DEAD, FINE)
        assert gets_past(self.DEAD, left(LOSSES[:4], "completed"))

    @pytest.mark.parametrize(
        "after",
        [left(LOSSES[:4], "exit"), left(LOSSES[:4], None), left(LOSSES, None, 1), left(LOSSES[:3], "completed"), DEAD],
    )
    def test_what_only_ends_otherwise_is_not(self, after: Run) -> None:
        assert not gets_past(self.DEAD, after)

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR], ids=lambda p: p.value)
    def test_of_more_than_it_takes_nothing_is_said(self, promise: Promise) -> None:
        assert judged(promise, self.DEAD, FINE).held is True
        assert judged(promise, self.DEAD, FINE, alone=False).held is None

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.REPAIR], ids=lambda promise: promise.value)
    def test_growth_that_the_original_had_no_time_for_is_not_judged(self, promise: Promise) -> None:
        dead = run(record(LOSSES[:1], error=OTHER, leak=None))
        assert judged(promise, dead, run(record(LOSSES, leak=True))).held is None

    def test_worse_names_both(self) -> None:
        assert worse(FINE, self.DEAD) == "the rewritten program raises ValueError, which the one before does not"
        assert worse(self.DEAD, FINE) == worse(FINE, FINE) == ""


class TestGrowth:
    LEAKS = run(record(LOSSES, leak=True))

    def test_other_updates_are_said(self) -> None:
        result = judged(Promise.REPAIR, self.LEAKS, run(record([*LOSSES[:3], 3.0, 3.0, 3.0, 3.0, 3.0, 3.0])))
        assert result.held is True
        assert "makes other updates than the original" in result.why
        assert "call 4 of the backward at train.py:8" in result.why

    def test_the_same_updates_are_said(self) -> None:
        assert "bit for bit the same over 9 steps" in judged(Promise.REPAIR, self.LEAKS, FINE).why

    def test_updates_that_cannot_be_compared_are_said(self) -> None:
        assert "not deterministic" in judged(Promise.REPAIR, self.LEAKS, FINE, deterministic=False).why

    def test_a_repair_of_nothing_is_not_judged_by_chance(self) -> None:
        other = run(record([value + 1 for value in LOSSES]))
        assert judged(Promise.REPAIR, FINE, other, deterministic=False).held is None
        assert judged(Promise.REPAIR, FINE, other).held is False
