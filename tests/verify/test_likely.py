"""What is only likely: never applied by itself, and by ``apply --verify`` where a run came to it and it held."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import codemod
from tests.verify.zygote import warm

TRAIN = """
import importlib.machinery
import torch

models = importlib.machinery.SourceFileLoader("models", "models.txt").load_module()
torch.manual_seed(0)
net = models.Net(4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for step in range(6):
    loss = net(torch.randn(3, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
"""
MENDED = TRAIN.replace("total += loss", "total += loss.item()")
HOLDS = """
import torch

class Net(torch.nn.Linear):
    def __init__(self, width):
        super().__init__(width, 1)
"""
BREAKS = (
    HOLDS
    + """
        self.last = None

    def forward(self, x):
        if self.last is not None:
            self.last.sum().backward()
        self.last = super().forward(x).exp()
        return self.last
"""
)


def test_it_is_told_and_left_alone(folder: Path) -> None:
    script = folder / "train.py"
    script.write_text(TRAIN)
    checked = json.loads(codemod("check", "train.py", "--format", "json").stdout)
    told = [(one["rule"], one["promise"], one["likely"], one["fixable"]) for one in checked["findings"]]
    assert ("surplus-retain-graph", "advice", "exact", False) in told
    assert "1 likely (apply --verify shows which hold)" in codemod("check", "train.py").stdout
    assert codemod("apply", "train.py", "--unsafe").status == 0
    assert "retain_graph=True" in script.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("models", "left"), [(HOLDS, []), (BREAKS, [("surplus-retain-graph", "broken")])])
def test_it_is_made_where_it_held(
    folder: Path, monkeypatch: pytest.MonkeyPatch, models: str, left: list[tuple[str, str]]
) -> None:
    warm(monkeypatch)
    script = folder / "train.py"
    script.write_text(TRAIN)
    (folder / "models.txt").write_text(models)
    applied = codemod("apply", "train.py", "--verify", "train.py", "--format", "json")
    assert applied.status == 0, applied.stderr
    assert script.read_text() == (MENDED if left else MENDED.replace("retain_graph=True", ""))
    report = json.loads(applied.stdout)
    assert [(one["rule"], one["verdict"]) for one in report["dropped"]] == left
    assert [(one["rule"], one["promise"]) for one in report["findings"]] == [(rule, "advice") for rule, _ in left]


HOOKED = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
kept = []
net[0].register_forward_hook(lambda module, given, made: kept.append(made))
for step in range(12):
    loss = net(torch.randn(8, 4)).pow(2).mean(){more}
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
"""


@pytest.mark.slow
def test_what_a_hook_piles_up_is_detached_where_a_run_shows_that_it_may_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(monkeypatch)
    script = folder / "train.py"
    text = HOOKED.format(more="")
    script.write_text(text)
    applied = codemod("apply", "train.py", "--verify", "train.py", "--format", "json")
    assert applied.status == 0, applied.stderr
    assert script.read_text() == text.replace("kept.append(made)", "kept.append(made.detach())")


@pytest.mark.slow
def test_what_a_loss_takes_from_it_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm(monkeypatch)
    script = folder / "train.py"
    text = HOOKED.format(more=" + 0.1 * kept[-1].abs().mean()")
    script.write_text(text)
    applied = codemod("apply", "train.py", "--verify", "train.py")
    assert script.read_text() == text, applied.stdout
