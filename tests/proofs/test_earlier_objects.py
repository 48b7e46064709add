"""Two objects have an attribute of one name: what one had before says nothing of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

PROGRAM = """
import torch
from torch import nn

class Held:
    def __init__(self, value):
        self.value = value
    def put(self):
        seen.append(self.value)
    def shown(self):
        return {shown}

seen = []
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
running = 0.0
for x in torch.randn(4, 5, 3):
    loss = net(x).pow(2).mean()
    first = Held(loss)
    first.put()
    other = Held({given})
    running = 0.5 * running + {read}
    opt.zero_grad()
    (loss + 0.1 * (loss - running)).backward()
    opt.step()
    running = running.detach()
print(len(seen))
"""


@pytest.mark.parametrize(("shown", "read"), [("self.value * 1", "other.shown()"), ("0", "other.value * 1")])
def test_what_is_walked_by_the_keeper_stays(tmp_path: Path, shown: str, read: str) -> None:
    text = PROGRAM.format(shown=shown, given="seen[-1]", read=read)
    assert [f for f in found(tmp_path, "attached-loss-history", text) if f.edits] == []


@pytest.mark.parametrize(("shown", "read"), [("self.value * 1", "other.shown()"), ("0", "loss * 1")])
def test_what_is_walked_by_its_own_name_is_let_go(tmp_path: Path, shown: str, read: str) -> None:
    text = PROGRAM.format(shown=shown, given="loss", read=read)
    assert len([f for f in found(tmp_path, "attached-loss-history", text) if f.edits]) == 1
