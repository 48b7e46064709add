"""The page marks what broke in the diff, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.verify import builders
from tests.verify.reports import tools
from verify.measured.results import Outcome, Verdict
from verify.reports import patch, remarks, render
from verify.reports.curves import charts
from verify.reports.table import table

DIFF = """\
--- a/train.py
+++ b/train.py
@@ -1,4 +1,4 @@
 a
-b
+B
 c
 d
@@ -10,3 +10,4 @@
 j
+J
 k
 l
"""


@pytest.mark.parametrize(("first", "last", "marked"), [
    (2, 2, [True, False]), (1, 9, [True, False]), (10, 11, [False, True]), (11, 11, [False, True]),
    (4, 9, [False, False]), (12, 12, [False, False]), (1, 99, [True, True]),
])  # fmt: skip
def test_hunks_that_change_lines(first: int, last: int, marked: list[bool]) -> None:
    (file,) = patch.parse(DIFF)
    assert [hunk.changes(first, last) for hunk in file.hunks] == marked


def test_the_page_marks_the_hunk_that_broke() -> None:
    made = tools.repaired()
    assert "✗ broken:" not in render(made, "html")
    first = made.rewrites[0]
    path, line = first.finding.path, first.finding.span.line
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -{line},1 +{line},1 @@\n-old\n+new\n@@ -900,1 +900,1 @@\n-old\n+new\n"
    broken = replace(first, verdict=Verdict.BROKEN)
    page = render(replace(made, rewrites=(broken, *made.rewrites[1:]), readable=diff), "html")
    assert page.count(f"✗ broken: {first.finding.rule} at line {line}") == 1


def test_the_run_behind_a_verdict_is_shown_once_for_each_way_it_ended() -> None:
    made = tools.repaired()
    (entry, *others) = made.entries
    traceback = "Traceback (most recent call last):\nValueError: odd"
    bad = builders.run(replace(builders.record([1.0], error=builders.OTHER), traceback=traceback))
    bad = replace(bad, outcome=Outcome.RAISED)
    staged = (("change at train.py:9", bad), ("change at train.py:10", bad), ("all", replace(entry.original)))
    found = remarks.breakdowns(replace(entry, staged=staged))
    assert [each.run for each in found] == [
        *(each.run for each in remarks.breakdowns(entry)),
        "with change at train.py:9",
    ]
    assert found[-1].details == traceback
    page = render(replace(made, entries=(replace(entry, staged=staged), *others)), "html")
    assert page.count("<b>with change at train.py:9</b>") == 1


def test_of_several_runs_each_verdict_names_its_own() -> None:
    made = tools.repaired()
    entry = made.entries[0]
    assert not remarks.reason_text(made.rewrites[0], made).startswith("run ")
    several = replace(made, entries=(entry, replace(entry, plan="found in the tree")))
    assert remarks.reason_text(replace(made.rewrites[0], run=1), several).startswith("run 2: ")
    assert remarks.title(several, several.entries[1]).endswith("(found in the tree)")
    assert "run 1: " in render(several, "text")


def test_a_single_point_is_no_plot_and_has_no_time() -> None:
    entry = tools.repaired().entries[0]
    assert charts(entry)
    once = tools.repaired().entries[0].original
    record = replace(once.record, steps=[], backwards=once.record.backwards[:1])
    run = replace(once, records=(record,))
    alone = replace(entry, original=run, again=None, rewritten=None)
    assert charts(alone) == ()
    assert "time a step" not in [row.label for row in table(alone).rows]


def test_times_have_quartiles() -> None:
    entry = tools.repaired().entries[0]
    assert entry.rewritten is not None
    (times,) = [row for row in table(entry).rows if row.label == "time a step"]
    assert " to " in times.cells[1].text
