"""Which rewrites are tried together, and how the one that breaks is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from codemods.rewriting.result import Mended
from codemods.rewriting.touched import Touched
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span
from tests.verify.builders import FREED, OTHER, record, run
from verify.errors import OutOfTime
from verify.judging.programs import Groups, Programs, Tried
from verify.judging.stages import Outcome, Stages
from verify.measured.results import Outcome as Verified
from verify.measured.results import Rewrite, Run, Verdict
from verify.measured.values import Site, Trouble

LOSSES = [1.0, 0.5, 0.25, 0.2, 0.15, 0.1, 0.05]


def rewrite(line: int, promise: Promise = Promise.EXACT, rule: str = "some-rule") -> Mended:
    finding = Finding(rule, "train.py", Span(line, 0, line, 9), promise, "a mistake")
    return Mended((finding,), Touched(frozenset({("train.py", line)}), frozenset()))


class Program:
    """A program that the rewrites at some lines spoil, and others mend. Counts its runs."""

    def __init__(self, *, spoil: Sequence[int] = (), mend: int | None = None, idle: Sequence[int] = ()) -> None:
        self.spoil = set(spoil)
        self.mend = mend
        self.idle = set(idle)
        self.runs: list[list[int]] = []
        self.groups: Sequence[Mended] = ()

    def __call__(self, groups: Groups, asked: frozenset[tuple[str, int]] = frozenset()) -> Tried:
        lines = {group.findings[0].span.line for group in groups}
        self.runs.append(sorted(lines))
        keys = frozenset(group.key for group in groups)
        return Tried(self.run(lines), self.reached(), keys)

    def reached(self) -> frozenset[frozenset[tuple[str, str, int]]]:
        return frozenset(g.key for g in self.groups if g.findings[0].span.line not in self.idle)

    def run(self, lines: set[int]) -> Run:
        if self.mend is not None and self.mend not in lines:
            return run(record(LOSSES[:2], error=FREED))
        offence = sum(line in self.spoil for line in lines)
        return run(record([value + offence for value in LOSSES]))

    def solve(self, groups: Sequence[Mended], *, deterministic: bool | None = True) -> Outcome:
        self.groups = groups
        original = Tried(self.run(set()), self.reached())
        return Stages(Programs(self, original, deterministic=deterministic, tolerance=1e-3)).solve(groups)


def verdicts(rewrites: Sequence[Rewrite]) -> dict[int, Verdict]:
    return {rewrite.finding.span.line: rewrite.verdict for rewrite in rewrites}


def test_one_run_where_all_hold() -> None:
    program = Program()
    outcome = program.solve([rewrite(1), rewrite(2), rewrite(3)])
    assert verdicts(outcome.rewrites) == dict.fromkeys((1, 2, 3), Verdict.KEPT)
    assert program.runs == [[1, 2, 3]]


def test_nothing_to_try() -> None:
    program = Program()
    assert program.solve([]).rewrites == []
    assert program.runs == []


def test_the_one_that_breaks_is_found_and_the_rest_is_shown_to_hold() -> None:
    program = Program(spoil=[6])
    outcome = program.solve([rewrite(line) for line in range(1, 9)])
    assert verdicts(outcome.rewrites) == {**dict.fromkeys(range(1, 9), Verdict.KEPT), 6: Verdict.BROKEN}
    broken = next(r for r in outcome.rewrites if r.verdict is Verdict.BROKEN)
    assert "without it the 7 other rewrites hold: bit for bit the same" in broken.without
    assert "not the same" in broken.why
    assert len(program.runs) <= 10
    assert outcome.final is not None
    assert outcome.final.record.backwards[0].losses[0].value == 1.0


def test_several_that_break_are_all_found() -> None:
    program = Program(spoil=[1, 4, 5])
    outcome = program.solve([rewrite(line) for line in range(1, 6)])
    broken = {line for line, verdict in verdicts(outcome.rewrites).items() if verdict is Verdict.BROKEN}
    assert broken == {1, 4, 5}


def test_a_single_one_that_breaks() -> None:
    outcome = Program(spoil=[1]).solve([rewrite(1)])
    assert verdicts(outcome.rewrites) == {1: Verdict.BROKEN}
    assert outcome.final is None


def test_exact_rewrites_are_compared_on_top_of_repairs() -> None:
    program = Program(mend=1)
    outcome = program.solve([rewrite(1, Promise.REPAIR), rewrite(2)])
    assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.KEPT}
    assert program.runs == [[1], [1, 2]]
    exact = next(r for r in outcome.rewrites if r.finding.promise is Promise.EXACT)
    assert "over 7 steps" in exact.why


def test_an_exact_one_that_breaks_does_not_spoil_the_repair() -> None:
    program = Program(mend=1, spoil=[2])
    outcome = program.solve([rewrite(1, Promise.REPAIR), rewrite(2), rewrite(3)])
    assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.BROKEN, 3: Verdict.KEPT}


class Leaking(Program):
    """A program whose graph grows, whatever is rewritten."""

    def run(self, lines: set[int]) -> Run:
        offence = sum(line in self.spoil for line in lines)
        return run(record([value + offence for value in LOSSES], leak=True, live=[10] * len(LOSSES)))


@pytest.mark.parametrize("count", [1, 2])
def test_what_never_ran_is_not_to_blame_for_what_goes_on(count: int) -> None:
    """Nor is anything tried to find out which of them it is."""
    program = Leaking(idle=range(1, 1 + count))
    repairs = [rewrite(line, Promise.REPAIR) for line in range(1, 1 + count)]
    outcome = program.solve([*repairs, rewrite(5), rewrite(6), rewrite(7)])
    told = verdicts(outcome.rewrites)
    assert [told[line] for line in range(1, 1 + count)] == [Verdict.NOT_REACHED] * count
    assert [told[line] for line in (5, 6, 7)] == [Verdict.KEPT] * 3
    assert len(program.runs) == 2


def test_a_repair_that_never_ran_is_broken_where_the_program_does_something_else() -> None:
    outcome = Leaking(idle=[1], spoil=[1]).solve([rewrite(1, Promise.REPAIR), rewrite(2)])
    assert verdicts(outcome.rewrites) == {1: Verdict.BROKEN, 2: Verdict.KEPT}


def test_of_several_repairs_only_those_that_ran_are_broken() -> None:
    outcome = Leaking(idle=[2]).solve([rewrite(1, Promise.REPAIR), rewrite(2, Promise.REPAIR), rewrite(3)])
    assert verdicts(outcome.rewrites) == {1: Verdict.BROKEN, 2: Verdict.NOT_REACHED, 3: Verdict.KEPT}
    broken = next(one for one in outcome.rewrites if one.verdict is Verdict.BROKEN)
    assert broken.why == "still the graph grows (held by losses)"


def test_what_never_ran_is_not_reached() -> None:
    program = Program(idle=[2])
    outcome = program.solve([rewrite(1), rewrite(2)])
    assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.NOT_REACHED}
    idle = next(r for r in outcome.rewrites if r.verdict is Verdict.NOT_REACHED)
    assert "train.py:2 never ran" in idle.why


def test_what_never_ran_but_breaks_is_broken() -> None:
    outcome = Program(idle=[2], spoil=[2]).solve([rewrite(1), rewrite(2)])
    assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.BROKEN}


def test_not_deterministic_is_not_judged() -> None:
    outcome = Program().solve([rewrite(1)], deterministic=False)
    assert verdicts(outcome.rewrites) == {1: Verdict.NOT_JUDGED}


def test_too_many_runs_end_the_search() -> None:
    program = Program(spoil=range(1, 60))
    outcome = program.solve([rewrite(line) for line in range(1, 60)])
    assert set(verdicts(outcome.rewrites).values()) == {Verdict.BROKEN}
    assert len(program.runs) <= 26


class Made(Program):
    """A program of which ``behave`` tells what it does with the rewrites at some lines.

    One that dies at line ``n`` (its error says so) has passed all lines before that.
    """

    def __init__(self, behave: Callable[[set[int]], Run]) -> None:
        super().__init__()
        self.run = behave  # type: ignore[method-assign]

    def __call__(self, groups: Groups, asked: frozenset[tuple[str, int]] = frozenset()) -> Tried:
        tried = super().__call__(groups)
        at = tried.run.record.error_line
        if at is None:
            return replace(tried, ran=asked)
        near = frozenset(group.key for group in self.groups if at in group.touched.before())
        return replace(
            tried, died_at=frozenset([at]), near=near, ran=frozenset(line for line in asked if line[1] <= at[1])
        )

    def solve(self, groups: Sequence[Mended], *, deterministic: bool | None = True) -> Outcome:
        self.groups = groups
        original = self(())
        self.runs.clear()
        return Stages(Programs(self, original, deterministic=deterministic, tolerance=1e-3)).solve(groups)


def dead(line: int, losses: Sequence[float] = (), error: Trouble = OTHER) -> Run:
    """A run that an error at ``line`` ends after some steps."""
    made = record(losses, error=error)
    made.error_site = Site("train.py", line, "main")
    return run(made)


REPAIRS = [rewrite(line, Promise.REPAIR) for line in (1, 2, 3)]
EXACTS = [rewrite(line) for line in range(1, 7)]
#: Enough steps to tell growth.
LONG = [*LOSSES, 0.04, 0.03]
SAME = run(record(LONG))
ELSE = run(record([value + 1 for value in LONG]))


class TestGoingPast:
    def test_what_gets_past_goes_first_and_alone(self) -> None:
        program = Made(lambda lines: (ELSE if 5 in lines else SAME) if 3 in lines else dead(3))
        outcome = program.solve(EXACTS)
        assert verdicts(outcome.rewrites) == {
            **dict.fromkeys(range(1, 7), Verdict.KEPT),
            # Of what it does past the end of the original nothing is known.
            3: Verdict.PARTLY_REACHED,
            5: Verdict.BROKEN,
        }
        assert program.runs[0] == [3]
        assert outcome.final is SAME

    def test_what_stands_elsewhere_is_searched_for(self) -> None:
        program = Made(lambda lines: (ELSE if 6 in lines else SAME) if {2, 4} <= lines else dead(30))
        outcome = program.solve(EXACTS)
        assert verdicts(outcome.rewrites) == {
            **dict.fromkeys(range(1, 7), Verdict.KEPT),
            **dict.fromkeys((2, 4), Verdict.PARTLY_REACHED),
            6: Verdict.BROKEN,
        }
        assert [2, 4] in program.runs

    def test_one_bad_end_behind_the_other(self) -> None:
        def behave(lines: set[int]) -> Run:
            if 2 not in lines:
                return dead(2)
            if 4 not in lines:
                return dead(4)
            return ELSE if 5 in lines else SAME

        outcome = Made(behave).solve(EXACTS)
        # The first of the two ends where the original does.
        assert verdicts(outcome.rewrites) == {
            **dict.fromkeys(range(1, 7), Verdict.KEPT),
            **dict.fromkeys((2, 4), Verdict.PARTLY_REACHED),
            5: Verdict.BROKEN,
        }
        assert all("stops today" in each.why for each in outcome.rewrites if each.finding.span.line in (2, 4))

    def test_what_dies_earlier_gets_past_nothing(self) -> None:
        program = Made(lambda lines: dead(1) if 1 in lines else SAME if 4 in lines else dead(4))
        outcome = program.solve(EXACTS)
        assert verdicts(outcome.rewrites) == {
            **dict.fromkeys(range(1, 7), Verdict.KEPT),
            1: Verdict.BROKEN,
            4: Verdict.PARTLY_REACHED,
        }

    def test_nothing_gets_past(self) -> None:
        outcome = Made(lambda lines: dead(9, LONG[:3])).solve(EXACTS)
        assert set(verdicts(outcome.rewrites).values()) == {Verdict.KEPT}
        assert all("over 3 steps" in each.why for each in outcome.rewrites)

    def test_who_gets_past_with_other_numbers_is_broken(self) -> None:
        past = run(record([9.0, 9.0, *LONG[2:]]))
        outcome = Made(lambda lines: past if 3 in lines else dead(3, LONG[:2])).solve(EXACTS)
        assert verdicts(outcome.rewrites)[3] is Verdict.BROKEN

    def test_an_error_of_the_graph_is_a_bad_end_too(self) -> None:
        def behave(lines: set[int]) -> Run:
            return (ELSE if 2 in lines else SAME) if 1 in lines else dead(8, LONG[:2], FREED)

        outcome = Made(behave).solve([rewrite(1, Promise.REPAIR), rewrite(2)])
        assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.BROKEN}

    def test_too_many_runs_leave_it_unjudged(self) -> None:
        needed = set(range(1, 40))
        program = Made(lambda lines: SAME if needed <= lines else dead(99))
        outcome = program.solve([rewrite(line) for line in range(1, 60)])
        assert set(verdicts(outcome.rewrites).values()) == {Verdict.NOT_JUDGED}
        assert len(program.runs) <= 50


class TestEachRepair:
    LEAKS = run(record(LONG, leak=True))

    def test_each_is_left_out_alone(self) -> None:
        program = Made(lambda lines: SAME if {1, 2, 3} <= lines else self.LEAKS)
        outcome = program.solve(REPAIRS)
        assert verdicts(outcome.rewrites) == dict.fromkeys((1, 2, 3), Verdict.KEPT)
        assert all("without it alone: the graph grows" in each.why for each in outcome.rewrites)
        assert sorted(program.runs) == [[1, 2], [1, 2, 3], [1, 3], [2, 3]]

    def test_one_that_mends_nothing_and_changes_numbers(self) -> None:
        program = Made(lambda lines: (ELSE if 2 in lines else SAME) if {1, 3} <= lines else self.LEAKS)
        outcome = program.solve(REPAIRS)
        assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.BROKEN, 3: Verdict.KEPT}
        assert outcome.final is SAME

    def test_one_that_mends_nothing_and_changes_nothing(self) -> None:
        outcome = Made(lambda lines: SAME if {1, 3} <= lines else self.LEAKS).solve(REPAIRS)
        assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.NOT_JUDGED, 3: Verdict.KEPT}

    def test_either_of_two_is_enough(self) -> None:
        outcome = Made(lambda lines: SAME if lines & {1, 3} and 2 in lines else self.LEAKS).solve(REPAIRS)
        assert verdicts(outcome.rewrites) == dict.fromkeys((1, 2, 3), Verdict.KEPT)

    @pytest.mark.parametrize("error", [FREED, None], ids=["raises", "grows"])
    def test_growth_of_others_is_theirs(self, error: Trouble | None) -> None:
        bad = dead(8, LONG[:2], error) if error else self.LEAKS

        def behave(lines: set[int]) -> Run:
            return bad if 1 not in lines else SAME if 2 in lines else self.LEAKS

        for other in (Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR):
            outcome = Made(behave).solve([rewrite(1, Promise.REPAIR), rewrite(2, other)])
            assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.KEPT}, other

    def test_growth_that_nobody_removes_is_its_own(self) -> None:
        outcome = Made(lambda lines: self.LEAKS).solve([rewrite(1, Promise.REPAIR), rewrite(2)])
        assert verdicts(outcome.rewrites) == {1: Verdict.BROKEN, 2: Verdict.KEPT}

    @pytest.mark.parametrize("wrong", [1, 3])
    def test_who_hides_the_error_that_another_mends(self, wrong: int) -> None:
        def behave(lines: set[int]) -> Run:
            return dead(8, [], FREED) if not lines else ELSE if wrong in lines else SAME

        outcome = Made(behave).solve([rewrite(wrong, Promise.REPAIR), rewrite(2, Promise.REPAIR)])
        assert verdicts(outcome.rewrites) == {wrong: Verdict.BROKEN, 2: Verdict.KEPT}

    def test_too_many_to_try_each(self) -> None:
        program = Made(lambda lines: SAME if len(lines) == 40 else self.LEAKS)
        outcome = program.solve([rewrite(line, Promise.REPAIR) for line in range(40)])
        found = list(verdicts(outcome.rewrites).values())
        assert found.count(Verdict.KEPT) == 24
        assert found.count(Verdict.NOT_JUDGED) == 16
        assert len(program.runs) <= 26


def test_what_was_judged_in_time_stands() -> None:
    class Late(Program):
        """Its second run is one too many."""

        def __call__(self, groups: Groups, asked: frozenset[tuple[str, int]] = frozenset()) -> Tried:
            if self.runs:
                raise OutOfTime(60)
            return super().__call__(groups, asked)

    outcome = Late(mend=1).solve([rewrite(1, Promise.REPAIR), rewrite(2), rewrite(3)])
    assert verdicts(outcome.rewrites) == {1: Verdict.KEPT, 2: Verdict.NOT_JUDGED, 3: Verdict.NOT_JUDGED}
    assert outcome.rewrites[1].why == "the 60 s for all runs were over; --within gives more time"
    assert outcome.final is None


def test_what_did_not_run_before_is_compared_with_nothing() -> None:
    program = Made(lambda lines: SAME)
    program.reached = lambda: frozenset()  # type: ignore[method-assign]
    outcome = program.solve([rewrite(1)])
    assert verdicts(outcome.rewrites) == {1: Verdict.NOT_REACHED}


def test_runs_are_named_by_what_is_in_them() -> None:
    program = Program(spoil=[2])
    names = [name for name, _ in program.solve([rewrite(1), rewrite(2), rewrite(3), rewrite(4)]).runs]
    rule = rewrite(1).findings[0].rule
    assert names[0] == f"4 rewrites: {rule}"
    assert any(name == f"{rule} at train.py:2" or f"{rule} at train.py:1, " in name for name in names[1:])


def test_programs_that_a_busy_machine_makes_slow_are_not_halved() -> None:
    class Slow(Program):
        """With any rewrite it makes a step in four seconds, without in one, and is stopped after 23."""

        def run(self, lines: set[int]) -> Run:
            made = record(LOSSES[:5] if lines else LOSSES)
            pace = 4.0 if lines else 1.0
            made.steps = [replace(each, time=pace * (number + 1)) for number, each in enumerate(made.steps)]
            made.end, made.ended = ("watchdog", 23.0) if lines else ("steps", 7.0)
            return run(made, outcome=Verified.TIMEOUT if lines else Verified.OK)

    program = Slow()
    outcome = program.solve([rewrite(line) for line in (1, 2, 3, 4)])
    assert verdicts(outcome.rewrites) == dict.fromkeys((1, 2, 3, 4), Verdict.KEPT)
    assert program.runs == [[1, 2, 3, 4]]
