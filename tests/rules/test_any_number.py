"""Loops over what a program put under keys or places that are not known: there may be any number, and never one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

HEAD = """
import collections
import itertools
import sys

import torch
from torch import nn

def by_name(heads):
    return [heads[name] for name in heads]

def one_by_one(heads):
    for name in heads:
        yield heads[name]

def all_of(*heads):
    return heads

names = sys.argv[1:]
base = nn.Linear(3, 3)
{made}
opt = torch.optim.SGD(base.parameters(), lr=0.1)
for x in torch.randn(10, 3):
    opt.zero_grad()
    z = base(x).tanh()
    {loop}
        loss = head(z).pow(2).sum()
        print(loss.item())
        loss.backward(retain_graph=True)
    opt.step()
"""

MADE = {
    "a comprehension": "heads = {name: nn.Linear(3, 1) for name in names}",
    "one by one": "heads = {}\nfor name in names:\n    heads[name] = nn.Linear(3, 1)",
    "pairs": "heads = dict((name, nn.Linear(3, 1)) for name in names)",
    "modules": "heads = nn.ModuleDict({name: nn.Linear(3, 1) for name in names})",
}

LOOPS = [
    "for _, head in heads.items():",
    "for head in heads.values():",
    "for head in list(heads.values()):",
    "for head in tuple(heads.values()):",
    "for head in set(heads.values()):",
    "for head in [*heads.values()]:",
    "for head in [*heads.values(), nn.Linear(3, 1)]:",
    "for head in [] + list(heads.values()):",
    "for head in list(heads.values())[:2]:",
    "for head in list(heads.values())[1:]:",
    "for head in list(heads.values()) * 1:",
    "for _, head in zip(names, heads.values()):",
    "for _, head in enumerate(heads.values()):",
    "for head in reversed(list(heads.values())):",
    "for _, head in sorted(heads.items()):",
    "for head in dict(heads).values():",
    "for head in {**heads}.values():",
    "for head in nn.ModuleList(heads.values()):",
    "for head in nn.Sequential(*heads.values()):",
    "for head in itertools.chain(heads.values()):",
    "for head in collections.deque(heads.values()):",
    "for head in [head for head in heads.values()]:",
    "for head in (heads[name] for name in heads):",
    "for head in map(lambda head: head, heads.values()):",
    "for head in filter(None, heads.values()):",
    "for head in by_name(heads):",
    "for head in one_by_one(heads):",
    "for head in all_of(*heads.values()):",
    "more = []\n    more.extend(heads.values())\n    for head in more:",
    "more = []\n    more += heads.values()\n    for head in more:",
    "more = list(heads.values())\n    while more:\n        head = more.pop()",
    "first, *more = [*heads.values()]\n    for head in more:",
    "some = heads if x.sum() > 0 else {}\n    for head in some.values():",
    "for name in sorted(heads):\n        head = heads[name]",
]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("made", MADE)
def test_a_graph_that_the_next_turn_walks_again_is_kept(tmp_path: Path, made: str, loop: str) -> None:
    program = HEAD.format(made=MADE[made], loop=loop)
    assert [f for f in found(tmp_path, "surplus-retain-graph", program) if f.edits] == []


@pytest.mark.parametrize("loop", ["for head in [heads[names[0]]]:", "for head in [list(heads.values())[0]]:"])
def test_a_loop_of_one_turn_is_one(tmp_path: Path, loop: str) -> None:
    program = HEAD.format(made=MADE["one by one"], loop=loop)
    assert [f.span.line for f in found(tmp_path, "surplus-retain-graph", program) if f.edits]
