"""Models out of a table that their files fill when they are imported: any of them may be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.graph.tools import REGISTRY
from tests.rules.tools import found

RULE = "surplus-retain-graph"

PLAIN = """
from torch import nn
from registry import register

@register("plain")
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)
"""

KEEPING = """
from torch import nn
from registry import register

@register("keeping")
class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 1)
        self.last = 0.0

    def forward(self, x):
        self.last = self.body(nn.functional.pad(x, (0, 1))) + self.last * 2
        return self.last
"""

TRAIN = """
import sys
import torch
import models
from registry import MODELS

model = MODELS[sys.argv[1]]()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(9):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize(
    "files",
    [
        {"models": PLAIN},
        {"models": "from registry import register\nimport plain", "plain": PLAIN},
        # nobody imports the other one
        {"models": PLAIN, "keeping": KEEPING},
    ],
)
def test_the_flag_is_surplus_for_all_that_are_there(tmp_path: Path, files: dict[str, str]) -> None:
    findings = found(tmp_path, RULE, TRAIN, registry=REGISTRY, **files)
    assert [f.promise for f in findings] == [Promise.EXACT]


@pytest.mark.parametrize(
    "files",
    [
        {"models": "import registry, plain, keeping", "plain": PLAIN, "keeping": KEEPING},
        {"models": "from plain import Plain\nimport keeping\nplain = Plain()", "plain": PLAIN, "keeping": KEEPING},
        {"models": "from registry import MODELS\nimport keeping", "keeping": KEEPING},
    ],
)
def test_one_of_them_may_need_it(tmp_path: Path, files: dict[str, str]) -> None:
    findings = found(tmp_path, RULE, TRAIN, registry=REGISTRY, **files)
    assert not [f for f in findings if f.promise is not Promise.ADVICE]
