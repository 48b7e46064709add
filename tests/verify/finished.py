"""Scripts that come to their end, and leave things to turns, errors and readers that a short run does not have."""

from __future__ import annotations

_HEAD = """\
import collections, copy, csv, dataclasses, json, os, pickle, subprocess, sys
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
"""

#: All of it in a function, whose variables are gone when the program ends.
INSIDE = (
    _HEAD
    + """
@dataclasses.dataclass
class Options:
    rate: float = 0.1
    size: int = 6


class Mean:
    __slots__ = ("total", "count")

    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value, count):
        self.total += value * count
        self.count += count


class Timer:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return False


def validate(net, held):
    mean = Mean()
    with torch.no_grad():
        for x, y in held:
            mean.add((net(x).argmax(1) == y).double().mean().item(), len(x))
    return mean


def main(epochs):
    options = Options()
    net = nn.Linear(4, options.size)
    optimizer = torch.optim.Adam(net.parameters(), lr=options.rate)
    held = [(torch.randn(9, 4), torch.randint(0, options.size, (9,)))]
    rates = [options.rate] * epochs + [options.rate / 5] * 30
    best = 0.0
    kept = copy.deepcopy(net.state_dict())
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = rates[epoch]
        for _ in range(2):
            x = torch.randn(8, 4)
            y = torch.randint(0, options.size, (8,))
            with Timer():
                loss = F.cross_entropy(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        mean = validate(net, held)
        if mean.total >= best:
            best = mean.total
            kept = copy.deepcopy(net.state_dict())
    net.load_state_dict(kept)


if __name__ == "__main__":
    main(4)
"""
)

#: Files whose readers are elsewhere, and a program that is started.
READERS = (
    _HEAD
    + """
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
settings = dict(os.environ, MODE="fast")
rows = []
for step in range(6):
    loss = net(torch.randn(4, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rows.append((step, loss.item()))
os.makedirs("out", exist_ok=True)
np.savez("out/weights.npz", w=net.weight.detach().numpy())
with open("out/rows.pkl", "wb") as file:
    pickle.dump(rows, file)
torch.save({"w": net.weight.detach()}, "out/net.pt")
subprocess.run([sys.executable, "-S", "-c", "pass"], cwd="out", env=settings, check=True)
"""
)

#: Statements in blocks that come out one way.
BLOCKS = (
    _HEAD
    + """
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
norms = []
try:
    for step in range(25):
        loss = net(torch.randn(4, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if torch.isfinite(loss):
            optimizer.step()
            norms.append(loss.item())
        with torch.no_grad():
            size = net.weight.norm()
            norms.append(size.item())
finally:
    norms.append(0.0)
    print("end", len(norms))
"""
)
