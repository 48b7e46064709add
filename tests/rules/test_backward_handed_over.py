"""A backward that others are given to call needs the graph, whoever calls it and when."""

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
