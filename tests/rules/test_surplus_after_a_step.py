"""Flags of graphs that callers who cannot be seen may come to, when a step has changed what a second backward needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "surplus-retain-graph"

AGENT = """
import torch
from torch import nn

class Agent:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.critic = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.critic_opt = torch.optim.SGD(self.critic.parameters(), lr=0.1)
        self.kept = None

    def act(self, x):
        self.kept = self.net(x)
        return self.kept.argmax().item()

    def update(self, x, choices):
        out = {out}
        loss = {loss}
        self.opt.zero_grad()
        self.critic_opt.zero_grad()
        loss.backward(retain_graph=True)
        {step}
        {end}
"""

HERE = {"out": "self.net(torch.ones(3, 4))", "loss": "out.pow(2).mean()", "step": "self.opt.step()", "end": "pass"}

LIKELY = {
    "the loss is returned": {"end": "return loss"},
    "what the loss is computed of is returned": {"end": "return out"},
    "in a dict": {"end": "return {'loss': loss, 'out': out}"},
    "a graph of another call": {"out": "self.kept"},
    "both optimizers step": {
        "loss": "self.critic(out).mean()",
        "step": "self.opt.step(); self.critic_opt.step()",
        "end": "return out",
    },
}

SILENT = {
    "no step before it is returned": {"step": "pass", "end": "return loss"},
    "no step after a graph of another call": {"out": "self.kept", "step": "pass"},
    "a step of others": {"loss": "self.critic(out).mean()", "step": "self.critic_opt.step()", "end": "return out"},
    "a step of others over a graph of another call": {
        "out": "self.kept",
        "loss": "self.critic(out).mean()",
        "step": "self.critic_opt.step()",
    },
    "a step that comes first": {"out": "self.kept", "loss": "(self.opt.step(), out.mean())[1]", "step": "pass"},
    "drawn at random": {"loss": "out.mean() + random.choice([out, out]).sum()", "end": "return out"},
    "kept by code that cannot be seen": {"step": "memory.append(out); self.opt.step()"},
    "one part of what is returned needs nothing that was changed": {
        "loss": "self.critic(out).mean()",
        "step": "self.critic_opt.step()",
        "end": "return out, loss",
    },
}


def promises(folder: Path, changed: dict[str, str]) -> list[tuple[Promise, Promise | None]]:
    head = "from elsewhere import memory\nimport random\n"
    source = head + AGENT.format(**{**HERE, **changed})
    return [(f.promise, f.likely) for f in found(folder, RULE, source)]


@pytest.mark.parametrize("name", LIKELY)
def test_a_second_backward_would_be_refused(tmp_path: Path, name: str) -> None:
    assert promises(tmp_path, LIKELY[name]) == [(Promise.ADVICE, Promise.EXACT)]


@pytest.mark.parametrize("name", SILENT)
def test_a_second_backward_may_come(tmp_path: Path, name: str) -> None:
    assert promises(tmp_path, SILENT[name]) == []


def test_nothing_is_left_for_callers(tmp_path: Path) -> None:
    assert promises(tmp_path, {}) == [(Promise.EXACT, None)]
