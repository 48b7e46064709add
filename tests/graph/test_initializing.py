"""Loops that give parameters their first values: modules that are alike take one turn, all others their own."""

from __future__ import annotations

import textwrap

import pytest

from codemods.graph.model.kinds import Altered
from tests.graph.tools import run

MODEL = """
    import math
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 8, 3)
            self.rest = nn.Sequential({rest})
            for m in self.modules():
{body}
        def forward(self, t):
            return self.rest(self.first(t))
    n = Net()
"""
LAYERS = "nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)"


def spent(body: str, times: int) -> int:
    return run(MODEL.format(rest=", ".join([LAYERS] * times), body=textwrap.indent(body, " " * 16))).machine.run.spent


def grows(body: str) -> bool:
    """Whether each module more takes a turn more."""
    nothing = spent("pass", 8) - spent("pass", 2)
    return spent(body, 8) - spent(body, 2) > nothing + 12


ALIKE = {
    "nn.init": "if isinstance(m, nn.Conv2d):\n    nn.init.kaiming_normal_(m.weight)\n"
    "elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):\n    nn.init.constant_(m.weight, 1)",
    "by hand": "if isinstance(m, nn.Conv2d):\n    n = m.kernel_size[0] * m.out_channels\n"
    "    m.weight.data.normal_(0, math.sqrt(2. / n))\n    if m.bias is not None:\n        m.bias.data.zero_()",
    "sizes": "if hasattr(m, 'weight'):\n    n = m.weight.size(0)\n    m.weight.data.uniform_(-n, n)",
}
TOLD_APART = {
    "frozen": "if isinstance(m, nn.Conv2d):\n    m.weight.requires_grad = False",
    "by a method": "m.requires_grad_(False)",
    "kept": "kept = kept + [m] if 'kept' in dir() else [m]",
    "counted": "i = i + 1 if hasattr(m, 'i') else 0",
    "asked for later": "if isinstance(m, nn.Conv2d):\n    if m is self.first:\n        first = 1\n"
    "    if first:\n        nn.init.zeros_(m.weight)",
    "own function": "look(m)",
    "a method of another": "if isinstance(m, nn.Conv2d):\n    self.first.weight.data.normal_(look(m))",
}


@pytest.mark.parametrize("case", ALIKE)
def test_modules_that_are_alike_take_one_turn(case: str) -> None:
    assert not grows(ALIKE[case])


@pytest.mark.parametrize("case", TOLD_APART)
def test_what_tells_modules_apart_takes_a_turn_for_each(case: str) -> None:
    assert grows(TOLD_APART[case])


def test_modules_of_another_look_have_their_own_turn() -> None:
    body = "nn.init.zeros_(m.weight)"
    rest = "nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 8), nn.BatchNorm2d(8)"
    found = run(MODEL.format(rest=rest, body=textwrap.indent(body, " " * 16)))
    leaves = {a.value.node.label for a in found.trace.alterations if a.how is Altered.VALUES and a.value.node}
    assert leaves == {"Conv2d", "BatchNorm2d", "Linear"}


def test_what_is_bound_after_the_loop_is_the_last_module() -> None:
    code = """
        layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)])
        for m in layers.modules():
            if isinstance(m, nn.Linear):
                nn.init.zeros_(m.weight)
        loss = m(x).sum()
        first = layers[0](x).sum()
        last = layers[2](x).sum()
    """
    found = run(code)

    def leaves(name: str) -> set[int]:
        return {node.birth for root in found.nodes(name) for node in root.ancestors() if node.leaf}

    assert leaves("loss") == leaves("last") != leaves("first")
