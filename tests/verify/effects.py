"""Scripts of which much goes nowhere within a short run: what functions return, what is set for later, who is told."""

from __future__ import annotations

_HEAD = """\
import asyncio, atexit, os, threading, warnings
from concurrent.futures import ThreadPoolExecutor
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
"""

#: A sweeper's objective: whoever calls ``main`` is outside of the tree.
OBJECTIVE = (
    _HEAD
    + """
class Study:
    def __init__(self, objective):
        self.objective = objective

    def optimize(self, trials):
        with ThreadPoolExecutor(1) as pool:
            list(pool.map(self.objective, range(trials)))


def fit(width):
    net = nn.Linear(width, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    history = []
    for _ in range(5):
        loss = net(torch.randn(3, width)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return {"last": history[-1], "steps": len(history)}


def main(trial):
    found = fit(3 + trial)
    return found["last"]


async def twice():
    value = await asyncio.to_thread(main, 1)
    return 2 * value


Study(main).optimize(2)
asyncio.run(twice())
"""
)

#: A second walk through the graph, much later; and the part of it that is trained only then.
LATER = (
    _HEAD
    + """
body, head, other = nn.Linear(6, 5), nn.Linear(5, 2), nn.Linear(5, 2)
for parameter in other.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters(), *other.parameters()], lr=0.05)
begin = 40
weights = torch.ones(3, 2)
for epoch in range(60):
    x, y = torch.randn(4, 6), torch.randint(0, 2, (4,))
    hidden = torch.tanh(body(x))
    loss = F.cross_entropy(head(hidden), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=epoch >= begin)
    if epoch >= begin:
        (weights.mean() * F.cross_entropy(other(hidden), 1 - y)).backward()
    optimizer.step()
"""
)

#: One process of a group, with all that a program does once: settings, functions for the end, other programs.
ONCE = (
    _HEAD
    + """
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
warnings.simplefilter("error")
torch.set_flush_denormal(True)
lock = threading.Lock()
net = nn.Linear(4, 1)


@atexit.register
def last():
    torch.save(net.state_dict(), "last.pt")


optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
total = torch.zeros(2)
for step in range(60):
    loss = net(torch.randn(4, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with lock:
        total += torch.tensor([loss.item(), 1.0])
    if step % 8 == 7:
        dist.all_reduce(total)
        os.system(f"echo {step}")
"""
)

#: The same twice: in one order and, by hand, in another.
PLAIN = (
    _HEAD
    + """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
for step in range(30):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
