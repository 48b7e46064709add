"""A flag is needed for a backward whose loss lies deeper than two turns of a loop go, or behind a part that was called
before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

RULE = "surplus-retain-graph"

START = """\
import torch
from torch import nn


class Box:
    def __init__(self, inner, loss=None):
        self.inner = inner
        self.loss = loss


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = torch.relu(self.a(x))
        return self.b(h), self.c(h)

    def apart(self, x):
        return self.b(x), self.c(x)

    @staticmethod
    def mix(q, k):
        return torch.softmax(q * k, -1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.first = nn.Linear(4, 4)

    def forward(self, x):
        return self.part(x)

    def apart(self, x):
        return self.part.apart(x)

    def attend(self, x):
        h = self.first(x)
        self.part.mix(h, h)
        return h, self.part.mix(h, self.part.a(x))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(9, 4)
{before}
for step in range(3):
    opt.zero_grad()
    {step}
    opt.step()
"""

NEEDED = {
    "an object in objects": (
        "",
        """loss = net(x)[0].mean()
    loss.backward(retain_graph=True)
    box = Box(Box(Box(Box(Box(loss)))))
    while isinstance(box, Box):
        box = box.inner
    box.backward()""",
    ),
    "a chain": (
        "",
        """first = net(x)[0].mean()
    node = Box(Box(None, first), net(x)[0].mean())
    node = Box(Box(node, net(x)[0].mean()), net(x)[0].mean())
    first.backward(retain_graph=True)
    total = 0
    while node is not None:
        total = total + node.loss
        node = node.inner
    total.backward()""",
    ),
    "two results of a part that was called before": (
        "sum(net(x)).mean().backward()",
        """one, two = net(x)
    one.mean().backward(retain_graph=True)
    two.mean().backward()""",
    ),
    "what a part got once instead of twice": (
        "net.attend(x)",
        """one, two = net.attend(x)
    one.pow(2).mean().backward(retain_graph=True)
    two.mean().backward()""",
    ),
}

SURPLUS = {
    "an object in objects": (
        "",
        """loss = net(x)[0].mean()
    loss.backward(retain_graph=True)
    box = Box(Box(Box(Box(Box(loss.item())))))
    while isinstance(box, Box):
        box = box.inner
    print(box)""",
    ),
    "two results of a part without a common graph": (
        "sum(net.apart(x)).mean().backward()",
        """one, two = net.apart(x)
    one.mean().backward(retain_graph=True)
    two.mean().backward()""",
    ),
    "two results, walked together": (
        "sum(net(x)).mean().backward()",
        """one, two = net(x)
    (one.mean() + two.mean()).backward(retain_graph=True)""",
    ),
}


def _text(parts: tuple[str, str]) -> str:
    before, step = parts
    return START.replace("{before}", before).replace("{step}", step)


@pytest.mark.parametrize("case", NEEDED)
def test_a_flag_that_is_needed_stays(tmp_path: Path, case: str) -> None:
    assert not found(tmp_path, RULE, _text(NEEDED[case]))


@pytest.mark.parametrize("case", SURPLUS)
def test_a_flag_that_is_not_needed_goes(tmp_path: Path, case: str) -> None:
    (finding,) = found(tmp_path, RULE, _text(SURPLUS[case]))
    assert finding.fixable
