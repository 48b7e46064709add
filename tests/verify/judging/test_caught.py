"""A repair of an error that the script catches computes the loss on which the original failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Verdict
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.RNNCell(4, 5), nn.Linear(5, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(3, 5)
skipped = 0
for step in range(12):
    h = cell(torch.randn(3, 4), h)
    loss = head(h).pow(2).mean()
    optimizer.zero_grad()
    try:
        loss.backward()
    except RuntimeError:
        skipped += 1
        continue
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ("    h = cell(torch.randn(3, 4), h.detach())\n", Verdict.KEPT),
        ("    h = cell(torch.randn(3, 4), torch.zeros(3, 5))\n", Verdict.NOT_JUDGED),
        ("    h = cell(torch.randn(3, 4), h.detach() * 0.5)\n", Verdict.NOT_JUDGED),
    ],
)
def test_the_loss_that_failed_comes_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str, verdict: Verdict
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "new.py").write_text(PROGRAM.replace("    h = cell(torch.randn(3, 4), h)\n", new))
    monkeypatch.chdir(tmp_path)
    settings = Settings(timeout=120)
    command = script_command("train.py", (), settings.python)
    by_hand = HandRewriter(tmp_path / "new.py", Promise.REPAIR, root=tmp_path, script=command.script)
    done = verify(
        [command], options=Options(), settings=settings, tree=tmp_path, rewriter=by_hand, jobs=1, place=ForkedPlace
    )
    (rewrite,) = done.verification.rewrites
    assert rewrite.verdict is verdict, rewrite.why
