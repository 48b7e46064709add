"""Who asks for the graph of gradients means it to be walked, perhaps by a caller that cannot be seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found, lines

START = """import torch
from torch import nn
import torch.nn.functional as F

STATE = {}
LOSSES = []
"""

# a differentiable optimizer: what it makes of the gradients, its user walks
OPTIMIZER = """
class Inner:
    def __init__(self, groups):
        self.groups = groups
        self.state = [{{}} for _ in groups]
        self.mean = torch.zeros(())
        self.losses = []

    def step(self, loss, weights, out=None):
        grads = torch.autograd.grad(loss, weights, create_graph=True)
        for i, (group, g) in enumerate(zip(self.groups, grads)):
            self.update(i, group, loss.mean(), g, out)

    def update(self, i, group, loss, g, out):
        state = self.state[i]
        {keeps}
"""

KEPT = [
    """state["mean"] = mean = state.get("mean", 0) * 0.9 + 0.1 * g
        group["weight"] = group["weight"] - 0.1 * mean""",
    'state["mean"] = state.get("mean", 0) * 0.9 + 0.1 * g',
    'state["mean"] = torch.max(state.get("mean", torch.zeros(3)), g)',
    "self.mean = self.mean * 0.9 + 0.1 * g",
    "self.mean += g.sum()",
    "self.losses.append(g.sum())",
    'out["mean"] = out["mean"] * 0.9 + 0.1 * g',
    "out.append(g.sum())",
    'STATE["mean"] = STATE.get("mean", 0) + g',
    "LOSSES.append(g.norm())",
]


@pytest.mark.parametrize("keeps", KEPT)
@pytest.mark.parametrize("rule", ["attached-loss-total", "attached-loss-history"])
def test_what_is_left_to_its_user_keeps_its_graph(tmp_path: Path, rule: str, keeps: str) -> None:
    assert lines(found(tmp_path, rule, START, OPTIMIZER.format(keeps=keeps))) == []


TRAINER = """
class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.total = torch.zeros(())
        self.losses = []

    def fit(self, data):
        for x, y in data:
            x = x.requires_grad_()
            loss = F.mse_loss(self.net(x), y)
            (g,) = torch.autograd.grad(loss, x, create_graph=True)
            penalty = g.pow(2).sum()
            self.opt.zero_grad()
            (loss + penalty).backward({flag})
            self.opt.step()
            {keeps}
"""


@pytest.mark.parametrize("keeps", ["self.total += penalty", "self.losses.append(penalty)"])
def test_what_a_backward_has_freed_nobody_walks(tmp_path: Path, keeps: str) -> None:
    rule = "attached-loss-total" if "total" in keeps else "attached-loss-history"
    assert len(found(tmp_path, rule, START, TRAINER.format(flag="", keeps=keeps))) == 1
    assert found(tmp_path, rule, START, TRAINER.format(flag="retain_graph=True", keeps=keeps)) == []


@pytest.mark.parametrize("keeps", ["self.total += loss", "self.losses.append(loss)"])
def test_a_flag_alone_means_nothing(tmp_path: Path, keeps: str) -> None:
    rule = "attached-loss-total" if "total" in keeps else "attached-loss-history"
    text = TRAINER.format(flag="retain_graph=True", keeps=keeps).replace("create_graph=True", "retain_graph=True")
    assert len(found(tmp_path, rule, START, text)) == 1
