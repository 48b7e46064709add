"""The cache is emptied behind evaluation passes, if somebody asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import added, analysed, found, lines, mended

RULE = "empty-cache"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Linear(4, 1).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [(torch.randn(5, 4), torch.randn(5, 1)) for _ in range(9)]


def learn():
    for x, y in data:
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()


@torch.no_grad()
def validate(batches):
    total = 0.0
    for x, y in batches:
        total += F.mse_loss(net(x), y).item()
    return total
"""

HITS = {
    "behind the call": (
        """
        for epoch in range(3):
            learn()
            score = validate(data)
        """,
        "score = validate(data)",
    ),
    "in its if": (
        """
        for epoch in range(3):
            learn()
            if epoch % 2:
                print(validate(data))
        """,
        "print(validate(data))",
    ),
    "behind the block": (
        """
        for epoch in range(3):
            learn()
            net.eval()
            with torch.no_grad():
                for x, y in data:
                    print(F.mse_loss(net(x), y).item())
            net.train()
        """,
        "print(F.mse_loss(net(x), y).item())",
    ),
    "after training": (
        """
        learn()
        validate(data)
        """,
        "validate(data)",
    ),
    "within a return": (
        """
        def measured():
            return validate(data)

        for epoch in range(3):
            learn()
            print(measured())
        """,
        "print(measured())",
    ),
}


@pytest.mark.parametrize("name", HITS)
def test_the_cache_is_emptied_behind_the_pass(tmp_path: Path, name: str) -> None:
    body, before = HITS[name]
    findings = found(tmp_path, RULE, START, body)
    assert [(f.promise, f.opt_in) for f in findings] == [(Promise.BEHAVIOUR, True)]
    text = mended(tmp_path, findings)
    assert added((tmp_path / "train.py").read_text(), text) == ["torch.cuda.empty_cache()"]
    rows = [line.strip() for line in text.splitlines()]
    assert rows[rows.index("torch.cuda.empty_cache()") - 1] == before


def test_nobody_gets_it_unasked(tmp_path: Path) -> None:
    findings = analysed(tmp_path, Options(unsafe=True), START, HITS["behind the call"][0])
    assert RULE not in {f.rule for f in findings}


NOOPS = {
    "emptied already": """
        for epoch in range(3):
            learn()
            validate(data)
            torch.cuda.empty_cache()
        """,
    "emptied in the function": """
        def quiet():
            validate(data)
            torch.cuda.empty_cache()

        for epoch in range(3):
            learn()
            quiet()
        """,
    "only training": "learn()",
    "acting within the step": """
        for x, y in data:
            with torch.no_grad():
                for _ in range(3):
                    net(x)
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
        """,
    "unrolled targets in a step that somebody else calls": """
        def step(batch):
            with torch.no_grad():
                targets = [net(x) for x, y in batch]
                for x, y in batch:
                    targets.append(net(x))
            loss = sum(F.mse_loss(net(x), t) for (x, y), t in zip(batch, targets))
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "one forward is no pass": """
        for epoch in range(3):
            learn()
            with torch.no_grad():
                print(net(data[0][0]).mean())
        """,
    "a loop whose results are back-propagated": """
        for epoch in range(3):
            total = 0
            for x, y in data:
                total = total + F.mse_loss(net(x), y)
            opt.zero_grad()
            total.backward()
            opt.step()
        """,
}


@pytest.mark.parametrize("name", NOOPS)
def test_it_stays_as_it_is(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, NOOPS[name])) == []


def test_a_program_without_cuda_has_no_cache(tmp_path: Path) -> None:
    start = START.replace('"cuda" if torch.cuda.is_available() else "cpu"', '"cpu"')
    assert "cuda" not in start
    assert lines(found(tmp_path, RULE, start, HITS["behind the call"][0])) == []


def test_evaluation_alone_is_left(tmp_path: Path) -> None:
    assert lines(found(tmp_path, RULE, START, "print(validate(data))\n# loss.backward() elsewhere")) == []
