"""inplace-on-detached: only where saved memory is changed between the forward and the backward that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from codemods.graph.model.facts.saved import SAVES_INPUT, SAVES_OUTPUT
from tests.rules.tools import found, lines, mended

RULE = "inplace-on-detached"

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
net = nn.Linear(4, 4)
head = nn.Linear(4, 1)
optimizer = torch.optim.SGD(list(net.parameters()) + list(head.parameters()), lr=0.1)
"""

STEP = """
for step in range(3):
    x = torch.rand(8, 4)
    h = {forward}
    loss = {loss}
    {change}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
"""


def _step(
    forward: str = "torch.sigmoid(net(x))",
    loss: str = "h.sum()",
    change: str = "h.detach().clamp_(0, 1)",
    after: str = "pass",
) -> str:
    return STEP.format(forward=forward, loss=loss, change=change.replace("\n", "\n    "), after=after)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (_step(), "h.detach().clone().clamp_(0, 1)"),
        (_step(change="y = h.detach()\ny[0] = 0"), "y = h.detach().clone()"),
        (_step(change="y = h.detach()\ny += 1"), "y = h.detach().clone()"),
        (_step(change="y = h.detach().view(-1)\ny.mul_(2)"), "y = h.detach().clone().view(-1)"),
        (_step(change="y = Variable(h)\ny.mul_(2)"), "y = Variable(h).clone()"),
        (_step(change="print(h.view(-1).sum())\ny = h.detach()\ny.mul_(2)"), "y = h.detach().clone()"),
        (_step(change="F.relu(h.detach(), inplace=True)"), "F.relu(h.detach().clone(), inplace=True)"),
        (_step(forward="net(x)", loss="h.pow(2).sum()"), "h.detach().clone().clamp_(0, 1)"),
        (_step(forward="net(x)", loss="head(h).sum()"), "h.detach().clone().clamp_(0, 1)"),
        (_step(forward="net(x)", loss="F.mse_loss(h, x)"), "h.detach().clone().clamp_(0, 1)"),
        (_step(forward="net(x)", loss="(h * head(x)).sum()"), "h.detach().clone().clamp_(0, 1)"),
    ],
)
def test_changed_before_its_backward(tmp_path: Path, code: str, line: str) -> None:
    findings = found(tmp_path, RULE, HEAD, code)
    assert [promise for _, promise in lines(findings)] == ["repair"]
    assert line in mended(tmp_path, findings)


def test_through_data_it_runs(tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, HEAD, _step(change="y = h.data\ny.zero_()"))
    assert [promise for _, promise in lines(findings)] == ["behaviour"]
    assert "y = h.detach().clone()" in mended(tmp_path, findings)


@pytest.mark.parametrize(
    "code",
    [
        _step(change="y = h.detach().clone()\ny.zero_()"),
        _step(change="y = h.clone().detach()\ny.zero_()"),
        _step(change="y = h.detach().cpu()\ny.zero_()"),
        _step(change="y = h.detach().contiguous()\ny.zero_()"),
        _step(change="y = h.detach() if step else h.clone().detach()\ny.zero_()"),
        _step(change="y = h.detach()\ny = y.clamp(0, 1)\ny.mul_(2)"),
        _step(change="y = h.detach()\ny = y + 1\ny += 1"),
        _step(change="y = x.detach()\ny.zero_()"),
        _step(change="pass", after="h.detach().zero_()"),
        _step(change="y = h.detach()\ny.zero_()\nloss = loss + h.mean()"),
        _step(change="y = h.detach()\ny.zero_()", after="print(h)"),
        _step(change="v = h.view(-1)\nh.detach().clamp_(0, 1)\nprint(v.sum())"),
        _step(change="v = h.t().flatten()[1:]\nw = h.t()\nh.detach().clamp_(0, 1)", after="print(w)"),
        _step(forward="net(x)", loss="(h + 1).sum()"),
        _step(forward="net(x)", loss="(h * 2).sum()"),
        _step(forward="net(x)", loss="(h * x).sum()"),
        _step(forward="net(x)", loss="(h / x).sum()"),
        _step(forward="x * 2", loss="net(x).sum()"),
        _step(change="y = h.detach()\ny.unsqueeze_(0)"),
        _step(change="with torch.no_grad():\n    p = torch.sigmoid(net(x))\n    p.detach().zero_()"),
        "w = torch.rand(4, requires_grad=True)\n"
        "opt = torch.optim.SGD([w], lr=1.)\n"
        "for i in range(3):\n"
        "    loss = (w - 3).pow(2).sum()\n"
        "    opt.zero_grad()\n"
        "    loss.backward()\n"
        "    opt.step()\n"
        "    w.detach().clamp_(-1, 1)\n",
        "def show(h, loss):\n    y = h.detach()\n    y.zero_()\n    loss.backward()\n",
    ],
)
def test_silent(tmp_path: Path, code: str) -> None:
    assert not found(tmp_path, RULE, HEAD, code)


SHAPES = {"1d": (2, 4, 3), "2d": (2, 4, 3, 3), "3d": (2, 4, 3, 3, 3)}
LAYERS = {
    **{f"Conv{d}d": (4, 4, 1) for d in (1, 2, 3)},
    **{f"ConvTranspose{d}d": (4, 4, 1) for d in (1, 2, 3)},
    **{f"BatchNorm{d}d": (4,) for d in (1, 2, 3)},
    "Linear": (4, 4),
    "LayerNorm": (4,),
    "GroupNorm": (2, 4),
}


def _apply(label: str, x: torch.Tensor) -> torch.Tensor:
    if label in LAYERS:
        return getattr(nn, label)(*LAYERS[label])(x)
    if label.lower().endswith("loss") or "cross_entropy" in label:
        loss = getattr(nn, label)() if label[0].isupper() else getattr(nn.functional, label)
        return loss(x, torch.rand_like(x.detach()))
    if label.lower() == "pow":
        return x**3
    if "softmax" in label.lower() or label == "logsumexp":
        return getattr(nn, label)(dim=-1)(x) if label[0].isupper() else getattr(torch, label)(x, -1)
    if label[0].isupper():
        return getattr(nn, label)()(x)
    if label == "clamp":
        return x.clamp(min=0.1)
    return getattr(torch, label)(x) if hasattr(torch, label) else getattr(nn.functional, label)(x)


@pytest.mark.parametrize("label", sorted(SAVES_INPUT | SAVES_OUTPUT))
def test_what_is_said_to_be_saved_is_saved(label: str) -> None:
    """The facts that the rule stands on, by the installed torch."""
    shape = next((s for d, s in SHAPES.items() if label.endswith(d) and label != "BatchNorm1d"), (2, 4))
    x = torch.rand(shape, requires_grad=True) * 2
    y = _apply(label, x)
    (x if label in SAVES_INPUT else y).detach().add_(0.5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("label", ["mul", "matmul", "mm"])
def test_products_of_two_attached_tensors_save_both(label: str) -> None:
    for changed in (0, 1):
        pair = [torch.rand(3, 3, requires_grad=True) * 2 for _ in range(2)]
        product = getattr(torch, label)(*pair)
        pair[changed].detach().add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()
