"""An ``apply`` taken apart: which hunk belongs to which change."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.rewriting.apply import apply
from codemods.rewriting.changes import Hunk, Proof, Review, review
from codemods.rewriting.result import ApplyResult
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.findings import Promise

HEAD = """\
import torch
from torch import nn
from torch.autograd import Variable

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def applied(program: str, **options: object) -> ApplyResult:
    Path("train.py").write_text(program, newline="")
    return apply(read_targets(["train.py"]).sources, options=Options(**options), dry_run=True)  # type: ignore[arg-type]


def taken_apart(program: str, **options: object) -> Review:
    return review(applied(program, **options))


def rebuilt(result: ApplyResult, found: Review) -> str:
    """The new text, made from the old one by the hunks alone."""
    lines = result.rewrites[0].source.text.splitlines(keepends=True)
    for hunk in reversed(found.hunks):
        start = hunk.old_start - 1
        assert tuple(lines[start : start + len(hunk.removed)]) == hunk.removed
        lines[start : start + len(hunk.removed)] = hunk.added
    return "".join(lines)


def names(found: Review, hunk: Hunk) -> list[str]:
    return [found.changes[index].rule for index in hunk.changes]


LOOP = (
    HEAD.replace("from torch.autograd import Variable\n", "")
    + """
total = 0
for _ in range(3):
    loss = model(torch.randn(2, 4)).sum()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
"""
)


def test_two_changes_have_a_hunk_each() -> None:
    found = taken_apart(LOOP)
    assert [(hunk.old_start, names(found, hunk)) for hunk in found.hunks] == [
        (11, ["surplus-retain-graph"]),
        (13, ["attached-loss-total"]),
    ]
    assert [change.promise for change in found.changes] == [Promise.EXACT, Promise.EXACT]
    assert found.hunks[0].removed == ("    loss.backward(retain_graph=True)\n",)
    assert found.hunks[0].added == ("    loss.backward()\n",)


def test_hunks_rebuild_the_new_text() -> None:
    result = applied(LOOP.replace("\n", "\r\n"))
    assert rebuilt(result, review(result)) == result.rewrites[0].new


def test_lines_beside_each_other_are_told_apart() -> None:
    program = HEAD + "x = Variable(torch.randn(2, 4))\ny = Variable(torch.randn(2, 1))\nprint(model(x) - y)\n"
    found = taken_apart(program)
    of_lines = {hunk.old_start: hunk for hunk in found.hunks}
    assert [len(of_lines[line].changes) for line in (7, 8)] == [1, 1]
    assert of_lines[7].changes != of_lines[8].changes


def test_an_import_belongs_to_all_who_made_it_needless_and_to_nobody_else() -> None:
    program = (
        HEAD
        + """
total = 0
for _ in range(3):
    x = Variable(torch.randn(2, 4))
    y = Variable(torch.randn(2, 1))
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
print(total)
"""
    )
    found = taken_apart(program)
    (gone,) = (hunk for hunk in found.hunks if hunk.removed == ("from torch.autograd import Variable\n",))
    assert names(found, gone) == ["legacy-variable", "legacy-variable"]
    assert {"attached-loss-total"} == {change.rule for change in found.changes} - {"legacy-variable"}


def test_a_decorator_belongs_to_the_finding_at_its_function() -> None:
    program = (
        LOOP
        + """

def evaluate(data):
    model.eval()
    right = 0
    for x, y in data:
        right += ((model(x) > 0) == y).sum().item()
    return right


print(evaluate([(torch.randn(2, 4), torch.ones(2, 1))]))
"""
    )
    found = taken_apart(program, no_grad_style="decorator")
    (hunk,) = (hunk for hunk in found.hunks if hunk.added == ("@torch.no_grad()\n",))
    assert not hunk.removed
    assert names(found, hunk) == ["grad-in-evaluation"]


def test_every_change_has_a_hunk_and_every_hunk_a_change() -> None:
    found = taken_apart(LOOP)
    assert all(found.hunks_of(change) for change in found.changes)
    assert all(hunk.changes for hunk in found.hunks)


def test_nothing_to_mend_is_nothing_to_review() -> None:
    assert taken_apart(HEAD) == Review((), ())


def test_verdicts_come_with_their_changes() -> None:
    result = applied(LOOP)
    proof = Proof("kept", "losses are the same bit for bit")
    retained = next(mended for mended in result.mended if mended.findings[0].rule == "surplus-retain-graph")
    changes = review(result, {retained.key: proof}).changes
    assert {change.rule: change.proof for change in changes} == {
        "surplus-retain-graph": proof,
        "attached-loss-total": None,
    }
