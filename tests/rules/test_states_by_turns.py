"""States of several layers in a list that a loop counts through: ``states[i] = cell(x, states[i])``."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import added, analysed, found, mended

RULE = "carried-hidden-state"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

cells = nn.ModuleList([nn.GRUCell(4, 4), nn.GRUCell(4, 4)])
out = nn.Linear(4, 1)
opt = torch.optim.Adam([*cells.parameters(), *out.parameters()])
"""

STEPS = """
{init}
for step in range(9):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    {begin}
    for {count}:
        {body}
        x = states[i]
    loss = F.mse_loss(out(x), y)
    opt.zero_grad()
    loss.backward({flag})
    opt.step()
    {end}
"""

TWO = "states = [torch.zeros(8, 4), torch.zeros(8, 4)]"
LOOP = "i, cell in enumerate(cells)"
BODY = "states[i] = cell(x, states[i])"


def steps(
    *, init: str = TWO, begin: str = "pass", count: str = LOOP, body: str = BODY, flag: str = "", end: str = "pass"
) -> str:
    return STEPS.format(init=init, begin=begin, count=count, body=body, flag=flag, end=end)


@pytest.mark.parametrize(
    "program",
    [
        steps(),
        steps(init="states = [torch.zeros(8, 4) for _ in range(len(cells))]"),
        steps(init="states = [torch.zeros(8, 4)] * len(cells)"),
        steps(count="i in range(len(cells))", body="states[i] = cells[i](x, states[i])"),
        steps(count="i in range(0, 2)", body="h = cells[i](x, states[i]); states[i] = h"),
        steps(count="i, (cell, n) in enumerate(zip(cells, range(2)))"),
    ],
)
def test_the_states_go_into_the_next_step(tmp_path: Path, program: str) -> None:
    findings = found(tmp_path, RULE, START, program)
    assert [f.promise for f in findings] == [Promise.REPAIR]
    text = (tmp_path / "train.py").read_text()
    assert added(text, mended(tmp_path, findings)) == ["states = [h.detach() for h in states]"]


def test_states_of_a_module(tmp_path: Path) -> None:
    program = """
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList([nn.LSTMCell(4, 4), nn.LSTMCell(4, 4)])
            self.out = nn.Linear(4, 1)
            self.h = [torch.zeros(8, 4), torch.zeros(8, 4)]
            self.c = [torch.zeros(8, 4), torch.zeros(8, 4)]

        def forward(self, x):
            for i, cell in enumerate(self.cells):
                self.h[i], self.c[i] = cell(x, (self.h[i], self.c[i]))
                x = self.h[i]
            return self.out(x)

    model = Stack()
    opt = torch.optim.Adam(model.parameters())
    for step in range(9):
        loss = F.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    """
    findings = found(tmp_path, RULE, START, program)
    assert {f.promise for f in findings} == {Promise.REPAIR}
    assert added((tmp_path / "train.py").read_text(), mended(tmp_path, findings)) == [
        "model.h = [h.detach() for h in model.h]",
        "model.c = [h.detach() for h in model.c]",
    ]


ALL = "for k in range(len(states)): states[k] = states[k].detach()"
SOME = "for k in range(len(states) - 1): states[k] = states[k].detach()"


@pytest.mark.parametrize(
    "program",
    [
        # cut, wherever and however
        steps(body="states[i] = cell(x, states[i].detach())"),
        steps(end="states = [s.detach() for s in states]"),
        steps(begin="states = [s.detach() for s in states]"),
        steps(end=ALL),
        steps(end=ALL, flag="retain_graph=True").replace("backward(retain_graph=True)", "backward()"),
        steps(end="for i, s in enumerate(states): states[i] = s.detach()"),
        steps(end="for s in states: s.detach_()"),
        steps(end="for i in range(2): states[i].detach_()"),
        steps(end="k = 0\n    while k < len(states):\n        states[k].detach_(); k += 1"),
        steps(end="for s in reversed(states): s.detach_()"),
        # what holds a place is no state
        steps(init="states = [None] * 2", body="states[i] = cell(x, torch.zeros(8, 4))"),
        steps(end="states[0] = states[0].detach(); states[1] = states[1].detach()"),
        steps(end="with torch.no_grad(): states = [s.clone() for s in states]"),
        # made anew
        steps(begin="states = [torch.zeros(8, 4) for _ in cells]"),
        steps(begin="for i in range(2): states[i] = torch.zeros(8, 4)"),
        # other places than those that were written
        steps(init="states = [torch.zeros(8, 4)] * 9", body="states[i + 2 * step % 2] = cell(x, torch.zeros(8, 4))"),
        # over the time of one step
        """
        for step in range(9):
            states = [torch.zeros(8, 4) for _ in cells]
            for time in range(5):
                x = torch.randn(8, 4)
                for i, cell in enumerate(cells):
                    states[i] = cell(x, states[i])
                    x = states[i]
            loss = F.mse_loss(out(x), torch.randn(8, 1))
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ],
)
def test_nothing_goes_into_the_next_step(tmp_path: Path, program: str) -> None:
    assert not analysed(tmp_path, Options(unsafe=True), START, program)


@pytest.mark.parametrize("end", [SOME, "for i in range(1): states[i] = states[i].detach()"])
def test_a_loop_need_not_come_to_all_of_them(tmp_path: Path, end: str) -> None:
    """The last one still has its graph, so the flag is needed."""
    program = steps(end=end, flag="retain_graph=True")
    assert not [f for f in found(tmp_path, "surplus-retain-graph", START, program) if f.promise is Promise.EXACT]


@pytest.mark.parametrize(
    ("filled", "walked"),
    [
        ("for i in range(3): losses[i] = F.mse_loss(out(hidden), y) * i", "for i in range(3): {}"),
        ("for i in range(2): losses[i] = F.mse_loss(out(hidden), y)", "for i in range(2): {}"),
        ("losses = [F.mse_loss(out(hidden), y) for _ in range(3)]", "for i in range(3): {}"),
        ("losses[2] = F.mse_loss(out(hidden), y)\n    losses[0] = losses[2] * 2", "for i in (2, 0): {}"),
    ],
)
def test_what_a_loop_comes_to_is_walked(tmp_path: Path, filled: str, walked: str) -> None:
    """All of these losses share one graph: each backward but the last needs the flag."""
    program = dedent("""
    for step in range(9):
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        hidden = torch.tanh(cells[0](x, x))
        losses = [0] * 3
        {}
        opt.zero_grad()
        {}
        opt.step()
    """).format(filled, walked.format("losses[i].backward(retain_graph=True)"))
    assert not [f for f in found(tmp_path, "surplus-retain-graph", START, program) if f.promise is not Promise.ADVICE]
