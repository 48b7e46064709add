"""What ``torch.cuda.empty_cache()`` after an evaluation gives back and costs.

``python tests/benchmarks/emptied_cache.py`` needs a card. It trains epochs of a few steps, evaluates with larger
batches, and empties the cache after every second evaluation, so that both ways see the same card. It prints medians:
bytes that the process has reserved after the evaluation, milliseconds of the call, of the first step of the next epoch
and of the others, and how often that epoch asks the driver for memory.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any, NamedTuple

import torch
from torch import nn

_EPOCHS, _STEPS = 42, 12
_TRAINED, _EVALUATED, _WIDTH = 256, 16384, 2048
#: The first epochs do what is done once.
_WARM = 2


class Epoch(NamedTuple):
    """Bytes reserved after the evaluation; milliseconds of the call, the next step, the others; blocks asked for."""

    reserved: int
    call: float
    first: float
    others: float
    asked: int


def main() -> int:
    """Measure and print; 2 without a card."""
    if not torch.cuda.is_available():
        print("there is no CUDA device", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(_WIDTH, _WIDTH), nn.GELU())]
    net = nn.Sequential(*layers, nn.Linear(_WIDTH, 1)).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    found: dict[bool, list[Epoch]] = {False: [], True: []}
    for number in range(_EPOCHS):
        found[bool(number % 2)].append(epoch(net, optimizer, empty=bool(number % 2)))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for empty, epochs in found.items():
        told = Epoch(*(statistics.median(column) for column in zip(*epochs[_WARM:], strict=True)))
        print(
            f"{'emptied' if empty else 'left':8} reserved {told.reserved / 2**20:.0f} MiB, call {told.call:.2f} ms,"
            f" next step {told.first:.2f} ms, others {told.others:.2f} ms, asked the driver {told.asked:.0f} times"
        )
    return 0


def epoch(net: nn.Module, optimizer: torch.optim.Optimizer, *, empty: bool) -> Epoch:
    """Evaluate, empty the cache or do not, and train."""
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(_EVALUATED, _WIDTH, device="cuda")).mean()
    call = timed(torch.cuda.empty_cache) if empty else 0.0
    reserved, asked = torch.cuda.memory_reserved(), _asked()
    steps = [timed(lambda: step(net, optimizer)) for _ in range(_STEPS)]
    return Epoch(reserved, call, steps[0], statistics.median(steps[1:]), _asked() - asked)


def step(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Train on one batch."""
    loss = net(torch.randn(_TRAINED, _WIDTH, device="cuda")).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def timed(do: Any) -> float:
    """Return the milliseconds that ``do`` takes, on the card too."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    do()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - started)


def _asked() -> int:
    return int(torch.cuda.memory_stats().get("num_device_alloc", 0))


if __name__ == "__main__":
    sys.exit(main())
