"""Groups that an optimizer takes: parameters, and what lies beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "surplus-retain-graph"

PROGRAM = """
import itertools
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.head = nn.Sequential(nn.Linear(4, 1))

    def forward(self, x):
        return self.head(self.body(x))

    def weights(self):
        found = []
        for layer in itertools.chain(self.body, self.head):
            if type(layer) == nn.Linear:
                found.append(layer.weight)
        return found

class Pulled(torch.optim.SGD):
    def step(self):
        super().step()
        for group in self.param_groups:
            if "towards" in group:
                group["towards"].sum().backward()

net = Net()
{make}
for step in range(3):
    opt.zero_grad()
    out = net(torch.ones(2, 4))
    {give}
    out.mean().backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize(
    "make",
    [
        "opt = torch.optim.SGD([{'params': net.weights(), 'lr': 0.1}], lr=0.1)",
        "opt = torch.optim.SGD([dict(params=net.weights(), weight_decay=0.1)], lr=0.1)",
        "opt = torch.optim.SGD(net.head.parameters(), lr=0.1)\nopt.add_param_group({'params': net.weights()[:1]})",
    ],
)
def test_parameters_in_groups_are_no_graphs(tmp_path: Path, make: str) -> None:
    code = PROGRAM.format(make=make, give="pass")
    assert [f.promise for f in found(tmp_path, RULE, code)] == [Promise.EXACT]


@pytest.mark.parametrize(
    "give",
    [
        "opt = Pulled([{'params': net.weights(), 'towards': out}], lr=0.1)",
        "opt = Pulled([dict(params=net.weights(), towards=out * 2)], lr=0.1)",
        "opt.add_param_group({'params': net.body[0].bias, 'towards': out})",
        "name = 'towards'\n    opt.add_param_group({'params': net.body[0].bias, name: out})",
    ],
)
def test_what_lies_beside_them_may_be_walked(tmp_path: Path, give: str) -> None:
    code = PROGRAM.format(make="opt = Pulled(net.head.parameters(), lr=0.1)", give=give)
    assert Promise.EXACT not in [f.promise for f in found(tmp_path, RULE, code)]
