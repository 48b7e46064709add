"""A backward that fails in both programs and that nothing mends is passed over in both: what follows is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Rewrite, Verdict
from verify.reports import remarks
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

#: The step of the generator changes what the graph of the other loss has saved.
PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(8, 4)
maker, judge = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)), nn.Linear(4, 1)
one = torch.optim.SGD([*maker.parameters(), *judge.parameters()], lr=0.1)
other = torch.optim.SGD(judge.parameters(), lr=0.1)
total = 0.0
for step in range(30):
    made = maker(x)
    seen, real = judge(made), judge(x)
    loss = seen.square().mean()
    one.zero_grad()
    loss.backward(retain_graph=True)
    one.step()
    other.zero_grad()
    second = real.mean() - seen.mean() + made.square().mean()
    second.backward()
    other.step()
    total += loss.item()
    with torch.no_grad():
        print("validation", judge(maker(x)).mean().item())
    print("total", total)
"""
RIGHT = [
    ("another spelling", "total += loss.item()", "total += float(loss.item())"),
    (
        "behind",
        'print("validation", judge(maker(x)).mean().item())',
        'told = judge(maker(x)).mean().item()\n        print("validation", told)',
    ),
]
WRONG = [
    ("a total", "total += loss.item()", "total += 2 * loss.item()"),
    ("validation", "judge(maker(x)).mean().item()", "judge(maker(x) + 1).mean().item()"),
    ("the loss that fails", "real.mean() - seen.mean()", "real.mean() + seen.mean()"),
    ("its gradient alone", "real.mean() - seen.mean()", "real.mean() - seen.mean().detach()"),
    ("the loss before", "loss = seen.square().mean()", "loss = seen.square().sum()"),
    ("a step that is left out", "    other.step()\n", "    pass\n"),
]


def verdicts(folder: Path, text: str, promise: Promise = Promise.EXACT) -> tuple[Rewrite, ...]:
    (folder / "train.py").write_text(PROGRAM)
    (folder / "new.py").write_text(text)
    settings = Settings(timeout=120, reach=240)
    command = script_command("train.py", (), settings.python)
    by_hand = HandRewriter(folder / "new.py", promise, root=folder, script=command.script)
    done = verify(
        [command], options=Options(), settings=settings, tree=folder, rewriter=by_hand, jobs=1, place=ForkedPlace
    )
    if all(rewrite.verdict is Verdict.KEPT for rewrite in done.rewrites) and promise is Promise.EXACT:
        assert any("train.py:19 was left out" in limit for limit in remarks.limits(done))
    return done.rewrites


@pytest.mark.parametrize(("old", "new"), [each[1:] for each in RIGHT], ids=[each[0] for each in RIGHT])
def test_a_right_change_behind_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert PROGRAM.count(old) == 1
    (rewrite,) = verdicts(tmp_path, PROGRAM.replace(old, new))
    assert rewrite.verdict is Verdict.KEPT, rewrite.why


@pytest.mark.parametrize(("old", "new"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_wrong_change_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert PROGRAM.count(old) == 1
    (rewrite,) = verdicts(tmp_path, PROGRAM.replace(old, new))
    assert rewrite.verdict is not Verdict.KEPT, rewrite.why


def test_what_mends_it_is_judged_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (rewrite,) = verdicts(
        tmp_path,
        PROGRAM.replace("    second = real", "    made = maker(x)\n    seen = judge(made)\n    second = real"),
        Promise.REPAIR,
    )
    assert not rewrite.made
    assert "the error of the original" in rewrite.why
    assert "is gone" in rewrite.why
