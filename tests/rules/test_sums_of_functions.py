"""Sums that grow by what a function returns: ``total = add(total, loss)``."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.terms.findings import Finding
from tests.rules.tools import LEARNING, found, mended

TOTAL, HISTORY = "attached-loss-total", "attached-loss-history"

GROWING = {
    "sum": ("def add(a, b):\n    return a + b", "sum_ = add(sum_, loss)", "add(sum_, loss.item())"),
    "other order": ("def add(a, b):\n    return b + a", "sum_ = add(loss, sum_)", "add(loss.item(), sum_)"),
    "by names": ("def add(old, new):\n    return old + new", "sum_ = add(new=loss, old=sum_)", "new=loss.item()"),
    "mean": ("def ema(a, b, m=0.9):\n    return m * a + (1 - m) * b", "sum_ = ema(sum_, loss)", "loss.item())"),
    "weighed": ("def add(a, b, n):\n    return a + b * n", "sum_ = add(sum_, loss, len(x))", "loss.item(), len(x))"),
    "several returns": (
        "def ema(a, b):\n    if a is None:\n        return b.item()\n    return 0.9 * a + 0.1 * b",
        "sum_ = ema(sum_, loss)",
        "ema(sum_, loss.detach())",
    ),
    "method": (
        "class Sums:\n    def add(self, a, b):\n        return a + b\nsums = Sums()",
        "sum_ = sums.add(sum_, loss)",
        "sums.add(sum_, loss.item())",
    ),
    "static method": (
        "class Sums:\n    @staticmethod\n    def add(a, b):\n        return a + b",
        "sum_ = Sums.add(sum_, loss)",
        "Sums.add(sum_, loss.item())",
    ),
    "a loss of its own": (
        "def more(a, x, y):\n    loss = criterion(net(x), y)\n    learn(loss)\n    return a + loss",
        "sum_ = more(sum_, x, y)",
        "return a + loss.item()",
    ),
}


def findings(
    folder: Path, before: str, grows: str, *, after: str = "print(float(sum_))", first: str = ""
) -> list[Finding]:
    step = "loss = criterion(net(x), y)\nlearn(loss)\n"
    text = f"{before}\nsum_ = 0\nfor x, y in batches():\n{indent(first + step + grows, '    ')}\n{after}\n"
    return [finding for rule in (TOTAL, HISTORY) for finding in found(folder, rule, LEARNING, text)]


@pytest.mark.parametrize("name", GROWING)
def test_a_sum_that_a_function_returns_is_found(tmp_path: Path, name: str) -> None:
    before, grows, form = GROWING[name]
    seen = findings(tmp_path, before, grows)
    assert [f.promise.value for f in seen] == ["exact"]
    assert form in mended(tmp_path, seen)


@pytest.mark.parametrize("name", GROWING)
def test_one_that_is_walked_is_left_alone(tmp_path: Path, name: str) -> None:
    before, grows, _ = GROWING[name]
    assert findings(tmp_path, before, grows, after="learn(sum_)") == []


@pytest.mark.parametrize("name", GROWING)
def test_one_that_begins_anew_in_each_step_is_left_alone(tmp_path: Path, name: str) -> None:
    before, grows, _ = GROWING[name]
    assert findings(tmp_path, before, grows + "\nprint(float(sum_))", first="sum_ = 0\n", after="") == []


@pytest.mark.parametrize(
    ("before", "grows"),
    [
        ("def add(a, b):\n    return a + b", "other = add(sum_, loss)"),
        ("def add(a, b):\n    a = 0\n    return a + b", "sum_ = add(sum_, loss)"),
        ("def add(a, b):\n    return a.detach() + b if a else b.item()", "sum_ = add(sum_, loss)"),
        ("def add(a, b):\n    return a + b.detach()", "sum_ = add(sum_, loss)"),
        ("def add(a, b):\n    return a + b", "sum_ = add(sum_, loss.item())"),
        ("def add(a, b):\n    return a + b", "sum_ = add(loss, loss)"),
        ("def add(a, b):\n    return a + b", "sum_ = add(sum_, loss).item()"),
        ("@torch.no_grad()\ndef add(a, b):\n    return a + b", "sum_ = add(sum_, loss)"),
    ],
)
def test_what_does_not_grow_is_no_sum(tmp_path: Path, before: str, grows: str) -> None:
    assert findings(tmp_path, before, grows) == []


def test_the_same_function_in_a_loss_is_left_as_it_is(tmp_path: Path) -> None:
    before = "def add(a, b):\n    return a + b"
    text = "loss = add(criterion(net(x), y), net(x).mean())\nlearn(loss)\nsum_ = add(sum_, loss)"
    seen = findings(tmp_path, before, text)
    after = mended(tmp_path, seen)
    assert "sum_ = add(sum_, loss.item())" in after
    assert "return a + b\n" in after
    assert "add(criterion(net(x), y), net(x).mean())" in after


def test_what_the_function_asks_of_it_counts(tmp_path: Path) -> None:
    before = "def ema(a, b):\n    if a is None:\n        return b.item()\n    return 0.9 * a + 0.1 * b\nmean = None"
    seen = findings(tmp_path, before, "mean = ema(mean, loss)", after="print(mean)")
    assert "mean = ema(mean, loss.detach())" in mended(tmp_path, seen)


def test_what_reads_the_sum_as_a_tensor_gets_one(tmp_path: Path) -> None:
    before = "def add(a, b):\n    return a + b"
    seen = findings(tmp_path, before, "sum_ = add(sum_, loss)", after="print(sum_.item())")
    assert "add(sum_, loss.detach())" in mended(tmp_path, seen)
