"""Seeds that a run drew are drawn again by the next one, by each process its own."""

from __future__ import annotations

import pytest

from tests.verify.probe.tools import probe_all

RANKS = """
import multiprocessing, time
import torch

def train(rank):
    torch.manual_seed(rank + time.time_ns() % 1000)
    net = torch.nn.Linear(2, 1)
    net(torch.randn(3, 2)).sum().backward()

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=train, args=(rank,)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.manual_seed(12345)
    train(7)
"""


@pytest.mark.slow
def test_each_process_replays_its_own() -> None:
    first, done = probe_all(RANKS, steps=None, seed=0)
    assert done.returncode == 0, done.stderr
    replay = [[*seed, record.process] for record in first for seed in record.seeds]
    second, _ = probe_all(RANKS, steps=None, seed=0, replay=replay)
    losses = [
        {record.process: [loss.digest for each in record.backwards for loss in each.losses] for record in records}
        for records in (first, second)
    ]
    assert len(losses[0]) == 3
    assert losses[0] == losses[1]
    assert len({tuple(each) for each in losses[0].values()}) == 3
