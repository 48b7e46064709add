"""A value that is put at a place which is not known may lie at any, whichever way the container is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

RULE = "attached-loss-total"

# an unrolled optimizer with momentum: the outer loss walks through the mean where it takes the new weights
PROGRAM = """
import collections
import copy
import random

import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters())
for x in torch.rand(5, 3, 4):
    y = torch.zeros(3, 4, requires_grad=True)
    k = random.randrange(1)
    mean = torch.zeros(3, 4)
    {made}
    for _ in range(3):
        energy = net(x + y).tanh().sum()
        (g,) = torch.autograd.grad(energy, [y], create_graph=True)
        mean = mean * 0.9 + 0.1 * g
        new = y - 0.1 * mean
        {put}
        {taken}
    opt.zero_grad()
    (y - x).pow(2).mean().backward()
    opt.step()
"""

KEPT = [
    ("held = [y]", "held[k] = new", "y, = held"),
    ("held = [y, x]", "held[k] = new", "y, _ = held"),
    ("held = [y, x]", "held[k] = new", "y, *_ = held"),
    ("held = [y, x]", "held[k] = new", "(y, _) = (*held,)"),
    ("held = [y, x]", "held[k] = new", "y = next(iter(held))"),
    ("held = [y, x]", "held[k] = new", "y = [one for one in held][0]"),
    ("held = [None] * 1", "held[k] = new", "y, = held"),
    ("held = [y, y]", "held.append(new); held.reverse()", "y, *_ = held"),
    ("held = [y, y]", "held.append(new)", "y, *_ = held[::-1]"),
    ("held = [y, y]", "held.append(new)", "y, *_ = sorted(held, key=id)"),
    ("held = [y, y]", "held.insert(k, new)", "y, *_ = held"),
    ("held = collections.deque([y, y], maxlen=2)", "held.append(new); held.rotate(1)", "y, _ = held"),
    ("held = {0: y, 1: x}", "held[k] = new", "y, _ = held.values()"),
    ("held = {0: y, 1: x}", "held[k] = new", "(_, y), _ = held.items()"),
    ("held = {1: x}", "held[k] = new", "y = held.get(0, x)"),
    ("held = torch.optim.SGD([y], lr=0.1).param_groups", 'held[0]["w"] = new', 'y = held[0]["w"]'),
    (
        "groups = torch.optim.SGD([y], lr=0.1).param_groups",
        "held = [group.update(w=new) for group in groups]",
        'y = [group["w"] for group in groups][0]',
    ),
    (
        "inner = torch.optim.SGD([y], lr=0.1)",
        'inner.param_groups[0]["w"] = new',
        'y = inner.param_groups[0]["w"]',
    ),
    (
        "groups = copy.deepcopy(torch.optim.SGD([y], lr=0.1).param_groups)",
        'for group in groups: group["w"] = new',
        'y = groups[0]["w"]',
    ),
    ("held = list(net.parameters())", "held[k] = new", "y = [one for one in held][0]"),
]


@pytest.mark.parametrize(("made", "put", "taken"), KEPT)
def test_what_the_outer_loss_walks_is_not_cut(tmp_path: Path, made: str, put: str, taken: str) -> None:
    assert found(tmp_path, RULE, PROGRAM.format(made=made, put=put, taken=taken)) == []


SEEN = [
    ("held = [y, x]", "held[k] = new", "y = y.detach().requires_grad_()"),
    ("held = [y]", "held[k] = new.detach().requires_grad_()", "y, = held"),
    ("held = [y]", "held[0] = new.detach().requires_grad_()", "y, = held"),
    ("held = {0: y}", "held[1] = new", "y = held.get(0, x)"),
]


@pytest.mark.parametrize(("made", "put", "taken"), SEEN)
def test_a_mean_that_no_loss_walks_is_cut(tmp_path: Path, made: str, put: str, taken: str) -> None:
    assert len(found(tmp_path, RULE, PROGRAM.format(made=made, put=put, taken=taken))) == 1
