"""Evaluation by methods of models whose code cannot be seen: likely, where it is a method that gets and gives data."""

from __future__ import annotations

import pytest

from tests.rules.tools import Told, told_of

HEAD = """\
import torch
from torch import nn
from data import loader
from somewhere import VAE, make

vae = VAE()
opt = torch.optim.Adam(vae.parameters())

def learn():
    vae.train()
    for x in loader:
        loss = vae.loss(x)
        opt.zero_grad()
        loss.backward()
        opt.step()

learn()
"""

FOUND = {
    "a loop of a script": (
        """
vae.eval()
total = 0
for x in loader:
    y = vae.decode(vae.encode(x))
    total += ((y - x) ** 2).mean().item()
print(total)
""",
        "y = vae.decode(vae.encode(x))",
        "with torch.no_grad():",
    ),
    "a function that gets the model": (
        """
def evaluate(model, batches):
    model.eval()
    total = 0
    for x in batches:
        z = model.encode(x)
        total += ((model.decode(z) - x) ** 2).mean().item()
    return total
""",
        "def evaluate(model, batches):",
        "@torch.no_grad()",
    ),
    "a method of an object that holds the model": (
        """
class Tester:
    def __init__(self, model):
        self.model = model

    def score(self, batches):
        self.model.eval()
        return [self.model.predict(x).argmax(1).cpu().numpy() for x in batches]

print(Tester(vae).score(loader))
""",
        "def score(self, batches):",
        "@torch.no_grad()",
    ),
    "a model that a function makes": (
        """
model = make("vae").eval()
for x in loader:
    print(model.embed(x).mean().item())
""",
        "for x in loader:",
        "with torch.no_grad():",
    ),
    "given by keyword": (
        """
vae.eval()
for x in loader:
    print(vae.encode(image=x).argmax(1).tolist())
""",
        "for x in loader:",
        "with torch.no_grad():",
    ),
}

LEFT = {
    "while the model trains": """
for x in loader:
    print(vae.encode(x).argmax(1).tolist())
""",
    "a loss of it is walked": """
vae.eval()
for x in loader:
    loss = vae.loss(x)
    print(loss.item())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gradients are switched off": """
vae.eval()
with torch.no_grad():
    for x in loader:
        print(vae.encode(x).argmax(1).tolist())
""",
    "nothing that could be a tensor goes in": """
vae.eval()
print(vae.sample(16).argmax(1).tolist())
print(vae.describe("layers").tolist())
""",
    "its result is dropped": """
vae.eval()
for x in loader:
    vae.remember(x)
""",
    "its result goes where it can be kept": """
seen = make("memory")
vae.eval()
for x in loader:
    seen.latest = vae.encode(x)
    print(seen.latest.argmax(1).tolist())
""",
    "gradients are read beside it": """
vae.eval()
for x in loader:
    x.requires_grad_()
    z = vae.encode(x)
    vae.attribute(z)
    print(z.argmax(1).tolist(), x.grad)
""",
    "a method that is known to record nothing": """
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("gpt2")
model.eval()
for ids in loader:
    print(model.generate(ids).argmax(1).tolist())
""",
    "in a function that a no_grad runs": """
def score(batches):
    vae.eval()
    return [vae.encode(x).argmax(1).tolist() for x in batches]

with torch.no_grad():
    print(score(loader))
""",
    "its model has no mode": """
other = make("vae")
for x in loader:
    print(other.encode(x).argmax(1).tolist())
""",
}


@pytest.fixture(scope="module", name="told")
def _told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    programs = {name: text for name, (text, *_) in FOUND.items()} | LEFT
    return told_of(tmp_path_factory.mktemp("unseen"), "grad-in-evaluation", HEAD, programs)


@pytest.mark.parametrize("name", FOUND)
def test_it_is_likely(told: dict[str, Told], name: str) -> None:
    _, line, header = FOUND[name]
    assert told[name].lines == [line]
    assert told[name].written[0] == header


@pytest.mark.parametrize("name", LEFT)
def test_it_is_left(told: dict[str, Told], name: str) -> None:
    assert told[name] == Told([], [])
