"""Which rewrites are tried together, and how the one that breaks is found."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.findings import Finding, Promise, Span
from codemods.outcome import Mended
from codemods.touched import Touched
from tests.verify.builders import FREED, record, run
from verify.results import Rewrite, Run, Verdict
from verify.stages import Groups, Outcome, Stages, Tried

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

    def __call__(self, groups: Groups) -> Tried:
        lines = {group.findings[0].span.line for group in groups}
        self.runs.append(sorted(lines))
        keys = frozenset(group.key for group in groups)
        reached = frozenset(g.key for g in groups if g.findings[0].span.line not in self.idle)
        return Tried(self.run(lines), reached, keys)

    def run(self, lines: set[int]) -> Run:
        if self.mend is not None and self.mend not in lines:
            return run(record(LOSSES[:2], error=FREED))
        offence = sum(line in self.spoil for line in lines)
        return run(record([value + offence for value in LOSSES]))

    def solve(self, groups: Sequence[Mended], *, deterministic: bool | None = True) -> Outcome:
        watched = frozenset(g.key for g in groups if g.findings[0].span.line not in self.idle)
        stages = Stages(self, self.run(set()), watched, deterministic=deterministic, tolerance=1e-3)
        return stages.solve(groups)


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
