"""What runs at another time than where it stands (behind ``yield``, when a stack is closed) may walk a graph again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

START = """\
import contextlib
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""

MEASURED = """
def measured(loss):
    print(torch.autograd.grad(loss, net.weight)[0].norm().item())
"""

NEEDED = {
    "code behind the yield of a context manager": """
@contextlib.contextmanager
def watched(x):
    loss = net(x).pow(2).mean()
    yield loss
    measured(loss)

for step in range(3):
    with watched(torch.randn(4, 3)) as loss:
        opt.zero_grad()
        loss.backward(retain_graph=True)
    opt.step()
""",
    "the end of a context manager": """
@contextlib.contextmanager
def watched(loss):
    try:
        yield
    finally:
        measured(loss)

for step in range(3):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    with watched(loss):
        opt.zero_grad()
        loss.backward(retain_graph=True)
    opt.step()
""",
    "a generator that is asked again": """
def losses():
    for step in range(3):
        loss = net(torch.randn(4, 3)).pow(2).mean()
        yield loss
        measured(loss)

for loss in losses():
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
    "a callback of an exit stack": """
for step in range(3):
    with contextlib.ExitStack() as stack:
        loss = net(torch.randn(4, 3)).pow(2).mean()
        stack.callback(measured, loss)
        opt.zero_grad()
        loss.backward(retain_graph=True)
    opt.step()
""",
    "a lambda of an exit stack": """
for step in range(3):
    with contextlib.ExitStack() as stack:
        loss = net(torch.randn(4, 3)).pow(2).mean()
        stack.callback(lambda last=loss: measured(last))
        opt.zero_grad()
        loss.backward(retain_graph=True)
    opt.step()
""",
}

SURPLUS = {
    "a loop that yields numbers": """
def train():
    for step in range(3):
        loss = net(torch.randn(4, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
        yield loss.item()

for value in train():
    print(value)
""",
    "a step around a backward": """
@contextlib.contextmanager
def step():
    opt.zero_grad()
    yield
    opt.step()

for turn in range(3):
    with step():
        loss = net(torch.randn(4, 3)).pow(2).mean()
        loss.backward(retain_graph=True)
""",
    "batches that are yielded": """
def batches():
    for turn in range(3):
        yield torch.randn(4, 3)

for x in batches():
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
}


@pytest.mark.parametrize("program", NEEDED.values(), ids=NEEDED)
def test_the_flag_stays(tmp_path: Path, program: str) -> None:
    assert [f for f in found(tmp_path, "surplus-retain-graph", START, MEASURED, program) if f.edits] == []


@pytest.mark.parametrize("program", SURPLUS.values(), ids=SURPLUS)
def test_the_flag_goes(tmp_path: Path, program: str) -> None:
    assert len([f for f in found(tmp_path, "surplus-retain-graph", START, program) if f.edits]) == 1


def test_what_is_sent_to_a_generator_may_train(tmp_path: Path) -> None:
    program = """
def trainer():
    while True:
        loss = yield
        opt.zero_grad()
        loss.backward()
        opt.step()

running = trainer()
next(running)
for step in range(4):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    running.send(loss)
    print(loss.item())
"""
    assert [f for f in found(tmp_path, "grad-in-evaluation", START, program) if f.edits] == []


def test_a_window_whose_batches_clear_gradients_stays(tmp_path: Path) -> None:
    program = """
def batches():
    for turn in range(3):
        yield torch.randn(4, 3)
        opt.zero_grad()

for step in range(2):
    total = 0
    for x in batches():
        total = total + net(x).pow(2).mean()
    total.backward()
    opt.step()
"""
    assert [f for f in found(tmp_path, "summed-micro-batches", START, program) if f.edits] == []


@pytest.mark.parametrize("begins", ["asyncio.create_task(logged(loss))", "logged(loss)"])
def test_a_task_runs_later(tmp_path: Path, begins: str) -> None:
    program = f"""
import asyncio

async def logged(loss):
    await asyncio.sleep(0)
    measured(loss)

async def main():
    for step in range(3):
        loss = net(torch.randn(4, 3)).pow(2).mean()
        task = {begins}
        opt.zero_grad()
        loss.backward(retain_graph=True)
        await task
        opt.step()

asyncio.run(main())
"""
    assert [f for f in found(tmp_path, "surplus-retain-graph", START, MEASURED, program) if f.edits] == []


def test_no_decorator_is_left_before_the_coroutine_runs(tmp_path: Path) -> None:
    program = """
import asyncio

async def score(x):
    return net(x).mean().item()

for step in range(3):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(asyncio.run(score(torch.ones(2, 3))))
"""
    edits = [edit for f in found(tmp_path, "grad-in-evaluation", START, program) for _, edit in f.edits]
    assert not any(type(edit).__name__ == "AddDecorator" for edit in edits)
