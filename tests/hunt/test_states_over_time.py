"""A state that several forwards of one step hand on, and that the next step takes up: where it is cut, no step learns
otherwise than it did. Spiking networks and cells of one's own look like this."""

from __future__ import annotations

import itertools
from textwrap import dedent, indent

import pytest

from tests.hunt.checking import HARMLESS, check

#: How the state is brought up to date, from itself and from what the layer gives.
UPDATES = (
    "0.8 * {s} + cur",
    "torch.tanh({s} + cur)",
    "torch.lerp({s}, cur, 0.5)",
    "torch.maximum({s}, cur)",
    "torch.cat([{s}[:, 1:], cur[:, :1]], 1)",
)

MODULE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        {made}

    def bring(self, cur):
        {state} = {update}

    def forward(self, x):
        {first}
        {again}
        return torch.sigmoid({state})

m = M()
"""
GLOBAL = """
m = nn.Linear(3, 3)
mem = torch.zeros(4, 3)

def run(x):
    global mem
    cur = m(x)
    mem = {update}
    return torch.sigmoid(mem)
"""


def module(
    state: str, made: str, first: str = "cur = self.fc(x)", again: str = "{state} = {update}"
) -> tuple[str, str]:
    text = MODULE.replace("{again}", again).replace("{first}", first).replace("{made}", made)
    return state, text.replace("{state}", state) + "run = m\n"


HOMES = {
    "an attribute": module("self.mem", "self.mem = torch.zeros(4, 3)"),
    "an attribute made when it is needed": module(
        "self.mem",
        "self.mem = None",
        "cur = self.fc(x); self.mem = torch.zeros_like(cur) if self.mem is None else self.mem",
    ),
    "a buffer": module("self.mem", 'self.register_buffer("mem", torch.zeros(4, 3))'),
    "an element": module("self.mem[0]", "self.mem = [torch.zeros(4, 3)]"),
    "a value of a dict": module('self.mem["h"]', 'self.mem = {"h": torch.zeros(4, 3)}'),
    "a method": module("self.mem", "self.mem = torch.zeros(4, 3)", again="self.bring(cur)"),
    "turns of the forward": module(
        "self.mem",
        "self.mem = torch.zeros(4, 3)",
        "cur = self.fc(x)\n        for _ in range(2):",
        "    {state} = {update}",
    ),
    "what is taken off again": module(
        "self.mem",
        "self.mem = torch.zeros(4, 3)",
        again="{state} = {update}\n        {state} = {state} - {state}.sigmoid()",
    ),
    "what is taken off again of a number": module(
        "self.mem", "self.mem = 0.0", again="{state} = {update}\n        {state} = 0.5 * {state} + cur"
    ),
    "what a method takes off again": module(
        "self.mem", "self.mem = torch.zeros(4, 3)", again="{state} = {update}\n        self.bring(-{state}.sigmoid())"
    ),
    "what is taken off before": module(
        "self.mem",
        "self.mem = torch.zeros(4, 3)",
        again="{state} = {state} - {state}.sigmoid()\n        {state} = {update}",
    ),
    "a global": ("mem", GLOBAL),
}

LOOPS = {
    "time steps": "out = 0\nfor _ in range(4):\n    out = out + run(torch.randn(4, 3))",
    "time steps, listed": "outs = []\nfor _ in range(3):\n    outs.append(run(torch.randn(4, 3)))\nout = sum(outs)",
    "the last of some": "for _ in range(4):\n    out = run(torch.randn(4, 3))",
    "two calls": "out = run(torch.randn(4, 3))\nout = out + run(torch.randn(4, 3))",
    "one call": "out = run(torch.randn(4, 3))",
    "a comprehension": "out = sum([run(x) for x in torch.randn(3, 4, 3)])",
}

STEPS = """
opt = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(3):
{loop}
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""


def program(home: str, update: str, loop: str) -> str:
    state, text = HOMES[home]
    whole = text.replace("{update}", update.replace("{s}", state))
    head = "import torch\nfrom torch import nn\n\ntorch.manual_seed(0)\n"
    return head + dedent(whole) + STEPS.replace("{loop}", indent(LOOPS[loop], "    "))


@pytest.mark.slow
@pytest.mark.parametrize("home", HOMES)
def test_it_is_cut_where_no_step_learns_otherwise(home: str) -> None:
    rewritten = 0
    for update, loop in itertools.product(UPDATES, LOOPS):
        text = program(home, update, loop)
        verdict = check({"main.py": text})
        rewritten += verdict.after is not None
        broken = [one for one in verdict.violations if one.kind not in HARMLESS]
        assert broken == [], text
    # states under a key are not followed that far
    assert rewritten or "[" in HOMES[home][0]


@pytest.mark.parametrize("loop", ["time steps", "two calls"])
def test_a_membrane_is_cut_behind_the_step(loop: str) -> None:
    verdict = check({"main.py": program("an attribute", UPDATES[0], loop)})
    assert verdict.after is not None
    assert "m.mem = m.mem.detach()" in verdict.after["main.py"]
    assert "self.mem.detach()" not in verdict.after["main.py"]
    assert verdict.violations == []


@pytest.mark.parametrize("loop", ["time steps", "a comprehension"])
def test_a_membrane_that_fires_is_cut_behind_the_step(loop: str) -> None:
    # the statement that stores it last reads another's value, and what it stores goes on within the step
    verdict = check({"main.py": program("what is taken off again", UPDATES[0], loop)})
    assert verdict.after is not None
    assert "m.mem = m.mem.detach()" in verdict.after["main.py"]
    assert "self.mem.detach()" not in verdict.after["main.py"]
    assert verdict.violations == []


def test_a_mean_of_one_forward_a_step_is_cut_where_it_is_read() -> None:
    verdict = check({"main.py": program("an attribute", UPDATES[0], "one call")})
    assert verdict.after is not None
    assert "0.8 * self.mem.detach() + cur" in verdict.after["main.py"]
    assert verdict.violations == []
