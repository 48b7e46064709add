"""Losses of code that cannot be seen: the backward that comes to one proves that it has a graph, and that what was made
of it before has one as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import analysed

TRAINING = """
import torch
import torch.nn.functional as F

class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

def train(model, loader, criterion, optimizer):
    total, parts, kept, meter = 0.0, {{"a": 0.0, "b": 0.0}}, [], Meter()
    for x, y in loader:
        {loss}
        {before}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {after}
    print(total, parts, sum(kept), meter.sum / meter.count)
"""

LOSSES = {
    "a criterion": "loss = criterion(model(x), y)",
    "a function of torch": "loss = F.mse_loss(model(x), y)",
    "a sum": "loss = F.mse_loss(model(x), y) + criterion(model(x), y)",
    "an operator": "loss = -(y * model(x)).mean()",
    "an element": "loss = model(x, y)[0]",
    "an attribute": "loss = model(x, labels=y).loss",
}
KEEPING = {
    "total": ("total += loss", "attached-loss-total"),
    "a new total": ("total = total + loss", "attached-loss-total"),
    "a part": ("parts['a'] += loss", "attached-loss-total"),
    "a list": ("kept.append(loss)", "attached-loss-history"),
    "a meter": ("meter.update(loss, x.size(0))", "attached-loss-history"),
}


def found(tmp_path: Path, loss: str, before: str = "pass", after: str = "pass") -> list[tuple[str, Promise]]:
    code = TRAINING.format(loss=loss, before=before, after=after)
    options = Options(select=("attached-loss-total", "attached-loss-history"))
    return [(f.rule, f.promise) for f in analysed(tmp_path, options, code)]


@pytest.mark.parametrize("keeping", KEEPING)
@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_kept_before_its_backward(loss: str, keeping: str, tmp_path: Path) -> None:
    text, rule = KEEPING[keeping]
    assert found(tmp_path, LOSSES[loss], before=text) == [(rule, Promise.EXACT)]


@pytest.mark.parametrize("keeping", KEEPING)
def test_what_is_kept_after_its_backward(keeping: str, tmp_path: Path) -> None:
    text, rule = KEEPING[keeping]
    assert found(tmp_path, LOSSES["a function of torch"], after=text) == [(rule, Promise.EXACT)]


@pytest.mark.parametrize("keeping", KEEPING)
@pytest.mark.parametrize(
    "loss",
    [
        # no backward comes to these: they may be numbers, or have no graph
        "loss = F.mse_loss(model(x), y); shown = criterion(model(x), y)",
        "loss = F.mse_loss(model(x), y); shown = -(y * model(x)).mean()",
        "loss = F.mse_loss(model(x), y); shown = loss.detach()",
        "loss = F.mse_loss(model(x), y); shown = loss.item()",
        "with torch.no_grad(): shown = criterion(model(x), y)\n        loss = criterion(model(x), y)",
    ],
)
def test_what_no_backward_comes_to_is_left_alone(loss: str, keeping: str, tmp_path: Path) -> None:
    text, _ = KEEPING[keeping]
    assert found(tmp_path, loss, before=text.replace("loss", "shown")) == []


@pytest.mark.parametrize(
    ("loss", "before"),
    [
        # part of what is back-propagated
        ("part = criterion(model(x), y); loss = part", "total = total + part; loss = loss + 0.1 * total"),
        # made anew in every step
        ("loss = criterion(model(x), y)", "total = 0.0; total += loss"),
        ("loss = criterion(model(x), y)", "kept = []; kept.append(loss)"),
    ],
)
def test_what_does_not_outlive_its_step_is_left_alone(loss: str, before: str, tmp_path: Path) -> None:
    assert not {r for r, p in found(tmp_path, loss, before) if p is Promise.EXACT}
