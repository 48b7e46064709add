"""What a function leaves to a caller that cannot be seen, whose ``.grad`` that caller may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found, lines

START = """import dataclasses
import functools
import types
\
import torch
from torch import nn
import torch.nn.functional as F

KEPT = {}
LAST = []


class Box:
    def __init__(self):
        self.items = []
        self.inner = types.SimpleNamespace()


@dataclasses.dataclass
class Made:
    x: object


BOX = Box()
NAMED = {"a": Box()}
NET = nn.Linear(4, 1)
"""

FIT = """
def fit(y, out=None, box=None):
    net = nn.Linear(4, 1)
    x = torch.randn(3, 4).requires_grad_()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    {end}
"""

LEFT = [
    "return x",
    "return x, loss.item()",
    "return {'x': x}",
    "return [x]",
    "return Made(x)",
    "return types.SimpleNamespace(x=x)",
    "return lambda: x.grad",
    "return functools.partial(print, x)",
    "return iter([x])",
    "return x.view(-1)",
    "yield x",
    "KEPT['x'] = x",
    "LAST.append(x)",
    "out.append(x)",
    "box.x = x",
    "BOX.x = x",
    "BOX.items.append(x)",
    "BOX.inner.x = x",
    "NAMED['a'].x = x",
    "NET.x = x",
    "Box.x = x",
    "fit.x = x",
    "net.x = x\n    return net",
    "made = Box()\n    made.x = x\n    return made",
    "error = ValueError()\n    error.x = x\n    raise error",
]

TAKEN_ALONG = [
    "return loss.item()",
    "return x.detach()",
    "return x.shape",
    "return net",
    "return x.detach().clone().requires_grad_(False)",
    "kept = {'y': y}\n    return kept",
    "made = Box()\n    made.x = x",
    "made = Box()\n    made.x = x.detach()\n    return made",
    "BOX.x = x.detach()",
]


@pytest.mark.parametrize("end", LEFT)
def test_a_gradient_that_a_caller_may_read_is_asked_for(tmp_path: Path, end: str) -> None:
    assert lines(found(tmp_path, "input-requires-grad", START, FIT.format(end=end))) == []


@pytest.mark.parametrize("end", TAKEN_ALONG)
def test_one_that_nobody_can_come_to_is_not(tmp_path: Path, end: str) -> None:
    (finding,) = found(tmp_path, "input-requires-grad", START, FIT.format(end=end))
    assert finding.promise is Promise.EXACT


WEIGHTS = """
class Flat(nn.Module):
    def reset(self, state, in_place=True):
        if in_place:
            weights = self.weights
        else:
            weights = torch.empty_like(self.weights).requires_grad_()
        with torch.no_grad():
            self.fill(weights, state)
        return weights

    def fill(self, weights, state):
        state.net({taken})
"""


@pytest.mark.parametrize("taken", ["weights", "weights.detach()"])
def test_weights_made_for_a_caller_stay_leaves(tmp_path: Path, taken: str) -> None:
    assert lines(found(tmp_path, "input-requires-grad", START, WEIGHTS.format(taken=taken))) == []
