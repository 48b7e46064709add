"""What a value can only be where an attribute of it is read: a tuple has nothing but its elements, and the rest of the
program is of what it is otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

RULE = "surplus-retain-graph"

START = """\
import sys
from collections import namedtuple
from typing import NamedTuple
import torch
from torch import nn

FLAG = "both" in sys.argv
"""

LOOP = """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x, y = torch.randn(9, 4), torch.randn(9)
    {out}
    loss = ((out - y) ** 2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = None

    def forward(self, x):
        h = torch.tanh(self.body(x))
        {returned}
"""


@pytest.mark.parametrize(
    ("returned", "out"),
    [
        ("return (h, x) if FLAG else h", "out = net(x).view(-1)"),
        ("return (h, x) if FLAG else h", "out = net(x)[0:].view(-1)"),
        ("if FLAG:\n            return h, x, h\n        return h", "out = net(x).squeeze(-1)"),
        ("if FLAG:\n            return h, x, h\n        return h", "made = net(x)\n    out = made.view(made.size(0))"),
        ("return h", "more = net(x), x\n    if not FLAG:\n        more = more[0]\n    out = more.flatten()"),
    ],
)
def test_what_a_tuple_has_not_is_of_the_others(tmp_path: Path, returned: str, out: str) -> None:
    findings = found(tmp_path, RULE, START, NET.format(returned=returned), LOOP.format(out=out))
    assert [f.promise.value for f in findings] == ["exact"]


KEEPING = """
class Kept{base}:
    {fields}

    def view(self, *size):
        out = self[0].flatten()
        held.append(out)
        return out + sum(held)

held = []
"""


@pytest.mark.parametrize(
    ("classes", "returned", "out"),
    [
        (
            KEEPING.format(base="(NamedTuple)", fields="first: torch.Tensor\n    second: torch.Tensor"),
            "return Kept(h, x) if FLAG else h.flatten()",
            "out = net(x).view(-1)",
        ),
        (
            KEEPING.format(base="(tuple)", fields="name = 1"),
            "return Kept((h, x)) if FLAG else h.flatten()",
            "out = net(x).view(-1)",
        ),
        (
            "Pair = namedtuple('Pair', ['view', 'other'])\nheld = []\n",
            "held.append(h.flatten())\n        return Pair(lambda n: sum(held), x) if FLAG else h",
            "out = net(x).view(-1)",
        ),
        (
            "held = []\n",
            "held.append(h)\n        return torch.max(h, 1) if FLAG else (h, x)",
            "held.append(net(x).values)\n    out = sum(h.flatten() for h in held)",
        ),
        (
            "held = []\n",
            "held.append(h)\n        return (h, x) if FLAG else h",
            "made = net(x)\n    out = sum(h.flatten() for h in held) + made[0].sum()",
        ),
    ],
)
def test_a_tuple_of_a_class_may_have_anything(tmp_path: Path, classes: str, returned: str, out: str) -> None:
    assert found(tmp_path, RULE, START, classes, NET.format(returned=returned), LOOP.format(out=out)) == []


LOADING = """
class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)
        self.last = None
{more}

    def forward(self, x):
        h = torch.tanh(self.inner(x))
        {kept}
        return h

net = Body()
if FLAG:
    net = net.load_state_dict(torch.load("model.pt")){to}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = net(torch.randn(9, 4)).sum()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize("to", ["", ".cuda()", '.to("cuda")'])
def test_a_module_is_not_what_loading_tells(tmp_path: Path, to: str) -> None:
    findings = found(tmp_path, RULE, START, LOADING.format(more="", kept="pass", to=to))
    assert [f.promise.value for f in findings] == ["exact"]


OWN = """
    def load_state_dict(self, state, strict=True):
        super().load_state_dict(state)
        return {returned}
"""
KEPT = "h = h if self.last is None else h + self.last\n        self.last = h"


@pytest.mark.parametrize(("more", "kept"), [(OWN.format(returned="self"), KEPT), ("", KEPT)])
def test_a_module_that_keeps_its_graph_needs_the_flag(tmp_path: Path, more: str, kept: str) -> None:
    assert found(tmp_path, RULE, START, LOADING.format(more=more, kept=kept, to=".cuda()")) == []
