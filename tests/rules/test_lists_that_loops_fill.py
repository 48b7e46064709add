"""A list that a loop fills has more elements than the turns that are looked at, and so has whatever is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

FILLED = """
import collections
import copy
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))

def all_of(*values):
    return values

def one_by_one(values):
    made = []
    made.extend(values)
    return made

for x in torch.randn(6, 4, 3):
    outs = []
    for k in range(4):
        outs.append(net(x * (k + 1)))
    first, *others = outs
"""

MADE_OF_IT = [
    "outs",
    "outs[:]",
    "others",
    "[*outs]",
    "(*outs,)",
    "list(outs)",
    "tuple(outs)",
    "outs + []",
    "[] + outs",
    "outs.copy()",
    "copy.copy(outs)",
    "collections.deque(outs)",
    "reversed(outs)",
    "filter(lambda out: out is not None, outs)",
    "map(lambda out: out * 2, outs)",
    "(out for out in outs)",
    "itertools.chain(outs, [])",
    "all_of(*outs)",
    "one_by_one(outs)",
    "dict(enumerate(outs)).values()",
]

WALKS = {
    "the one before": """
    before = None
    for out in {made}:
        if before is not None:
            F.mse_loss(before, out).backward(retain_graph=True)
        before = out
""",
    "the first": """
    for one, out in zip([first] * 3, {made}):
        F.mse_loss(one, out).backward(retain_graph=True)
""",
    "pairs": """
    row = list({made})
    for one, out in zip(row, row[1:]):
        F.mse_loss(one, out).backward(retain_graph=True)
""",
    "from both ends": """
    row = list({made})
    for one, out in zip(row, reversed(row)):
        F.mse_loss(one, out).backward(retain_graph=True)
""",
    "by place": """
    row = list({made})
    for k in range(len(row) - 1):
        F.mse_loss(row[k], row[k + 1]).backward(retain_graph=True)
""",
}


@pytest.mark.parametrize("walks", WALKS)
@pytest.mark.parametrize("made", MADE_OF_IT)
def test_a_graph_that_a_later_element_walks_again_is_kept(tmp_path: Path, made: str, walks: str) -> None:
    program = FILLED + WALKS[walks].format(made=made)
    assert [f for f in found(tmp_path, "surplus-retain-graph", program) if f.edits] == []


TOLD_APART = [made for made in MADE_OF_IT if not made.startswith(("itertools", "dict"))]


@pytest.mark.parametrize("made", TOLD_APART)
def test_an_element_that_is_walked_by_itself_is_freed(tmp_path: Path, made: str) -> None:
    program = FILLED + f"    for out in {made}:\n        out.sum().backward(retain_graph=True)\n"
    assert len([f for f in found(tmp_path, "surplus-retain-graph", program) if f.edits]) == 1
