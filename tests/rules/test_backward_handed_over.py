"""A backward that others are given to call needs the graph, whoever calls it and when; so does a part that they get."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "grad-in-evaluation"

START = """\
import asyncio
import atexit
import contextlib
import functools
import operator
import threading
from concurrent import futures

import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def check(x):
    net.eval()
    out = net(x).pow(2).mean()
    net.train()
    return out


for step in range(3):
    x = torch.randn(8, 4)
    loss = check(x)
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()
"""

WALKED = [
    "threading.Thread(target=loss.backward).start()",
    "threading.Thread(target=torch.autograd.backward, args=(loss,)).start()",
    "threading.Timer(0, loss.backward).start()",
    "futures.ThreadPoolExecutor(1).submit(loss.backward).result()",
    "asyncio.run(asyncio.to_thread(loss.backward))",
    "atexit.register(loss.backward)",
    "todo = contextlib.ExitStack()\n    todo.callback(loss.backward)\n    todo.close()",
    "with contextlib.ExitStack() as todo:\n        todo.callback(loss.backward)",
    "with contextlib.ExitStack() as todo:\n        todo.callback(torch.autograd.backward, [loss])",
    "operator.methodcaller('backward')(loss)",
    "list(map(operator.methodcaller('backward'), [loss]))",
    "threading.Thread(target=functools.partial(torch.autograd.backward, loss)).start()",
    "threading.Thread(target=functools.partial(loss.backward, None, True)).start()",
]

LOOKED_AT = [
    "threading.Thread(target=print, args=(loss,)).start()",
    "atexit.register(print, loss.item())",
    "with contextlib.ExitStack() as todo:\n        todo.callback(print, loss.item())",
    "print(operator.itemgetter(0)([loss]).item())",
    "print(sorted([loss, loss], key=float)[0].item())",
]


@pytest.mark.parametrize("line", WALKED)
def test_what_others_back_propagate_keeps_its_graph(tmp_path: Path, line: str) -> None:
    assert not [f for f in found(tmp_path, RULE, f"{START}    {line}\n") if f.promise is not Promise.ADVICE]


@pytest.mark.parametrize("line", LOOKED_AT)
def test_what_others_look_at_needs_none(tmp_path: Path, line: str) -> None:
    assert [f.promise for f in found(tmp_path, RULE, f"{START}    {line}\n")] == [Promise.EXACT]


PARTS = """\
from elsewhere import use
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence


def score(x):
    net.eval()
    rows = pad_packed_sequence(pack_sequence([net(x)]), batch_first=True)
    {line}
    net.train()


score(x)
"""


@pytest.mark.parametrize("line", ["use(rows[0][0])", "use(rows[0])", "use([row for row in rows[0]])"])
def test_a_part_that_unseen_code_gets_may_be_walked(tmp_path: Path, line: str) -> None:
    findings = [f for f in found(tmp_path, RULE, START + PARTS.format(line=line)) if f.message.startswith("score")]
    assert not [f for f in findings if f.promise is not Promise.ADVICE]


def test_a_part_that_is_printed_is_not_walked(tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, START + PARTS.format(line="print(rows[0][0].item())"))
    assert Promise.EXACT in [f.promise for f in findings if f.message.startswith("score")]


def test_a_part_that_is_carried_is_told(tmp_path: Path) -> None:
    code = """\
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

last = None
for step in range(3):
    x = torch.randn(8, 4)
    row = pad_packed_sequence(pack_sequence([net(x)]), batch_first=True)[0][0]
    loss = row.pow(2).mean()
    if last is not None:
        loss = loss + (row - last).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    last = row
"""
    assert [f.rule for f in found(tmp_path, "stored-graph", START + code)] == ["stored-graph"]
