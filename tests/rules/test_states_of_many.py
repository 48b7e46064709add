"""States that are kept for each of several nodes: one loop goes over them, an outer one comes back to each."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "carried-hidden-state"

HEAD = """
import torch
from torch import nn

cell = nn.GRUCell(4, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
"""

PROGRAM = """
states = {made}
for epoch in range(20):
    {begin}
    for node in {nodes}:
        x = torch.randn(1, 4)
        state = cell(x, states[node])
        loss = (state - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        {store}
"""

LIST = {"made": "[torch.zeros(1, 4) for _ in range(5)]", "nodes": "range(5)", "begin": "pass"}
DICT = {"made": "{i: torch.zeros(1, 4) for i in range(5)}", "nodes": "range(5)", "begin": "pass"}
ALONE = {"made": "[torch.zeros(1, 4)]", "nodes": "range(1)", "begin": "pass"}


@pytest.mark.parametrize("way", [LIST, DICT, ALONE])
def test_the_state_of_each_node_is_cut_behind_its_step(tmp_path: Path, way: dict[str, str]) -> None:
    # the weights that a state has saved are changed by the steps of other nodes, too: the cut mends that as well
    findings = found(tmp_path, RULE, HEAD, PROGRAM.format(store="states[node] = state", **way))
    assert [(f.promise, bool(f.edits)) for f in findings] == [(Promise.REPAIR, True)]


@pytest.mark.parametrize(
    ("way", "store"),
    [
        (LIST, "states[node] = state.detach()"),
        (DICT, "states[node] = state.data"),
        (LIST, "states[node] = torch.zeros(1, 4)"),
        # made anew for each epoch
        ({**LIST, "begin": "states = [torch.zeros(1, 4) for _ in range(5)]"}, "states[node] = state"),
    ],
)
def test_states_that_carry_nothing_are_left_alone(tmp_path: Path, way: dict[str, str], store: str) -> None:
    assert found(tmp_path, RULE, HEAD, PROGRAM.format(store=store, **way)) == []


SUMMED = """
states = [torch.zeros(1, 4) for _ in range(5)]
for epoch in range(20):
    states = [state.detach() for state in states]
    loss = 0
    for node in range(5):
        x = torch.randn(1, 4)
        states[node] = cell(x, states[node])
        loss = loss + (states[node] - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_states_that_are_cut_before_the_nodes_are_left_alone(tmp_path: Path) -> None:
    assert found(tmp_path, RULE, HEAD, SUMMED) == []


ONCE = """
{made}
for {count}:
    x = torch.randn(1, 4)
    state = cell(x, states[node])
    loss = (state - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    states[node] = state
"""


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("states = [torch.zeros(1, 4) for _ in range(5)]", "node in range(5)"),
        ("states = [torch.zeros(1, 4), torch.zeros(1, 4), torch.zeros(1, 4)]", "node in range(3)"),
        ("states = {i: torch.zeros(1, 4) for i in range(5)}", "node in range(5)"),
        ("states = [torch.zeros(1, 4)] * 5", "node in range(len(states))"),
        ("states = [torch.zeros(1, 4) for _ in range(5)]", "node, old in enumerate(states)"),
    ],
)
def test_a_loop_that_comes_to_each_place_once_carries_nothing(tmp_path: Path, made: str, count: str) -> None:
    assert found(tmp_path, RULE, HEAD, ONCE.format(made=made, count=count)) == []


def test_a_loop_that_comes_back_to_one_place_carries_its_state(tmp_path: Path) -> None:
    program = ONCE.format(made="states = [torch.zeros(1, 4)]", count="turn in range(5)").replace("[node]", "[0]")
    assert [f.promise for f in found(tmp_path, RULE, HEAD, program)] == [Promise.REPAIR]
