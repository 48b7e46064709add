"""A loss that the next step computes with, carried under a second name (``last = loss``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules import tools
from tests.rules.tools import analysed

HEAD = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters())
best, last, smooth, seen = 1e9, {first}, 0.0, []

def step(loss):
    opt.zero_grad()
    loss.backward({flag})
    opt.step()

for _ in range(50):
    loss = net(torch.randn(16, 4)).pow(2).mean()
"""


def program(turn: str, *, first: str = "0.0", flag: str = "") -> str:
    return HEAD.format(first=first, flag=flag) + "".join(f"    {line}\n" for line in turn.splitlines())


CARRIED = (
    ("total = loss - 0.1 * last\nstep(total)\nlast = loss", "0.0"),
    ("total = loss if last is None else loss + (loss - last).abs()\nstep(total)\nlast = loss", "None"),
    ("total = loss - 0.1 * last\nstep(total)\nlast = total", "0.0"),
    ("total = loss * last\nlast = loss\nstep(total)", "1.0"),
    ("net.total = loss - 0.1 * last\nstep(net.total)\nlast = net.total", "0.0"),
)


@pytest.mark.parametrize(("turn", "first"), CARRIED)
def test_it_is_detached_where_it_is_handed_on(tmp_path: Path, turn: str, first: str) -> None:
    before = program(turn, first=first)
    handed = next(line for line in turn.splitlines() if line.startswith("last = "))
    found = analysed(tmp_path, Options(), before)
    assert [(f.rule, f.promise) for f in found] == [("stored-graph", Promise.REPAIR)]
    assert tools.mended(tmp_path, found) == before.replace(handed, handed + ".detach()")


LEFT_ALONE = (
    # only looked at
    "step(loss)\nlast = loss\nprint(last.item())",
    "step(loss)\nif loss < best:\n    best = loss",
    # cut already, or a number
    "step(loss - 0.1 * last)\nlast = loss.detach()",
    "step(loss - 0.1 * last)\nlast = loss.item()",
    "step(loss - 0.1 * float(last))\nlast = loss",
    "with torch.no_grad():\n    jump = loss - last\nprint(jump)\nstep(loss)\nlast = loss",
    # a second name within the step
    "last = loss\nstep(last)",
    # a sum that goes on in itself belongs to `unreset-loss`
    "last = last + loss\nstep(last)",
    "last = torch.add(last, loss)\nstep(last)",
    # made anew before it is used again
    "step(loss - 0.1 * last)\nlast = loss\nlast = torch.zeros(())",
)


@pytest.mark.parametrize("turn", LEFT_ALONE)
def test_other_losses_are_left_alone(tmp_path: Path, turn: str) -> None:
    found = analysed(tmp_path, Options(select=("stored-graph", "carried-hidden-state")), program(turn))
    assert found == []


def test_where_its_graph_is_kept_and_learned_through_the_user_decides(tmp_path: Path) -> None:
    turn = "total = loss - 0.1 * last\nstep(total)\nlast = loss"
    kept = program(turn, flag="retain_graph=True").replace(", nn.Tanh(), nn.Linear(8, 2)", "")
    found = analysed(tmp_path, Options(select=("stored-graph",), unsafe=True), kept)
    assert {f.promise for f in found} == {Promise.BEHAVIOUR}


def test_where_the_step_has_changed_its_weights_it_raises_all_the_same(tmp_path: Path) -> None:
    turn = "total = loss - 0.1 * last\nstep(total)\nlast = loss"
    found = analysed(tmp_path, Options(select=("stored-graph",)), program(turn, flag="retain_graph=True"))
    assert {f.promise for f in found} == {Promise.REPAIR}
