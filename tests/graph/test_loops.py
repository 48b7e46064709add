"""Loops run for two turns: what one turn leaves for the next."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

CARRIED = [
    # a loop, and whether the backward of its second turn walks what that of the first has freed
    ("h = x\nfor i in range(9):\n    h = h * w\n    h.sum().backward()", True),
    ("h = x\nfor i in range(9):\n    h = h.detach() * w\n    h.sum().backward()", False),
    ("h = x\nfor i in range(9):\n    h = h * w\n    h.sum().backward()\n    h = h.detach()", False),
    ("h = x\nfor i in range(9):\n    h = h * w\n    h.sum().backward()\n    h.detach_()", False),
    ("h = x\nfor i in range(9):\n    h = h * w\n    h.sum().backward()\n    h = h.data", False),
    ("h = x\nwhile True:\n    h = h * w\n    h.sum().backward()", True),
    ("h = x\nwhile h.sum() > 0:\n    h = h * w\n    h.sum().backward()", True),
    ("h = x\ni = 0\nwhile i < 9:\n    h = h * w\n    h.sum().backward()\n    i += 1", True),
    ("for i in range(9):\n    h = x * w\n    h.sum().backward()", False),
    ("for e in range(9):\n    h = x\n    for i in range(9):\n        h = h * w\n    h.sum().backward()", False),
    ("h = x\nfor e in range(9):\n    for i in range(9):\n        h = h * w\n    h.sum().backward()", True),
    ("for e in range(9):\n    h = x\n    for i in range(9):\n        h = h * w\n        h.sum().backward()", True),
    ("bank = []\nfor i in range(9):\n    bank.append(x * w)\n    torch.stack(bank).sum().backward()", True),
    ("bank = []\nfor i in range(9):\n    bank.append((x * w).detach())\n"
     "    (torch.stack(bank) * w).sum().backward()", False),
    ("bank = []\nfor i in range(9):\n    bank.append(x * w)\n    sum(bank).sum().backward()\n    bank.clear()", False),
    ("bank = []\nfor i in range(9):\n    bank = []\n    bank.append(x * w)\n    sum(bank).sum().backward()", False),
    ("bank = []\nfor i in range(9):\n    bank.append(x * w)\n    sum(bank).sum().backward()\n    del bank[:]", False),
    ("bank = {}\nfor i in range(9):\n    h = bank.get('h', x) * w\n    h.sum().backward()\n    bank['h'] = h", True),
    ("bank = {}\nfor i in range(9):\n    if 'h' in bank:\n        h = bank['h'] * w\n    else:\n        h = x * w\n"
     "    h.sum().backward()\n    bank['h'] = h", True),
    ("from collections import deque\nq = deque(maxlen=3)\nfor i in range(9):\n    q.append(x * w)\n"
     "    torch.stack(list(q)).sum().backward()", True),
    ("h = None\nfor i in range(9):\n    h = x * w if h is None else h * w\n    h.sum().backward()", True),
    ("h = None\nfor i in range(9):\n    if h is None:\n        h = x\n    h = h * w\n    h.sum().backward()", True),
    ("h = None\nfor i in range(9):\n    if h is not None:\n        h = h.detach()\n    else:\n        h = x\n"
     "    h = h * w\n    h.sum().backward()", False),
    ("reg = w.norm()\nfor i in range(9):\n    (reg + (w * x).sum()).backward()", True),
    ("for i in range(9):\n    reg = w.norm()\n    (reg + (w * x).sum()).backward()", False),
    ("lstm = nn.LSTM(3, 3)\nh = None\nfor i in range(9):\n    out, h = lstm(x, h)\n    out.sum().backward()", True),
    ("lstm = nn.LSTM(3, 3)\nh = None\nfor i in range(9):\n    out, (h, c) = lstm(x)\n    out.sum().backward()", False),
    ("lstm = nn.LSTM(3, 3)\nh = (x, x)\nfor i in range(9):\n    out, h = lstm(x, h)\n    out.sum().backward()\n"
     "    h = tuple(t.detach() for t in h)", False),
    ("lstm = nn.LSTM(3, 3)\nh = (x, x)\nfor i in range(9):\n    out, h = lstm(x, h)\n    out.sum().backward()\n"
     "    h = (h[0].detach(), h[1].detach())", False),
    ("lstm = nn.LSTM(3, 3)\nh = (x, x)\nfor i in range(9):\n    out, h = lstm(x, h)\n    out.sum().backward()\n"
     "    h = [t.data for t in h]", False),
    ("lstm = nn.LSTM(3, 3)\nh = (x, x)\nfor i in range(9):\n    out, h = lstm(x, h)\n    out.sum().backward()\n"
     "    h[0].detach_()\n    h[1].detach_()", False),
    ("lstm = nn.LSTM(3, 3)\nh = (x, x)\nfor i in range(9):\n    out, h = lstm(x, h)\n    out.sum().backward()\n"
     "    for t in h:\n        t.detach_()", False),
    ("gru = nn.GRU(3, 3)\nh = x\nfor i in range(9):\n    out, h = gru(x, h)\n    out.sum().backward()", True),
    ("def repackage(h):\n    if isinstance(h, torch.Tensor):\n        return h.detach()\n"
     "    return tuple(repackage(v) for v in h)\n"
     "lstm = nn.LSTM(3, 3)\nh = (x, x)\nfor i in range(9):\n    h = repackage(h)\n    out, h = lstm(x, h)\n"
     "    out.sum().backward()", False),
    ("def repackage(h):\n    if type(h) == Variable:\n        return Variable(h.data)\n    else:\n"
     "        return tuple(repackage(v) for v in h)\n"
     "lstm = nn.LSTM(3, 3)\nh = (x, x)\nfor i in range(9):\n    h = repackage(h)\n    out, h = lstm(x, h)\n"
     "    out.sum().backward()", False),
    ("h = x\nfor i, b in enumerate([x, x, x]):\n    h = h * w\n    h.sum().backward()", True),
    ("h = x\nfor a, b in zip([x, x], [w, w]):\n    h = h * b\n    h.sum().backward()", True),
    ("from tqdm import tqdm\nh = x\nfor b in tqdm(range(9)):\n    h = h * w\n    h.sum().backward()", True),
    ("h = x\nfor i in range(9):\n    h = h * w\n    if x.sum() > 0:\n        continue\n    h.sum().backward()", True),
    ("h = x\nfor i in range(9):\n    h = h * w\n    h.sum().backward()\n    if x.sum() > 0:\n        break", True),
    ("h = x\nfor i in range(9):\n    h = h * w\n    h.sum().backward()\n    break", False),
    ("loss = 0\nfor i in range(9):\n    loss += (w * x).sum()\nloss.backward()", False),
    ("loss = 0\nfor i in range(9):\n    loss = loss + (w * x).sum()\n    loss.backward()", True),
    ("loss = 0\nfor i in range(9):\n    loss += (w * x).sum()\n    loss.backward()\n    loss = 0", False),
    ("def step(h):\n    h = h * w\n    h.sum().backward()\n    return h\nh = x\nfor i in range(9):\n"
     "    h = step(h)", True),
    ("class T:\n    def __init__(self):\n        self.h = x\n    def step(self):\n        self.h = self.h * w\n"
     "        self.h.sum().backward()\nt = T()\nfor i in range(9):\n    t.step()", True),
    ("class T:\n    def __init__(self):\n        self.h = x\n    def step(self):\n        self.h = self.h * w\n"
     "        self.h.sum().backward()\n        self.h = self.h.detach()\nt = T()\nfor i in range(9):\n"
     "    t.step()", False),
    ("class T:\n    h = x\n    def step(self):\n        T.h = T.h * w\n        T.h.sum().backward()\n"
     "t = T()\nfor i in range(9):\n    t.step()", True),
    ("h = x\ndef step():\n    global h\n    h = h * w\n    h.sum().backward()\nfor i in range(9):\n    step()", True),
    ("def outer():\n    h = x\n    def step():\n        nonlocal h\n        h = h * w\n        h.sum().backward()\n"
     "    for i in range(9):\n        step()\nouter()", True),
    ("def step(b, bank=[]):\n    bank.append(b * w)\n    sum(bank).sum().backward()\nfor i in range(9):\n"
     "    step(x)", True),
    ("h = x\nasync def main():\n    global h\n    async for b in stream():\n        h = h * w\n"
     "        h.sum().backward()\n"
     "import asyncio\nasyncio.run(main())", True),
    ("h = x\n[(h := h * w).sum().backward() for _ in range(9)]", True),
    ("def gen():\n    h = x\n    for i in range(9):\n        h = h * w\n        yield h\n"
     "for h in gen():\n    h.sum().backward()", True),
    ("h = x\nfor i in range(9):\n    with torch.no_grad():\n        h = h * w\n    (h * w).sum().backward()", False),
    ("h = x\nfor i in range(9):\n    try:\n        h = h * w\n        h.sum().backward()\n    except RuntimeError:\n"
     "        pass", True),
    ("h = x\nfor i in range(9):\n    try:\n        h = h * w\n    finally:\n        h.sum().backward()", True),
    ("h = x\nfor i in range(9):\n    match i:\n        case 0:\n            h = x\n        case _:\n"
     "            h = h * w\n"
     "    (h * w).sum().backward()", True),
    ("hs = [x, x]\nfor i in range(9):\n    for k in range(2):\n        hs[k] = hs[k] * w\n"
     "    sum(hs).sum().backward()", True),
    ("hs = [x, x]\nfor i in range(9):\n    hs = [h * w for h in hs]\n    sum(hs).sum().backward()", True),
    ("hs = [x, x]\nfor i in range(9):\n    hs = [h.detach() * w for h in hs]\n    sum(hs).sum().backward()", False),
    ("a, *rest = x, x, x\nfor i in range(9):\n    a, *rest = [t * w for t in (a, *rest)]\n"
     "    sum(rest).sum().backward()", True),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), CARRIED)
def test_what_one_turn_leaves_for_the_next(code: str, expected: bool) -> None:
    found = run(code)
    assert found.trace.complete
    assert found.walks()
    assert bool(found.again()) is expected


def test_the_turn_is_told() -> None:
    found = run("h = x\nfor i in range(9):\n    h = h * w\n    h.sum().backward()")
    first, second = found.walks()
    assert [turn for _, turn in first.place.turns()] == [0]
    assert [turn for _, turn in second.place.turns()] == [1]
    assert {by for _, by in second.again} == {first}


def test_turns_through_calls() -> None:
    code = """
        def step():
            for j in range(2):
                (w * x).sum().backward()
        for i in range(2):
            step()
    """
    assert [[t for _, t in walk.place.turns()] for walk in run(code).walks()] == [[0, 0], [0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("through", "again"),
    [
        ("range(9)", True),
        ("loader()", True),
        ("[x for _ in range(9)]", True),
        ("enumerate([x for _ in range(9)])", True),
        ("__import__('collections').deque([x for _ in range(9)])", True),
        ("reversed([x for _ in range(9)])", True),
        ("[x, x]", False),
        ("enumerate([x, x])", False),
        ("zip([x, x], loader())", False),
    ],
)
def test_a_walk_that_the_first_turn_steps_over_has_a_third_turn(through: str, again: bool) -> None:
    body = "h = (x * w).sum()\n    if last is not None:\n        (h * last).backward()\n    last = h"
    code = f"last = None\nfor i in {through}:\n    {body}"
    assert any(walk.again for walk in run(code).trace.walks) is again


def test_neighbours_in_a_list_are_walked_twice() -> None:
    outs = "outs = [(x * w).sum() for _ in range(9)]\n"
    assert any(w.again for w in run(outs + "for a, b in zip(outs, outs[1:]):\n    (a * b).backward()").trace.walks)
    assert not any(w.again for w in run(outs + "for a in outs[1:]:\n    (a * a).backward()").trace.walks)


@pytest.mark.parametrize("pairs", ["zip(outs, outs[1:])", "zip(outs[1:], outs)", "zip(outs[:-1], outs[1:])"])
def test_neighbours_in_a_list_that_a_loop_fills_are_walked_twice(pairs: str) -> None:
    filled = "outs = []\nfor _ in range(9):\n    outs.append((x * w).sum())\n"
    assert any(w.again for w in run(f"{filled}for a, b in {pairs}:\n    (a * b).backward()").trace.walks)


def test_each_element_is_walked_once_although_the_graph_is_retained() -> None:
    filled = "outs = []\nfor _ in range(9):\n    outs.append((x * w).sum())\n"
    for outs in (filled, "outs = [(x * w).sum() for _ in range(9)]\n"):
        found = run(f"{outs}for out in outs:\n    out.backward(retain_graph=True)")
        assert not any(walk.again for walk in found.trace.walks)


def test_a_graph_that_is_retained_may_be_walked_again_two_turns_later() -> None:
    code = """
    average = [p.clone() for p in net.parameters()]
    for i in range(9):
        loss = net(x).sum() + sum((p - q).pow(2).sum() for p, q in zip(net.parameters(), average))
        loss.backward({flag})
        average = [0.9 * q + 0.1 * p for p, q in zip(net.parameters(), average)]
    """
    found = run(code.format(flag="retain_graph=True"))
    assert any(node.saves for walk in found.trace.walks for node, _ in walk.again)
