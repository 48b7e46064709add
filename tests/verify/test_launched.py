"""Wrong changes to programs that a launcher starts, a configuration composes or a notebook holds are never kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.notebooks import code, notebook
from tests.verify.judging.test_verdicts import changed, edited, verdicts
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Verification
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

#: Two ranks with the environment that torchrun gives them, forked so that torch is there already.
RANKS = """\
import os, socket
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def reduced(value):
    value = value.detach().clone()
    dist.all_reduce(value, op=dist.ReduceOp.SUM)
    return value / dist.get_world_size()


def main(rank, port):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo")
    rank = int(os.environ["LOCAL_RANK"])
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(48, 6), torch.randn(48, 1))
    sampler = DistributedSampler(data, shuffle=True, seed=1)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.1), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        seen = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += reduced(loss).item()
        if rank == 0:
            print(f"epoch {epoch} {seen / len(loader):.5f}")
            torch.save(model.module.state_dict(), "last.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    mp.set_start_method("fork", force=True)
    ranks = [mp.Process(target=main, args=(rank, port)) for rank in range(2)]
    for each in ranks: each.start()
    for each in ranks: each.join()
"""
#: An entry point as hydra makes them: a configuration composed of defaults and overrides, a folder for each run.
COMPOSED = """\
import functools, json, os, sys
from types import SimpleNamespace
import torch
from torch import nn

DEFAULTS = {"model": {"hidden": 8, "dropout": 0.1}, "optim": {"lr": 0.05, "momentum": 0.9}, "trainer": {"epochs": 3}}


def entry(defaults):
    def decorate(function):
        @functools.wraps(function)
        def run():
            config = {group: dict(values) for group, values in defaults.items()}
            for word in sys.argv[1:] + ["trainer.epochs=4"]:
                key, _, value = word.partition("=")
                group, _, name = key.partition(".")
                config[group][name] = json.loads(value)
            os.makedirs("outputs/run", exist_ok=True)
            os.chdir("outputs/run")
            with open("config.json", "w") as file:
                json.dump(config, file)
            return function(SimpleNamespace(**{key: SimpleNamespace(**each) for key, each in config.items()}))
        return run
    return decorate


@entry(DEFAULTS)
def main(config):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, config.model.hidden), nn.Dropout(config.model.dropout))
    net.append(nn.Linear(config.model.hidden, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=config.optim.lr, momentum=config.optim.momentum)
    best = None
    for epoch in range(config.trainer.epochs):
        total = 0.0
        for batch in range(4):
            loss = (net(torch.randn(6, 4)) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if best is None or total < best:
            best = total
            torch.save({"net": net.state_dict(), "epoch": epoch}, "best.pt")
    return best


if __name__ == "__main__":
    main()
"""
CELLS = [
    "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n",
    "net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))\nhistory = []\n",
    "%matplotlib inline\noptimizer = torch.optim.Adam(net.parameters(), lr=0.01)\n",
    "for step in range(12):\n    loss = net(torch.randn(6, 4)).square().mean()\n    optimizer.zero_grad()\n"
    "    loss.backward()\n    optimizer.step()\n    history.append(loss.item())\n",
    "net.eval()\nheld = net(torch.ones(2, 4)).detach()\nheld.sum() / len(history)",
]

WRONG = {
    "a mean over ranks": (RANKS, ("return value / dist.get_world_size()", "return value")),
    "the same batches in each epoch": (RANKS, ("set_epoch(epoch)", "set_epoch(0)")),
    "a rate of each rank": (RANKS, ("lr=0.05", "lr=0.05 if rank == 0 else 0.04")),
    "no average of gradients": (RANKS, ("model(x), y", "model.module(x), y")),
    "a checkpoint of another rank": (RANKS, ("        if rank == 0:", "        if rank == 1:")),
    "a default of a group": (COMPOSED, ('"momentum": 0.9', '"momentum": 0.8')),
    "an override": (COMPOSED, ("trainer.epochs=4", "trainer.epochs=2")),
    "a group read by another name": (COMPOSED, ("nn.Dropout(config.model.dropout)", "nn.Dropout(config.optim.lr)")),
    "another folder": (COMPOSED, ('    os.chdir("outputs/run")', '    os.chdir("outputs")')),
    "the worst of checkpoints": (COMPOSED, ("total < best", "total > best")),
}
WRONG_CELLS = {
    "statistics of batches": ("net.eval()\n", "net.train()\n"),
    "a value that a cell shows": ("held.sum()", "held.prod()"),
    "weights that decay": ("lr=0.01", "lr=0.01, weight_decay=0.1"),
}


def told(result: Verification) -> list[tuple[int, str, str]]:
    return [(each.finding.span.line, each.verdict.value, each.why) for each in result.rewrites]


@pytest.mark.parametrize("case", WRONG)
def test_wrong_is_never_kept(folder: Path, case: str) -> None:
    text, edit = WRONG[case]
    result = changed(folder, text, edited(text, edit), steps=12)
    assert set(verdicts(result).values()) == {"broken"}, told(result)


@pytest.mark.parametrize("case", WRONG_CELLS)
def test_wrong_cells_are_never_kept(folder: Path, case: str) -> None:
    old, new = WRONG_CELLS[case]
    assert sum(old in cell for cell in CELLS) == 1
    (folder / "train.ipynb").write_bytes(notebook(*map(code, CELLS)))
    (folder / "new.ipynb").write_bytes(notebook(*(code(cell.replace(old, new)) for cell in CELLS)))
    settings = Settings(steps=12)
    command = script_command("train.ipynb", [], settings.python)
    hand = HandRewriter(folder / "new.ipynb", Promise.EXACT, root=folder, script=command.script)
    result = verify([command], options=Options(), settings=settings, rewriter=hand, place=ForkedPlace)
    assert {each.verdict.value for each in result.rewrites} == {"broken"}, told(result)


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        (RANKS, ("value = value.detach().clone()", "value = value.clone().detach()")),
        (COMPOSED, ("total += loss.item()", "total += float(loss.detach())")),
    ],
    ids=["ranks", "composed"],
)
def test_right_is_kept(folder: Path, text: str, edit: tuple[str, str]) -> None:
    result = changed(folder, text, edited(text, edit), steps=12)
    assert set(verdicts(result).values()) == {"kept"}, told(result)
