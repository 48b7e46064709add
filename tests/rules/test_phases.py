"""Loops over phases: what trains where a condition holds and evaluates elsewhere records a graph only there."""

from __future__ import annotations

import pytest

from tests.rules.tools import Told, told_of

HEAD = """\
import sys
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loaders = {phase: [(torch.randn(9, 4), torch.randint(2, (9,))) for _ in range(3)] for phase in ("train", "val")}
"""

FOUND = {
    "a loop over phases": (
        """
for epoch in range(2):
    for phase in ["train", "val"]:
        net.train(phase == "train")
        running = 0.0
        for x, y in loaders[phase]:
            opt.zero_grad()
            out = net(x)
            loss = criterion(out, y)
            if phase == "train":
                loss.backward()
                opt.step()
            running += loss.item()
        print(phase, running)
""",
        "out = net(x)",
        'with torch.set_grad_enabled(phase == "train"):',
        "out = net(x)",
        "loss = criterion(out, y)",
    ),
    "a function of a phase": (
        """
def run(phase):
    training = phase == "train"
    net.train(training)
    running = 0.0
    for x, y in loaders[phase]:
        loss = criterion(net(x), y)
        if training:
            opt.zero_grad()
            loss.backward()
            opt.step()
        running += loss.item()
    return running

for epoch in range(2):
    run("train")
    print(run("val"))
""",
        "loss = criterion(net(x), y)",
        "with torch.set_grad_enabled(bool(training)):",
        "loss = criterion(net(x), y)",
    ),
    "a flag with a default": (
        """
def run(loader, train=True):
    for x, y in loader:
        loss = criterion(net(x), y)
        if not train:
            print(loss.item())
        else:
            opt.zero_grad()
            loss.backward()
            opt.step()

run(loaders["train"])
run(loaders["val"], train=False)
""",
        "loss = criterion(net(x), y)",
        "with torch.set_grad_enabled(bool(train)):",
        "loss = criterion(net(x), y)",
    ),
    "the backward beside an evaluation": (
        """
for phase in ("train", "val"):
    for x, y in loaders[phase]:
        loss = criterion(net(x), y)
        if phase == "val":
            print(loss.item())
        else:
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
        "loss = criterion(net(x), y)",
        'with torch.set_grad_enabled(not (phase == "val")):',
        "loss = criterion(net(x), y)",
    ),
    "the forward in a helper": (
        """
def measure(x, y):
    return criterion(net(x), y)

for phase in ("train", "val"):
    for x, y in loaders[phase]:
        loss = measure(x, y)
        print(loss.item())
        if phase == "train":
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
        "loss = measure(x, y)",
        'with torch.set_grad_enabled(phase == "train"):',
        "loss = measure(x, y)",
        "print(loss.item())",
    ),
}

LEFT = {
    "the author has switched": """
for phase in ("train", "val"):
    for x, y in loaders[phase]:
        with torch.set_grad_enabled(phase == "train"):
            loss = criterion(net(x), y)
        if phase == "train":
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss.item())
""",
    "it trains in both phases": """
for phase in ("train", "tune"):
    for x, y in loaders["train"]:
        loss = criterion(net(x), y)
        if phase in ("train", "tune"):
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
    "losses of some turns are walked in others": """
total = 0
for i, (x, y) in enumerate(loaders["train"]):
    total = total + criterion(net(x), y)
    last = i == 2
    if last:
        opt.zero_grad()
        total.backward()
        opt.step()
""",
    "another backward comes to it": """
for phase in ("train", "val"):
    losses = []
    for x, y in loaders[phase]:
        loss = criterion(net(x), y)
        losses.append(loss)
        if phase == "train":
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
    sum(losses).backward()
""",
    "what is asked is bound between": """
for phase in ("train", "val"):
    for x, y in loaders[phase]:
        loss = criterion(net(x), y)
        training = phase == "train"
        if training:
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss.item())
""",
    "what is asked does something": """
def training(phase):
    print(phase)
    return phase == "train"

for phase in ("train", "val"):
    for x, y in loaders[phase]:
        loss = criterion(net(x), y)
        if training(phase):
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss.item())
""",
    "nobody says what the phase is": """
phase = sys.argv[1]
for x, y in loaders[phase]:
    loss = criterion(net(x), y)
    if phase == "train":
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
""",
    "gradients are taken of the input": """
for phase in ("train", "val"):
    for x, y in loaders[phase]:
        x.requires_grad_()
        loss = criterion(net(x), y)
        slope = torch.autograd.grad(loss, x, retain_graph=True)[0]
        if phase == "train":
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(slope.sum().item())
""",
}


@pytest.fixture(scope="module", name="told")
def _told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    programs = {name: text for name, (text, *_) in FOUND.items()} | LEFT
    return told_of(tmp_path_factory.mktemp("phases"), "grad-in-evaluation", HEAD, programs)


@pytest.mark.parametrize("name", FOUND)
def test_its_forward_is_likely_to_need_no_graph(told: dict[str, Told], name: str) -> None:
    _, line, *written = FOUND[name]
    assert told[name] == Told([line], written)


@pytest.mark.parametrize("name", LEFT)
def test_it_is_left(told: dict[str, Told], name: str) -> None:
    assert told[name] == Told([], [])
