"""State that a model whose code cannot be seen gives and gets again: likely carried, unless the model cuts it."""

from __future__ import annotations

import pytest

from tests.rules.tools import Told, told_of

HEAD = """\
import torch
from torch import nn
from data import loader, episodes
from somewhere import Model

model = Model(3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()

def detached(state):
    return tuple(part.detach() for part in state)
"""

FOUND = {
    "a state in a tuple with the output": (
        """
h = None
for x, y in loader:
    out, h = model(x, h)
    loss = criterion(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "out, h = model(x, h)",
        "h = detach_state(h)",
    ),
    "a function with a state of the model's own": (
        """
def epoch():
    model.train()
    state = model.first_state(20)
    for x, y in loader:
        opt.zero_grad()
        out, state = model(x, state)
        criterion(out, y).backward()
        opt.step()

for _ in range(3):
    epoch()
""",
        "out, state = model(x, state)",
        "state = detach_state(state)",
    ),
    "an attribute of a trainer": (
        """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.state = None

    def step(self, x, y):
        out, self.state = self.model(x, self.state)
        loss = criterion(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()

trainer = Trainer(model)
for x, y in loader:
    trainer.step(x, y)
""",
        "out, self.state = self.model(x, self.state)",
        "self.state = detach_state(self.state)",
    ),
    "an attribute of the output": (
        """
memory = None
for x, y in loader:
    out = model(x, memory)
    memory = out.memory
    loss = criterion(out.logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "memory = out.memory",
        "memory = detach_state(memory)",
    ),
    "a flag that keeps it alive": (
        """
h = None
for x, y in loader:
    out, h = model(x, h)
    loss = criterion(out, y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
        "out, h = model(x, h)",
        "loss.backward()",
        "h = detach_state(h)",
    ),
}

LEFT = {
    "it is cut": """
h = None
for x, y in loader:
    out, h = model(x, h)
    h = h.detach()
    loss = criterion(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "it is cut by a function": """
h = model.first_state(20)
for x, y in loader:
    h = detached(h)
    out, h = model(x, h)
    loss = criterion(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "each batch begins anew": """
for x, y in loader:
    h = None
    for part in x:
        out, h = model(part, h)
    loss = criterion(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "one backward for all steps of a sequence": """
for episode in episodes:
    h, total = None, 0
    for x, y in episode:
        out, h = model(x, h)
        total = total + criterion(out, y)
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "nothing trains": """
h = None
with torch.no_grad():
    for x, y in loader:
        out, h = model(x, h)
        print(criterion(out, y).item())
""",
    "another model gets it": """
other = Model(4)
last = torch.zeros(3)
for x, y in loader:
    out = model(x)
    loss = criterion(out, other(last))
    opt.zero_grad()
    loss.backward()
    opt.step()
    last = torch.zeros_like(out)
""",
    "only its numbers come back": """
h = 0.0
for x, y in loader:
    out, h = model(x, h)
    h = h.item()
    loss = criterion(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "some turns do not read it": """
h = None
for i, (x, y) in enumerate(loader):
    if y.sum() > 0:
        out, h = model(x, h)
        loss = criterion(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
}


@pytest.fixture(scope="module", name="told")
def _told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    programs = {name: text for name, (text, *_) in FOUND.items()} | LEFT
    return told_of(tmp_path_factory.mktemp("states"), "carried-hidden-state", HEAD, programs)


@pytest.mark.parametrize("name", FOUND)
def test_it_is_likely(told: dict[str, Told], name: str) -> None:
    _, line, *written = FOUND[name]
    assert told[name].lines == [line]
    assert told[name].written[-len(written) :] == written


@pytest.mark.parametrize("name", LEFT)
def test_it_is_left(told: dict[str, Told], name: str) -> None:
    assert told[name] == Told([], [])
