"""A branch on ``requires_grad`` or on the mode that only chooses whether a part of the forward is a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

RULE = "grad-in-evaluation"

START = """\
import torch
from torch import nn
import torch.utils.checkpoint as cp
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 4)
        self.two = nn.Linear(4, 4)

    def inner(self, *given):
        return torch.tanh(self.one(torch.cat(given, 1)))

    def forward(self, x):
"""

LOOP = """
net = nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x, y = torch.randn(9, 4), torch.randn(9, 1)
    loss = ((net(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
right = 0
for step in range(3):
    x, y = torch.randn(9, 4), torch.randn(9, 1)
    right += ((net(x) > 0) == (y > 0)).sum().item()
print(right)
"""

SAME = {
    "if and else": (
        "if x.requires_grad:\n h = cp.checkpoint(self.inner, x)\nelse:\n h = self.inner(x)\nreturn self.two(h)"
    ),
    "with arguments of the checkpoint": (
        "if torch.is_grad_enabled():\n h = checkpoint(self.inner, x, use_reentrant=False)\n"
        "else:\n h = self.inner(x)\nreturn self.two(h)"
    ),
    "the other way round": (
        "if not x.requires_grad:\n h = self.inner(x)\nelse:\n h = checkpoint(self.inner, x)\nreturn self.two(h)"
    ),
    "starred": (
        "f = (x,)\nif any(t.requires_grad for t in f) and self.training:\n h = cp.checkpoint(self.inner, *f)\n"
        "else:\n h = self.inner(*f)\nreturn self.two(h)"
    ),
    "an expression": "return self.two(checkpoint(self.inner, x) if x.requires_grad else self.inner(x))",
    "a return": "if x.requires_grad:\n return checkpoint(self.inner, x)\nreturn self.inner(x)",
    "in front": (
        "if x.requires_grad:\n x = x * 2\n h = checkpoint(self.inner, x)\nelse:\n x = x * 2\n h = self.inner(x)\n"
        "return h"
    ),
}

DIFFERENT = {
    "another function": (
        "if x.requires_grad:\n h = checkpoint(self.inner, x)\nelse:\n h = self.one(x)\nreturn self.two(h)"
    ),
    "another argument": (
        "if x.requires_grad:\n h = checkpoint(self.inner, 2 * x)\nelse:\n h = self.inner(x)\nreturn self.two(h)"
    ),
    "no else": "h = self.one(x)\nif x.requires_grad:\n h = checkpoint(self.inner, x)\nreturn self.two(h)",
    "more in one": (
        "if torch.is_grad_enabled():\n h = checkpoint(self.inner, x)\n h = h + 1\n"
        "else:\n h = self.inner(x)\nreturn self.two(h)"
    ),
    "another target": (
        "k = x\nif x.requires_grad:\n h = checkpoint(self.inner, x)\nelse:\n k = self.inner(x)\n h = x\n"
        "return self.two(h + k)"
    ),
    "the answer is kept": (
        "if (asks := x.requires_grad):\n h = checkpoint(self.inner, x)\nelse:\n h = self.inner(x)\n"
        "return self.two(h) * (2 if asks else 1)"
    ),
    "the answer is a number": "return self.two(self.inner(x)) * x.requires_grad",
    "somebody's own checkpoint": (
        "checkpoint = lambda f, x: f(x) + 1\nif x.requires_grad:\n h = checkpoint(self.inner, x)\n"
        "else:\n h = self.inner(x)\nreturn self.two(h)"
    ),
    "a return, and more behind": (
        "if x.requires_grad:\n return checkpoint(self.inner, x)\nx = x + 1\nreturn self.inner(x)"
    ),
    "asked in another way": ("h = self.inner(x) if x.requires_grad else self.one(x)\nreturn checkpoint(self.two, h)"),
}


def _forward(body: str) -> str:
    return "".join(f"        {line}\n" for line in body.replace("\n ", "\n    ").split("\n"))


@pytest.mark.parametrize("name", SAME)
def test_a_checkpoint_computes_what_its_function_does(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START + _forward(SAME[name]), LOOP)
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize("name", DIFFERENT)
def test_without_gradients_it_would_be_something_else(tmp_path: Path, name: str) -> None:
    assert not found(tmp_path, RULE, START + _forward(DIFFERENT[name]), LOOP)
