"""A program that compiles nothing is spared the import of torch._dynamo; others find it as torch made it."""

from __future__ import annotations

import pytest

from tests.verify.probe.tools import plain, probe

pytestmark = pytest.mark.slow

TRAINS = """
import sys
import torch
from torch.optim.lr_scheduler import StepLR
torch.manual_seed(0)
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.LBFGS):
    net = torch.nn.Linear(3, 1)
    optimizer = kind(net.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, 1, 0.5)
    def closure():
        optimizer.zero_grad()
        loss = (net(torch.ones(2, 3)) - 1).pow(2).sum()
        loss.backward()
        return loss
    for _ in range(2):
        loss = optimizer.step(closure)
        scheduler.step()
    optimizer.load_state_dict(optimizer.state_dict())
    print(loss.item(), net.weight.tolist(), torch.is_grad_enabled())
print(sorted(torch.optim.Optimizer.zero_grad.__wrapped__.__dict__), torch.compiler.is_compiling())
"""

COMPILES = """
import sys
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.zero_grad()
net(torch.ones(2, 3)).sum().backward()
optimizer.step()
print("torch._dynamo" in sys.modules, file=sys.stderr)
torch._dynamo.reset()
import torch._dynamo.config
compiled = torch.compile(net, backend="eager")
for _ in range(2):
    optimizer.zero_grad()
    compiled(torch.ones(2, 3)).sum().backward()
    optimizer.step()
disabled = torch.optim.Optimizer.zero_grad.__wrapped__.__dynamo_disable
print(disabled.__module__, torch._disable_dynamo.__module__, torch._compile._disable_dynamo is torch._disable_dynamo)
print(torch._dynamo.config is torch._dynamo.config, sys.modules["torch._dynamo"] is torch._dynamo)
torch._dynamo.graph_break()
print(torch._dynamo.utils.counters["frames"]["total"] > 0)
"""


def test_training_does_without_and_computes_the_same() -> None:
    text = f"{TRAINS}\nprint('torch._dynamo' in sys.modules, 'torch._inductor' in sys.modules, file=sys.stderr)\n"
    with_probe, without = probe(text, deterministic=True)[1], plain(text)
    assert with_probe.stderr == "False False\n"
    assert without.stderr.startswith("True")
    assert with_probe.stdout.replace("['__dynamo_disable']", "[]") == without.stdout.replace(
        "['__dynamo_disable']", "[]"
    )


def test_who_compiles_finds_all_as_torch_made_it() -> None:
    with_probe, without = probe(COMPILES)[1], plain(COMPILES)
    assert with_probe.stderr == "False\n"
    assert without.returncode == 0, without.stderr
    assert with_probe.stdout == without.stdout


def test_the_compiler_is_asked_to_be_deterministic_once_it_is_there() -> None:
    _, done = probe("import torch, torch._inductor.config as c\nprint(c.deterministic)\n", deterministic=True)
    assert done.stdout == "True\n"
