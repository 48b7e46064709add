"""What runs behind the end of the original, where there is nothing to compare it with."""

from __future__ import annotations

import pytest

from codemods.rewriting.result import Mended
from codemods.rewriting.touched import Touched
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span
from tests.verify.builders import record, run
from verify.judging.judge import Check
from verify.judging.programs import Tried
from verify.judging.said import verdict_of
from verify.measured.results import Comparison, Difference, Verdict

COMPARISON = Comparison(Difference.IDENTICAL, "", None, None, 1, 1)


@pytest.mark.parametrize(
    ("by_hand", "late", "verdict"),
    [
        (False, 3, Verdict.KEPT),
        (True, 3, Verdict.PARTLY_REACHED),
        # What never ran is not known of a rule either.
        (False, None, Verdict.PARTLY_REACHED),
        (True, 0, Verdict.KEPT),
    ],
)
def test_a_line_of_a_repair_that_the_original_never_came_to(by_hand: bool, late: int | None, verdict: Verdict) -> None:
    finding = Finding("some-rule", "train.py", Span(8, 0, 8, 9), Promise.REPAIR, "a mistake")
    lines = frozenset({("train.py", 8), ("train.py", 17)})
    group = Mended((finding,), Touched(lines, frozenset(), whole=by_hand))
    statements = {group.key: {("train.py", 8): 0, ("train.py", 17): late}}
    tried = Tried(
        run(record([1.0, 0.5, 0.2, 0.1])), frozenset({group.key}), frozenset({group.key}), statements=statements
    )
    check = Check(True, "the error of the original is gone", COMPARISON)
    assert verdict_of(group, None, tried, check, 1, "", "{}:{}".format)[0] is verdict
