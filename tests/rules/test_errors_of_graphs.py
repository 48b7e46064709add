"""Evaluations in a ``try`` that may catch the error which only a tensor with a graph raises."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

HEAD = """\
import torch
from torch import nn

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [(torch.randn(9, 4), torch.randn(9, 2)) for _ in range(3)]

for x, y in batches:
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()

"""

LIKELY = {
    "it is handled": """
def collect():
    net.eval()
    found = []
    for x, y in batches:
        out = net(x)
        try:
            found.append(out.numpy())
        except RuntimeError:
            found.append(out.detach().numpy())
    return found

print(collect())
""",
    "it is swallowed": """
def collect():
    net.eval()
    found = []
    for x, y in batches:
        try:
            found.append(net(x).numpy())
        except Exception as error:
            print("skipped", error)
    return found

print(collect())
""",
    "a caller swallows it": """
def predict(x):
    net.eval()
    return net(x).numpy()

for x, y in batches:
    try:
        print(predict(x))
    except RuntimeError:
        print("skipped")
""",
    "a context ends it": """
import contextlib

def tell():
    net.eval()
    for x, y in batches:
        with contextlib.suppress(RuntimeError):
            print(net(x).numpy())

tell()
""",
    "behind the block": """
def learn():
    for x, y in batches:
        nn.functional.mse_loss(net(x), y).backward()
    net.eval()
    out = net(x)
    print(out.argmax(1))
    try:
        print(out.numpy())
    except RuntimeError:
        print("skipped")

learn()
""",
    "in a script": """
net.eval()
for x, y in batches:
    out = net(x)
    try:
        print(out.numpy())
    except RuntimeError:
        print(out.detach().numpy())
""",
}

EXACT = {
    "it cannot come": """
def collect():
    net.eval()
    found = []
    for x, y in batches:
        try:
            found.append(net(x).argmax(1).numpy())
        except RuntimeError:
            print("skipped")
    return found

print(collect())
""",
    "another error": """
def collect():
    net.eval()
    found = []
    for x, y in batches:
        try:
            out = net(x)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            continue
        found.append(out.detach().numpy())
    return found

print(collect())
""",
    "an interrupt": """
def count():
    net.eval()
    right = 0
    try:
        for x, y in batches:
            right += (net(x).argmax(1) == y.argmax(1)).sum().item()
    except KeyboardInterrupt:
        print("stopped")
    return right

print(count())
""",
}


@pytest.mark.parametrize("name", [*LIKELY, *EXACT])
def test_an_error_that_would_not_come_is_for_a_run_to_decide(tmp_path: Path, name: str) -> None:
    (finding,) = found(tmp_path, "grad-in-evaluation", HEAD, (LIKELY | EXACT)[name])
    assert finding.edits
    assert (finding.promise, finding.likely) == (
        (Promise.ADVICE, Promise.EXACT) if name in LIKELY else (Promise.EXACT, None)
    )
