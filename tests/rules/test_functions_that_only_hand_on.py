"""Functions that nobody in the tree calls, and that only hand what they get to one that a script calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found, sited

PROGRAM = """\
import functools
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class Trainer:
    def __init__(self, rate):
        self.rate = rate
        self.model = None

{method}

    def train(self, model, loader, noisy=False):
        opt = torch.optim.SGD(model.parameters(), lr=self.rate)
        for x in loader:
            loss = model(x + 0.1 if noisy else x).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()


{function}
if __name__ == "__main__":
    {script}
"""

SCRIPT = "Trainer(0.1).train(Net(), [torch.randn(2, 4) for _ in range(4)])"
FLAG = "loss.backward(retain_graph=True)"


def program(*method: str, function: str = "", script: str = SCRIPT) -> str:
    lines = "\n".join(f"    {line}" for line in method)
    return PROGRAM.replace("{method}", lines).replace("{function}", function).replace("{script}", script)


FOUND = {
    "with a setting": program("def plain(self, model, loader):", "    self.train(model, loader, False)"),
    "by name": program("def noisy(self, model, loader):", "    return self.train(model, loader=loader, noisy=True)"),
    "all that it gets": program("def run(self, *args, **options):", "    return self.train(*args, **options)"),
    "told what it does": program(
        "def plain(self, model, loader):", '    """Without noise."""', "    self.train(model, loader)"
    ),
    "one hands to another one": program(
        "def plain(self, model, loader):", "    self.train(model, loader)", "",
        "def go(self, model, loader):", "    self.plain(model, loader)",
    ),
}  # fmt: skip

NOT_PROVEN = {
    "nothing else calls that one": program(
        "def plain(self, model, loader):", "    self.train(model, loader)", script="print(Trainer(0.1))"
    ),
    "a model from elsewhere": program(
        "def plain(self, loader):", "    import models", "    self.train(models.make(), loader)"
    ),
    "a model made in the call": program(
        "def plain(self, loader):", "    self.train(torch.load('model.pt'), loader)"
    ),
    "what lies on the object": program("def plain(self, loader):", "    self.train(self.model, loader)"),
    "twice": program(
        "def twice(self, model, loader):", "    self.train(model, loader)", "    self.train(model, loader)"
    ),
    "it does more": program(
        "def plain(self, model, loader):", "    model = model.whole()", "    self.train(model, loader)"
    ),
    "decorated": program(
        "@functools.lru_cache", "def plain(self, model, loader):", "    self.train(model, loader)"
    ),
    "a trainer that it makes": program(
        "def nothing(self):", "    pass", function="def go(model, loader):\n    Trainer(0.2).train(model, loader)\n\n"
    ),
}  # fmt: skip

told, test_found, _ = sited(
    "surplus-retain-graph", "", {name: (text, FLAG, "loss.backward()") for name, text in FOUND.items()}, {}
)


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_others_are_run_for_themselves(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, "surplus-retain-graph", NOT_PROVEN[name])
    assert findings
    assert all(finding.promise is Promise.ADVICE for finding in findings)


def test_what_a_script_calls_twice_over_one_graph_is_needed(tmp_path: Path) -> None:
    source = """
import torch
from torch import nn

net = nn.Linear(4, 4)


def back(loss):
    loss.backward(retain_graph=True)


def twice(loss):
    back(loss)
    back(loss)


def once(loss):
    back(loss)


back(net(torch.randn(2, 4)).pow(2).sum())
"""
    assert found(tmp_path, "surplus-retain-graph", source) == []
