"""What takes only tensors has been given one where it has not raised: a number in its place brings no path."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from tests.rules.tools import found, lines

START = """import random

import torch
from torch import nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(9, 4), torch.randn(9, 1)), 3)
"""

BODY = """
for x, y in data:
    out = {number}
    if random.random() > 0.5:
        out = net(x)
    gain = torch.ones(1, requires_grad=True)
    loss = {expression} + gain.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

RAISES = [
    "torch.sigmoid(out).mean()",
    "F.relu(out).mean()",
    "out.mean()",
    "torch.exp(input=out).mean()",
    "out.T.mean()",
]
PASSES = ["torch.mul(out, y).mean()", "torch.sub(out, y).mean()", "(out * y).mean()", "(out.__rmul__(2) * y).mean()"]


def raises(expression: str) -> bool:
    """Whether PyTorch itself refuses a number there."""
    try:
        eval(expression, {"torch": torch, "F": functional, "out": 0, "y": torch.ones(3, 1)})
    except (TypeError, AttributeError):
        return True
    return False


@pytest.mark.parametrize("expression", RAISES)
@pytest.mark.parametrize("number", ["0", "None"])
def test_a_number_would_have_raised(tmp_path: Path, expression: str, number: str) -> None:
    assert raises(expression)
    body = BODY.format(expression=expression, number=number)
    assert lines(found(tmp_path, "input-requires-grad", START, body)) == [(16, "exact")]


@pytest.mark.parametrize("expression", PASSES)
def test_a_number_goes_through(tmp_path: Path, expression: str) -> None:
    assert not raises(expression)
    body = BODY.format(expression=expression, number="0")
    assert lines(found(tmp_path, "input-requires-grad", START, body)) == []
