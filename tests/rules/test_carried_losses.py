"""A loss that the next step computes with, carried under a second name (``last = loss``)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from codemods.rewriting.apply import apply
from codemods.source.files import source_from_bytes
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


LISTED = (
    "total = loss + (loss - seen[-1]) ** 2 if seen else loss\nseen.append({})\nstep(total)",
    "step(loss + 0.1 * sum(seen))\nseen.append({})",
    "step(loss * (1 + seen[-3]) if len(seen) >= 3 else loss)\nseen.append({})",
    # a part of what is stored, where that is written out
    "step(loss + sum(l for _, l in seen))\nseen.append((1.0, {}))",
    "step(loss + sum(old['l'] for old in seen))\nseen.append({{'n': 1, 'l': {}}})",
    "step(loss + sum(l for _, (l, _) in seen))\nseen.append([0, [{}, 1]])",
    "step(loss + 0.1 * last[1])\nlast = (0, {})",
    # made element by element
    "terms = [loss, loss.sqrt()]\nstep(loss * sum(a - b for old in seen for a, b in zip(terms, old)))\n"
    "seen.append([{} for l in terms])",
    "terms = {{'a': loss, 'b': loss.sqrt()}}\nstep(loss * (seen[-1]['b'] if seen else 1))\n"
    "seen.append({{k: {} for k, l in terms.items()}})",
)


@pytest.mark.parametrize("turn", LISTED)
def test_one_that_is_put_aside_for_later_steps_is_detached_there(tmp_path: Path, turn: str) -> None:
    stored = "l" if " for l in terms" in turn or "k, l in" in turn else "loss"
    before = program(turn.format(stored), first="(0, torch.zeros(()))")
    found = analysed(tmp_path, Options(), before)
    assert [(f.rule, f.promise) for f in found if f.edits] == [("stored-graph", Promise.REPAIR)]
    after = program(turn.format(stored + ".detach()"), first="(0, torch.zeros(()))")
    assert tools.mended(tmp_path, [f for f in found if f.edits]) == after


NOT_PUT_ASIDE = (
    # its own step goes back through the list
    "seen.append(loss)\nstep(sum(seen))",
    "seen.append((1.0, loss))\nstep(sum(l for _, l in seen))",
    # it is emptied before the next step
    "seen.append(loss)\nstep(seen[-1])\nseen.clear()",
    # only looked at
    "if seen and loss > seen[-1]:\n    loss = 2 * loss\nstep(loss)\nseen.append(loss)",
    "step(loss / seen[-1].detach() if seen else loss)\nseen.append(loss)",
    "step(loss + seen[-1][1].item() if seen else loss)\nseen.append((1.0, loss))",
    # nothing but a change of the condition lets a later step come to it
    "if seen and len(seen) == 7:\n    loss = loss + seen[-1]\nstep(loss)\nseen.append(loss)",
    # a sum of all before
    "seen.append(loss + seen[-1] if seen else loss)\nstep(seen[-1])",
)


@pytest.mark.parametrize("turn", NOT_PUT_ASIDE)
def test_other_lists_of_losses_are_left_alone(tmp_path: Path, turn: str) -> None:
    found = analysed(tmp_path, Options(select=("stored-graph",), unsafe=True), program(turn))
    assert [f for f in found if f.edits] == []


def test_what_only_later_backwards_begin_with_keeps_its_graph(tmp_path: Path) -> None:
    kept = program("step(loss)\nseen.append(loss)\nif len(seen) > 2:\n    step(seen[-2] + seen[-1])")
    found = analysed(tmp_path, Options(select=("stored-graph",), unsafe=True), kept)
    assert [f for f in found if f.edits] == []


def test_a_part_that_is_a_number_at_first_is_left_to_the_user(tmp_path: Path) -> None:
    turn = "step(loss + sum(l for _, l in seen))\nseen.append((1.0, last))\nlast = loss"
    found = analysed(tmp_path, Options(select=("stored-graph",)), program(turn))
    assert [f for f in found if f.edits and f.span.line == 18] == []


def test_two_states_are_cut_together_where_the_step_ends(tmp_path: Path) -> None:
    before = """
        import torch
        from torch import nn

        class Cell(nn.Module):
            def __init__(self):
                super().__init__()
                self.charge, self.fired = None, None

            def forward(self, x):
                if self.charge is None:
                    self.charge, self.fired = torch.zeros_like(x), torch.zeros_like(x)
                self.charge = 0.8 * self.charge * (1 - self.fired) + x
                self.fired = torch.sigmoid(self.charge)
                return self.fired

        lift, cell = nn.Linear(4, 6), Cell()
        opt = torch.optim.Adam(lift.parameters())
        for _ in range(4):
            out = 0
            for _ in range(3):
                out = out + cell(lift(torch.randn(5, 4)))
            loss = out.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """
    before = textwrap.dedent(before)
    source = source_from_bytes(before.encode(), "train.py")
    result = apply([source], options=Options(), dry_run=True, jobs=1)
    cut = "    cell.charge = cell.charge.detach()\n    cell.fired = cell.fired.detach()\n"
    assert [rewrite.new for rewrite in result.rewrites] == [before + cut]
    assert not result.failures


@pytest.mark.parametrize(
    "later",
    [
        "if len(seen) > 1:\n    rows = seen[-2]\n    g = [torch.autograd.grad(r, [*net.parameters()]) for r in rows]",
        "if len(seen) >= 3:\n    rows = seen[-2]\n    rows.sum().backward()",
        "if len(seen) > 1:\n    old, rows = seen[-2:]\n    (old.exp().sum() + old.sum()).backward()",
    ],
)
def test_gradients_of_a_kept_graph_are_not_cut_off_from_it(tmp_path: Path, later: str) -> None:
    turn = "loss = net(torch.ones(3, 4)).pow(2).sum(1)\nstep(loss.mean())\nseen.append(loss)\n" + later
    kept = program(turn, flag="retain_graph=True").replace(", nn.Tanh(), nn.Linear(8, 2)", "")
    found = analysed(tmp_path, Options(select=("stored-graph", "carried-hidden-state"), unsafe=True), kept)
    assert [f for f in found if f.edits] == []
