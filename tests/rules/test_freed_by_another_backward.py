"""A discriminator's loss after the generator's backward, and before its step: it raises, and what was meant the reader
has to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "undetached-generator-output"

PROGRAM = """
import sys
import torch
from torch import nn

late = len(sys.argv) > 1
net_g, net_d = nn.Linear(3, 3), nn.Linear(3, 1)
opt_g = {optimizers[0]}
opt_d = {optimizers[1]}
for step in range(9):
    real = torch.randn(4, 3)
    output = net_g(real).exp()
    {first}
    {between}
    {second}
    {end}
"""

GENERATOR = "loss_g = (output - real).pow(2).mean(); loss_g.backward()"
CRITIC = "loss_d = net_d(output).exp().mean() - net_d(real).mean(); loss_d.backward()"
STEPS = "opt_d.step(); opt_d.zero_grad(); opt_g.step(); opt_g.zero_grad()"
TWO = ("torch.optim.Adam(net_g.parameters())", "torch.optim.Adam(net_d.parameters())")


def asked(tmp_path: Path, **given: object) -> list[Promise | None]:
    slots = {"optimizers": TWO, "first": GENERATOR, "between": "pass", "second": CRITIC, "end": STEPS}
    return [f.promise for f in found(tmp_path, RULE, PROGRAM.format(**{**slots, **given}))]


RAISING = {
    "plainly": {},
    "by another name": {"between": "fake = output", "second": CRITIC.replace("output", "fake")},
    "under a condition": {"second": f"if late:\n        {CRITIC}"},
    "where the generator steps now and then": {
        "end": "opt_d.step()\n    if step % 4 == 0: opt_g.step(); opt_g.zero_grad()"
    },
    "where the first loss takes the discriminator, too": {
        "first": "loss_g = -net_d(output).exp().mean(); loss_g.backward()"
    },
}


@pytest.mark.parametrize("name", RAISING)
def test_a_loss_over_what_was_freed_is_told(tmp_path: Path, name: str) -> None:
    assert asked(tmp_path, **RAISING[name]) == [Promise.ADVICE]


RUNNING = {
    "kept": {"first": GENERATOR.replace("backward()", "backward(retain_graph=True)")},
    "kept, perhaps": {"first": GENERATOR.replace("backward()", "backward(retain_graph=late)")},
    "detached": {"second": CRITIC.replace("output", "output.detach()")},
    "made anew": {"between": "output = net_g(real).exp()"},
    "made anew, perhaps": {"between": "if late: output = net_g(real).exp()"},
    "back-propagated as a sum": {
        "first": GENERATOR.replace("loss_g.backward()", "pass"),
        "second": CRITIC.replace("loss_d.backward()", "(loss_g + loss_d).backward()"),
    },
    "without gradients": {"second": CRITIC.replace("net_d(output)", "net_d(output.data)")},
    "nothing is saved": {
        "first": "loss_g = output.sum(); loss_g.backward()",
        "between": "pass",
        "second": "loss_d = net_d(real).mean(); loss_d.backward()",
    },
    "either of them": {
        "first": f"if late:\n        {GENERATOR}",
        "second": f"if not late:\n        {CRITIC}",
    },
    "trained by one optimizer": {
        "optimizers": ("torch.optim.Adam([*net_g.parameters(), *net_d.parameters()])", TWO[1]),
    },
    "trained by one that cannot be seen": {"optimizers": (TWO[0], "sys.modules['mine'].make(net_g, net_d)")},
    "the generator is trained by nobody": {"end": "opt_d.step(); opt_d.zero_grad()"},
}


@pytest.mark.parametrize("name", RUNNING)
def test_what_runs_or_may_be_meant_is_left(tmp_path: Path, name: str) -> None:
    assert asked(tmp_path, **RUNNING[name]) == []
