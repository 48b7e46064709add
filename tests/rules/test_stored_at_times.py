"""What a step stores under a condition, and every later step reads and back-propagates."""

from __future__ import annotations

import pytest

from tests.rules.tools import Told, told_of

HEAD = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
criterion = nn.MSELoss()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [(torch.randn(9, 4), torch.randn(9, 2)) for _ in range(4)]
"""

FOUND = {
    "a loss, where it is finite": (
        """
last = 0
for x, y in batches:
    loss = criterion(net(x), y) + 0.1 * last
    opt.zero_grad()
    loss.backward()
    opt.step()
    if torch.isfinite(loss):
        last = loss
""",
        "last = loss",
        "last = loss.detach()",
    ),
    "behind a continue": (
        """
last = 0.0
for x, y in batches:
    loss = criterion(net(x), y) + 0.1 * last
    opt.zero_grad()
    loss.backward()
    opt.step()
    if not torch.isfinite(loss):
        continue
    last = loss
""",
        "last = loss",
        "last = loss.detach()",
    ),
    "behind a return of a method": (
        """
class Trainer:
    def __init__(self):
        self.last = 0.0

    def step(self, x, y):
        loss = criterion(net(x), y) + 0.1 * self.last
        opt.zero_grad()
        loss.backward()
        opt.step()
        if loss.item() > 100:
            return
        self.last = loss

trainer = Trainer()
for x, y in batches:
    trainer.step(x, y)
""",
        "self.last = loss",
        "self.last = loss.detach()",
    ),
    "a loss that some turns put back": (
        """
last = 0.0
for x, y in batches:
    loss = criterion(net(x), y) + 0.1 * last
    opt.zero_grad()
    loss.backward()
    opt.step()
    last = loss
    if y.sum() > 3:
        last = 0.0
""",
        "last = loss",
        "last = loss.detach()",
    ),
    "an output, where it is good": (
        """
best = 0.0
for x, y in batches:
    out = net(x)
    loss = criterion(out, y) + (out - best).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if loss.item() < 1:
        best = out
""",
        "best = out",
        "best = out.detach()",
    ),
}

LEFT = {
    "another path puts a number in its place before it is read": """
last = 0
for x, y in batches:
    last = 0
    loss = criterion(net(x), y) + 0.1 * last
    opt.zero_grad()
    loss.backward()
    opt.step()
    if torch.isfinite(loss):
        last = loss
""",
    "it is a number": """
last = 0
for x, y in batches:
    loss = criterion(net(x), y) + 0.1 * last
    opt.zero_grad()
    loss.backward()
    opt.step()
    if torch.isfinite(loss):
        last = loss.item()
""",
    "it is cut": """
last = 0
for x, y in batches:
    loss = criterion(net(x), y) + 0.1 * last
    opt.zero_grad()
    loss.backward()
    opt.step()
    if torch.isfinite(loss):
        last = loss.detach()
""",
    "it is read without its graph": """
last = 0
for x, y in batches:
    loss = criterion(net(x), y) + 0.1 * float(last)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if torch.isfinite(loss):
        last = loss
""",
    "a sum of several steps has one backward": """
total = 0
for i, (x, y) in enumerate(batches):
    total = total + criterion(net(x), y)
    if i % 2:
        opt.zero_grad()
        total.backward()
        opt.step()
        total = 0
""",
    "a part that learns when it is made": """
features = 0.0
for i, (x, y) in enumerate(batches):
    if i % 2 == 0:
        features = net[0](x)
    loss = criterion(net[2](net[1](features)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "it is stored where nothing was back-propagated": """
last = 0
for x, y in batches:
    loss = criterion(net(x), y) + 0.1 * last
    if y.sum() > 0:
        last = loss
    else:
        opt.zero_grad()
        loss.backward()
        opt.step()
        last = 0
""",
    "only what follows the loop reads it": """
last = 0
for x, y in batches:
    loss = criterion(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if torch.isfinite(loss):
        last = loss
print(last)
""",
}


@pytest.fixture(scope="module", name="told")
def _told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    programs = {name: text for name, (text, *_) in FOUND.items()} | LEFT
    return told_of(tmp_path_factory.mktemp("stored"), "stored-graph", HEAD, programs)


@pytest.mark.parametrize("name", FOUND)
def test_it_is_cut_where_it_is_stored(told: dict[str, Told], name: str) -> None:
    _, line, *written = FOUND[name]
    assert told[name] == Told([line], written)


@pytest.mark.parametrize("name", LEFT)
def test_it_is_left(told: dict[str, Told], name: str) -> None:
    assert told[name] == Told([], [])
