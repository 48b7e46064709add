"""Variables of a script, where code that cannot be seen has an object of the tree: nobody else reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found, sited

HEAD = """\
import sys
import torch
from torch import nn
from helpers import describe, later


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.kept = None

    def forward(self, x):
        return self.layer(x)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""

STEPS = """
for _ in range(4):
    loss = net(torch.randn(2, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""

FLAG = "loss.backward(retain_graph=True)"
GIVEN = "describe(net)\n"

AGAIN = """
class Again:
    def run(self):
        loss.backward()

later(Again())
"""

FOUND = {
    "only the loop reads it": GIVEN + STEPS,
    "functions have one of the same name": "def show(value):\n    print(value)\n\n"
    + GIVEN
    + STEPS
    + "show(loss.item())\n",
    "behind a guard": GIVEN + "if __name__ == '__main__':\n" + STEPS.replace("\n", "\n    ").rstrip() + "\n",
}

NOT_PROVEN = {
    "a method reads it that others may call": AGAIN + STEPS,
    "a function does": GIVEN + "def again():\n    loss.backward()\n\nlater(net, again)\n" + STEPS,
    "a lambda does": GIVEN + "later(net, lambda: loss.backward())\n" + STEPS,
    "all variables are handed over": GIVEN + STEPS + "    later(globals())\n",
    "all are handed over before": "later(net, globals())\n" + STEPS,
    "a text is run": GIVEN + STEPS + "    exec(sys.argv[1])\n",
    "its module is handed over": "later(net, sys.modules[__name__])\n" + STEPS,
    "the caller's frame is": "later(net, sys._getframe())\n" + STEPS,
    "it is put on the object": GIVEN + STEPS.replace("    opt.zero", "    net.kept = loss\n    opt.zero"),
}


told, test_found, _ = sited(
    "surplus-retain-graph",
    HEAD,
    {name: (text, FLAG, "loss.backward()") for name, text in FOUND.items()},
    {},
)


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_what_others_may_come_to_is_not_proven(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, "surplus-retain-graph", HEAD + NOT_PROVEN[name])
    assert all(finding.promise is Promise.ADVICE for finding in findings)
