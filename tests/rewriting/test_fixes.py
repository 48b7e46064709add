"""Fixes of single changes, and ``apply`` in portions: what is made alone is what ``apply`` would make of it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.rewriting.apply import apply
from codemods.rewriting.changes import patched, review
from codemods.rewriting.limited import apply_some
from codemods.rewriting.result import ApplyResult
from codemods.rewriting.single_fixes import Fix, fixes
from codemods.source.options import Options
from codemods.source.targets import read_targets
from tests.fakes import Analyser, edit

PROGRAM = """\
import torch
from torch import nn
from torch.autograd import Variable

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for _ in range(3):
    x = Variable(torch.randn(2, 4))
    y = Variable(torch.randn(2, 1))
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
"""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(program: str) -> ApplyResult:
    Path("train.py").write_text(program, newline="")
    return apply(read_targets(["train.py"]).sources, options=Options(), dry_run=True)


def alone(fix: Fix) -> str:
    """What ``apply`` writes if nothing but the changes of ``fix`` is wanted."""
    keys = {key for change in fix.changes for key in change.key}
    sources = read_targets(["train.py"]).sources
    result = apply(
        sources, options=Options(), dry_run=True, wanted=lambda found: all(finding.key in keys for finding in found)
    )
    return result.rewrites[0].new


def test_each_fix_is_what_apply_would_make_of_it_alone() -> None:
    made = fixes(review(planned(PROGRAM)))
    assert [change.rule for fix in made for change in fix.changes] == [
        "legacy-variable",
        "legacy-variable",
        "surplus-retain-graph",
        "attached-loss-total",
    ]
    for fix in made:
        assert patched(PROGRAM, fix.hunks) == alone(fix)


def test_an_import_that_others_use_stays_and_goes_with_the_last() -> None:
    assert "import Variable" in patched(PROGRAM, fixes(review(planned(PROGRAM)))[0].hunks)
    single = PROGRAM.replace("y = Variable(torch.randn(2, 1))", "y = torch.randn(2, 1)")
    (fix, *_) = fixes(review(planned(single)))
    assert "import Variable" not in patched(single, fix.hunks)


def test_changes_of_one_line_have_one_fix() -> None:
    program = PROGRAM.replace(
        "    loss.backward(retain_graph=True)\n    opt.step()\n    total += loss\n",
        "    loss.backward(retain_graph=True); opt.step(); total += loss\n",
    )
    both = fixes(review(planned(program)))[-1]
    assert {change.rule for change in both.changes} == {"surplus-retain-graph", "attached-loss-total"}
    assert patched(program, both.hunks) == alone(both)


# portions


def portion(limit: int | None, *, dry_run: bool = True) -> ApplyResult:
    return apply_some(read_targets(["train.py"]).sources, max_hunks=limit, options=Options(), dry_run=dry_run)


def test_portions_come_to_the_whole() -> None:
    whole = planned(PROGRAM).rewrites[0].new
    left = []
    for _ in range(9):
        result = portion(1, dry_run=False)
        assert len(review(result).hunks) <= 2, "an import may go along with what made it needless"
        left.append(len(result.postponed))
        if not result.postponed:
            break
    assert Path("train.py").read_text() == whole
    assert left == sorted(left, reverse=True)


def test_a_portion_names_what_it_leaves() -> None:
    planned(PROGRAM)
    result = portion(2)
    assert len(result.fixed) == 2
    assert len(result.postponed) == 2
    assert {finding.key for finding in result.postponed} <= {one.finding.key for one in result.remaining}


@pytest.mark.parametrize("limit", [None, 99])
def test_a_limit_that_is_not_reached_changes_nothing(limit: int | None) -> None:
    whole = planned(PROGRAM)
    result = portion(limit)
    assert result.rewrites == whole.rewrites
    assert result.postponed == ()


def test_where_no_change_fits_it_is_said() -> None:
    Path("a.py").write_text("a = ACROSS\n")
    Path("other.py").write_text("x = 1\n")
    sources = read_targets(["."]).sources
    given = {"options": Options(), "dry_run": True, "analyse": Analyser(), "editor": edit}
    result = apply_some(sources, max_hunks=1, **given)
    assert result.fixed == ()
    assert "every change that is left has more than 1 hunk; the smallest has 2" in result.notes
    assert len(apply_some(sources, max_hunks=2, **given).fixed) == 1
