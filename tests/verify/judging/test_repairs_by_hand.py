"""A repair by hand alters nothing beside what it repairs."""

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

CAUGHT = """\
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
STATE = "h = cell(torch.randn(3, 4), h)"
GROWING = """\
import torch
from torch import nn


class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 1)
        self.register_buffer("centre", torch.zeros(5))

    def forward(self, x):
        h = self.body(x).tanh()
        self.centre = 0.9 * self.centre + 0.1 * h.mean(0)
        return self.head(h)


torch.manual_seed(0)
net = Centred()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(20):
    loss = net(torch.randn(3, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CENTRE = "0.9 * self.centre + 0.1 * h.mean(0)"


@pytest.mark.parametrize(
    ("program", "old", "new", "verdict"),
    [
        # The loss on which the original failed has to come up again.
        (CAUGHT, STATE, "h = cell(torch.randn(3, 4), h.detach())", Verdict.KEPT),
        (CAUGHT, STATE, "h = cell(torch.randn(3, 4), torch.zeros(3, 5))", Verdict.NOT_JUDGED),
        (CAUGHT, STATE, "h = cell(torch.randn(3, 4), h.detach() * 0.5)", Verdict.NOT_JUDGED),
        # What nobody learns from has to be the same as well.
        (GROWING, CENTRE, "0.9 * self.centre + 0.1 * h.mean(0).detach()", Verdict.KEPT),
        (GROWING, CENTRE, "0.8 * self.centre + 0.2 * h.mean(0).detach()", Verdict.NOT_JUDGED),
    ],
)
def test_nothing_else_is_altered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, old: str, new: str, verdict: Verdict
) -> None:
    assert program.count(old) == 1
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "new.py").write_text(program.replace(old, new))
    monkeypatch.chdir(tmp_path)
    settings = Settings(timeout=120)
    command = script_command("train.py", (), settings.python)
    by_hand = HandRewriter(tmp_path / "new.py", Promise.REPAIR, root=tmp_path, script=command.script)
    done = verify(
        [command], options=Options(), settings=settings, tree=tmp_path, rewriter=by_hand, jobs=1, place=ForkedPlace
    )
    (rewrite,) = done.rewrites
    assert rewrite.verdict is verdict, rewrite.why
