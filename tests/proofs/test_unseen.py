"""Which ways lead from a graph to code that cannot be seen, and which questions marks answer."""

from __future__ import annotations

import pytest

from codemods.proofs.marks import clears, may_touch_gradients, out_of_sight, sees_each_backward, tells_backwards_apart
from codemods.proofs.unseen import Way, computes, leaves_sight, only_looks, ways_out
from tests.graph.tools import run

WAYS = {
    "from somewhere import box\nbox.kept = y": {Way.ESCAPED},
    "from somewhere import box\nbox[0] = y": {Way.ESCAPED},
    "from somewhere import box\nbox.append(y)": {Way.STORED, Way.CALL},
    "from somewhere import box\nbox().append(y)": {Way.STORED, Way.CALL},
    "from somewhere import box\nbox()[0] = y": {Way.STORED},
    "from somewhere import work\nwork(y)": {Way.CALL},
    "import threading\nthreading.Timer(1, print, [y])": {Way.ESCAPED},
    "y.grad_fn": {Way.ESCAPED},
    # only looked at, handed on, or cut off before
    "print(y)": set(),
    "import numpy\nnumpy.save('f', y)": set(),
    "import copy\nz = [copy.copy(y)]": set(),
    "import torchvision\ntorchvision.utils.save_image(y, 'f')": set(),
    "z = y * 2\nz.sum().backward()": set(),
    "from somewhere import work\nwork(y.detach())": set(),
    "from somewhere import work\nwork(y.item())": set(),
}


@pytest.mark.parametrize("code", WAYS)
def test_ways_out(code: str) -> None:
    found = run(f"y = net(x)\n{code}")
    ways = {out.way for node in found.nodes("y") for out in ways_out(node)}
    assert ways == WAYS[code]
    assert leaves_sight(found.nodes("y")) is bool(ways - {Way.CALL})


def test_what_an_unseen_call_made_is_out_of_sight() -> None:
    found = run("from somewhere import work\ny = work(net(x))")
    assert {out.way for node in found.nodes("y") for out in ways_out(node)} == {Way.MADE}


@pytest.mark.parametrize("path", ["torch.save", "torchvision.utils.make_grid", "torchmetrics.Accuracy"])
def test_functions_that_compute(path: str) -> None:
    assert computes(path)
    assert only_looks(path)


@pytest.mark.parametrize("path", ["torch.autograd.grad", "torch.func.grad", "somewhere.fit", "torchy.walk"])
def test_functions_that_may_walk(path: str) -> None:
    assert not only_looks(path)


MARKS = {
    "net.zero_grad()": (clears, tells_backwards_apart),
    "w.grad": (may_touch_gradients, sees_each_backward, tells_backwards_apart),
    "w.data.mul_(2)": (tells_backwards_apart,),
    "from somewhere import work\nwork(net)": (out_of_sight, may_touch_gradients, tells_backwards_apart),
    "w.register_hook(print)": (sees_each_backward,),
    "w.shape": (),
    "w.detach()": (),
}


@pytest.mark.parametrize("code", MARKS)
def test_marks(code: str) -> None:
    marks = run(code).trace.marks
    asked = (clears, may_touch_gradients, sees_each_backward, out_of_sight, tells_backwards_apart)
    assert {query for query in asked if any(map(query, marks))} == set(MARKS[code])
