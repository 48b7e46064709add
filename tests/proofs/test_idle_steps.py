"""Steps that find no gradient: what was meant for them is a loss cut off, and no evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

HEAD = """
import numpy as np
import torch
from torch import nn
from elsewhere import engine

net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
crit = nn.CrossEntropyLoss()

for step in range(20):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    opt.zero_grad()
"""

CUT_OFF = {
    "a tensor of a number": """
    loss = torch.tensor(crit(net(x), y).item(), requires_grad=True)
    loss.backward()
    opt.step()
    """,
    "asked for gradients afterwards": """
    loss = crit(net(x).detach(), y)
    loss.requires_grad_()
    loss.backward()
    opt.step()
    """,
    "classes instead of scores": """
    loss = ((net(x).argmax(1) - y).float() ** 2).mean()
    loss.requires_grad = True
    loss.backward()
    opt.step()
    """,
    "by way of numpy": """
    loss = crit(torch.from_numpy(net(x).detach().numpy()), y).requires_grad_()
    loss.backward()
    opt.step()
    """,
    "several, and clipped": """
    losses = [crit(net(x), y).item() for _ in range(3)]
    loss = torch.tensor(sum(losses), requires_grad=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    """,
    "no backward at all": """
    print(crit(net(x), y).item())
    opt.step()
    """,
}
"""Training that does not train: that it should run under no_grad would hide the mistake."""

EVALUATED = {
    "beside a backward": """
    crit(net(x), y).backward()
    opt.step()
    print(crit(net(x), y).item())
    """,
    "before the step, behind its backward": """
    crit(net(x), y).backward()
    print(crit(net(x), y).item())
    opt.step()
    """,
    "a backward that cannot be seen": """
    engine.backward(crit(net(x), y))
    opt.step()
    net.eval()
    for x, y in [(torch.randn(8, 4), torch.randint(0, 3, (8,)))]:
        print((net(x).argmax(1) == y).sum().item())
    net.train()
    """,
    "another model's step": """
    other = nn.Linear(4, 3)
    sgd = torch.optim.SGD(other.parameters(), lr=0.1)
    target = net(x).argmax(1)
    crit(other(x), target).backward()
    sgd.step()
    """,
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_what_a_step_wants_is_no_evaluation(tmp_path: Path, name: str) -> None:
    assert not found(tmp_path, "grad-in-evaluation", HEAD + CUT_OFF[name])


@pytest.mark.parametrize("name", EVALUATED)
def test_what_no_step_wants_is_evaluation(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, "grad-in-evaluation", HEAD + EVALUATED[name])
