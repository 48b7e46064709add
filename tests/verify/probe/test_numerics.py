"""What a script computes is bit for bit the same with and without the probe."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.verify.probe.tools import forked, forked_plain, plain, probe

pytestmark = pytest.mark.slow

#: Each trains and leaves its parameters in a list called ``parameters``.
TRAININGS = {
    "transformer": """
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        net = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(16, 4))
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        for _ in range(8):
            optimizer.zero_grad()
            net(torch.randn(3, 5, 16)).square().mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        net.eval()
        with torch.no_grad():
            print(net(torch.ones(1, 5, 16)).sum().item().hex())
        parameters = list(net.parameters())
    """,
    "convolutions": """
        net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Dropout2d(0.3), nn.Flatten(),
                            nn.Linear(6 * 6 * 6, 5))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        for _ in range(8):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(torch.randn(4, 3, 8, 8)), torch.randint(0, 5, (4,)))
            loss.backward()
            optimizer.step()
            print(loss.item().hex(), random.random(), numpy.random.rand())
        parameters = [*net.parameters(), *net.buffers()]
    """,
    "recurrent": """
        net, head = nn.LSTM(4, 6, 2, dropout=0.2), nn.Linear(6, 1)
        parameters = [*net.parameters(), *head.parameters()]
        optimizer = torch.optim.RMSprop(parameters, lr=1e-2)
        state = None
        for _ in range(8):
            output, state = net(torch.randn(5, 3, 4), state)
            state = tuple(each.detach() for each in state)
            optimizer.zero_grad()
            head(output).square().mean().backward()
            optimizer.step()
    """,
    "second order": """
        net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(8):
            points = torch.randn(4, 3, requires_grad=True)
            (slopes,) = torch.autograd.grad(net(points).sum(), points, create_graph=True)
            optimizer.zero_grad()
            (slopes.norm(dim=1) - 1).square().mean().backward()
            optimizer.step()
        parameters = list(net.parameters())
    """,
    "checkpointed": """
        net = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.2), nn.GELU()) for _ in range(4))
        optimizer = torch.optim.Adagrad(net.parameters(), lr=0.1)
        for _ in range(8):
            x = torch.randn(4, 6, requires_grad=True)
            for i, block in enumerate(net):
                x = checkpoint(block, x, use_reentrant=i % 2 == 0)
            optimizer.zero_grad()
            x.square().mean().backward()
            optimizer.step()
        parameters = list(net.parameters())
    """,
    "closures": """
        net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
        optimizer = torch.optim.LBFGS(net.parameters(), lr=0.3, max_iter=4, line_search_fn="strong_wolfe")
        x, y = torch.randn(20, 4), torch.randn(20, 1)
        def closure():
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean()
            loss.backward()
            return loss
        for _ in range(6):
            optimizer.step(closure)
        parameters = list(net.parameters())
    """,
    "mixed precision": """
        net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, backoff_factor=2.0**-6)
        for _ in range(10):
            with torch.autocast("cpu", dtype=torch.float16):
                loss = net(torch.randn(8, 6)).square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        parameters = list(net.parameters())
    """,
    "by hand, sparse, complex, double": """
        table = nn.Embedding(20, 3, sparse=True)
        waves = nn.Parameter(torch.randn(4, dtype=torch.complex64))
        fine = nn.Parameter(torch.randn(3, dtype=torch.float64).t())
        optimizers = [torch.optim.SparseAdam(table.parameters()), torch.optim.SGD([waves, fine], lr=0.1)]
        for _ in range(8):
            loss = table(torch.randint(0, 20, (6,))).square().sum() + waves.abs().sum() + fine.exp().sum()
            loss.backward(retain_graph=True)
            torch.autograd.backward([loss, fine.sum()], inputs=[fine])
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        parameters = [table.weight, torch.view_as_real(waves), fine]
    """,
}
HEAD = """
import hashlib, random
import numpy, torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(4); random.seed(4); numpy.random.seed(4)
torch.set_num_threads(1)
"""
TAIL = """
for parameter in parameters:
    print([value.hex() for value in parameter.detach().double().flatten().tolist()])
print(torch.rand(3).tolist(), random.random(), numpy.random.rand())
"""


@pytest.mark.parametrize(
    ("name", "bare", "watched"),
    [*((name, forked_plain, forked) for name in TRAININGS), ("convolutions", plain, probe)],
    ids=[*TRAININGS, "convolutions from the start of the process"],
)
def test_parameters_are_the_same_bit_for_bit(name: str, bare: Any, watched: Any) -> None:
    text = HEAD + textwrap.dedent(TRAININGS[name]) + TAIL
    without = bare(text)
    record, with_probe = watched(
        text, steps=None, deterministic=True, threads=1, seed=7, watch={"train.py": [1, 2, 9999]}
    )
    assert without.returncode == 0, without.stderr
    assert with_probe.stdout == without.stdout
    assert len(record.steps) >= 6
    assert record.end == "completed"
    assert not [note for note in record.notes if "could not go on" in note]


def test_two_probed_runs_are_the_same() -> None:
    text = HEAD.replace("(4)", "()").replace("manual_seed()", "seed()") + textwrap.dedent(TRAININGS["convolutions"])
    runs = [probe(text, seed=5, steps=6)[0] for _ in range(2)]
    series = [
        (
            [backward.losses for backward in run.backwards],
            [backward.rng for backward in run.backwards],
            [step.digest for step in run.steps],
            [(step.params, step.grads, step.rates, step.rng, step.buffers) for step in run.steps],
            run.outputs,
            run.state,
        )
        for run in runs
    ]
    assert len(runs[0].steps) == 6
    assert series[0] == series[1]
    other = probe(text, seed=6, steps=6)[0]
    assert [step.digest for step in other.steps] != series[0][2]
