"""The numbers behind a report."""

from __future__ import annotations

import math

import pytest

from tests.verify.reports import tools
from verify.measured.records import Census, Record
from verify.measured.results import Comparison, Difference, Outcome
from verify.reports import render
from verify.reports.figures import figures, number_text, seconds_text
from verify.reports.table import agreement, table


def test_flat() -> None:
    numbers = figures(tools.run("original", tools.record()))
    assert (numbers.backwards, numbers.raised, numbers.steps, numbers.stepped) == (20, 0, {"Adam": 20}, 20)
    assert numbers.leak is False
    assert numbers.live == (0,) * 20
    assert numbers.growth == 0
    assert numbers.peak == 51 * tools.MIB
    assert numbers.seconds == pytest.approx(0.012)
    assert not numbers.wasted


def test_growing() -> None:
    numbers = figures(tools.exact().entries[0].original)
    assert numbers.leak is True
    assert numbers.slope == pytest.approx(152)
    assert numbers.growth == pytest.approx(61_200)
    assert [site.calls for site in numbers.wasted] == [60]


def test_nothing_ran() -> None:
    numbers = figures(tools.run("original", outcome=Outcome.NOT_STARTED))
    assert (numbers.backwards, numbers.steps, numbers.losses, numbers.live) == (0, {}, (), ())
    assert (numbers.peak, numbers.growth, numbers.seconds, numbers.leak) == (None, None, None, None)


def test_memory_that_was_not_measured() -> None:
    numbers = figures(tools.run("original", tools.record(memory=lambda index: 0, census=None)))
    assert numbers.bytes == ()
    assert numbers.growth is None


def test_optimizers_of_one_class_are_told_apart() -> None:
    numbers = figures(tools.run("original", tools.record(6, optimizers=("Adam", "Adam", "SGD"))))
    assert numbers.steps == {"Adam 1": 6, "Adam 2": 6, "SGD": 6}
    # The time of a step is that of one optimizer, not that between two of them.
    assert numbers.seconds == pytest.approx(0.012)


def test_losses_by_site() -> None:
    record = tools.record(3)
    other = tools.record(2, site=tools.Site("train.py", 50, "critic"))
    penalty = list(tools.record(9, site=None).backwards)
    for backward in penalty:
        object.__setattr__(backward, "grad", True)
    mixed = Record(backwards=[*other.backwards, *record.backwards, *penalty])
    losses = figures(tools.run("original", mixed)).losses
    # Most calls first, but gradients of something else than a loss last.
    assert [series.site and series.site.line for series in losses] == [41, 50, None]
    assert [len(series.values) for series in losses] == [3, 2, 9]


def test_process_that_trains_is_the_one_to_look_at() -> None:
    launcher, rank = tools.record(0), tools.record(5, process="rank-0")
    assert figures(tools.run("original", launcher, rank)).backwards == 5


def test_killed_before_the_census() -> None:
    grown = tools.record(14, live=lambda step: 5000 * step, census=None)
    assert figures(tools.run("original", grown)).leak is True
    assert figures(tools.run("original", tools.record(14, census=None))).leak is None
    assert figures(tools.run("original", tools.record(14, census=Census(14, {}, False, ())))).leak is False


def test_times_and_losses() -> None:
    assert [seconds_text(value) for value in (2e-5, 0.0123, 1.5, 2500)] == ["20 µs", "12.3 ms", "1.5 s", "2500 s"]
    assert [number_text(value) for value in (2.3456789, math.nan, -math.inf, None)] == ["2.3457", "nan", "-inf", "–"]


@pytest.mark.parametrize(("steps", "told"), [(1, False), (3, False), (4, True), (20, True)])
def test_times_are_told_with_their_spread_or_not_at_all(steps: int, told: bool) -> None:
    found = figures(tools.run("original", tools.record(steps + 1)))
    assert (found.seconds is not None) is told
    assert (found.spread is not None) is told
    report = render(tools.verification(tools.entry(tools.run("original", tools.record(steps + 1)), None)), "text")
    lines = [line for line in report.splitlines() if line.startswith("time a step")]
    assert all(("(" in line and " to " in line) is told for line in lines)


def test_agreement() -> None:
    assert agreement(tools.same(1)) == "bit for bit the same over 1 step"
    assert agreement(tools.same(0, 4)) == "bit for bit the same over 4 backwards"
    close = Comparison(Difference.CLOSE, "somewhere", 3e-8, None, 20, 20)
    assert agreement(close) == "close over 20 steps: losses up to 3e-08 apart"
    apart = Comparison(Difference.DIFFERENT, "somewhere", 0.0, math.nan, 20, 20, random_moved=True)
    assert agreement(apart) == (
        "different over 20 steps: losses equal, parameters finite on one side only (other random numbers)"
    )


def test_nothing_compared_is_not_called_the_same() -> None:
    entry = tools.unjudged().entries[0]
    compared = Comparison(Difference.IDENTICAL, "", None, None, 0, 0)
    labels = {row.label for row in table(tools.entry(entry.original, None, repeatable=compared)).rows}
    assert "same as the original" not in labels
    assert "outcome" in labels
