"""A total is a number only where what divides it is proven not to be 0: there a number raises, a tensor does not."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.source.options import Options
from tests.rules.tools import LEARNING as HEAD
from tests.rules.tools import analysed, mended

RULES = ("attached-loss-total", "attached-loss-history")

LOOP = """
total = 0
{begin}
for i, (x, y) in enumerate(loader):
    loss = criterion(net(x), y)
    learn(loss)
    total += loss
{turn}
{end}
"""

METER = """
class Meter:
    def __init__(self):
        self.reset()
    def reset(self):
        self.total = 0
        self.count = 0
    def add(self, value, n=1):
        self.total += value * n
        self.count += n
    @property
    def mean(self):
        return self.total / self.count

meter = Meter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    meter.add({given})
{end}
print(meter.mean)
"""


def form(folder: Path, program: str) -> str:
    """What a rewrite makes of the loss that is kept."""
    result = mended(
        folder, analysed(folder, Options(select=RULES), HEAD, "loader = [*batches()]\nwrong = []\n", program)
    )
    return next(word for word in ("loss.item()", "loss.detach()") if word in result)


def parted(begin: str = "pass", turn: str = "pass", end: str = "pass") -> str:
    """A loop with a total, and what stands before, in and behind it."""
    return LOOP.format(begin=begin, turn=indent(turn, "    "), end=end)


NUMBERS = {
    "a constant": ("pass", "pass", "print(total / 4)"),
    "the data": ("pass", "pass", "print(total / len(loader))"),
    "as many turns as there are": ("n = len(loader)", "pass", "print(total / n)"),
    "the turn, from 1 on": ("pass", "print(total / (i + 1))", "pass"),
    "a counter beside the sum": ("n = 0", "n += 1", "print(total / n)"),
    "a counter written out": ("n = 0", "n = n + 1", "print(total / n)"),
    "a counter in a dict": ("c = {'n': 0}", "c['n'] += len(x)", "print(total / c['n'])"),
    "a count of rows": ("n = 0", "n += x.size(0)", "print(total / n)"),
    "a count that is reset with the sum": ("n = 0", "n += 1\nif i == 3:\n    total = 0\n    n = 0", "print(total / n)"),
    "a window": ("k = int(input())", "if i % k == 0:\n    print(total / k)", "pass"),
    "at least one": ("pass", "pass", "print(total / max(1, len(wrong)))"),
    "a list that grows with it": ("seen = []", "seen.append(1)", "print(total / len(seen))"),
    "an argument": ("def tell(total, n):\n    print(total / n)", "pass", "tell(total, len(loader))"),
    "a default": ("def tell(total, n=2):\n    print(total / n)", "pass", "tell(total)"),
}

TENSORS = {
    "a list of some": ("pass", "wrong += [v for v in y if v.sum() > 100]", "print(total / len(wrong))"),
    "a list that some turns fill": ("pass", "if i == 99:\n    wrong.append(x)", "print(total / len(wrong))"),
    "a counter of some": ("c = {'n': 0}", "c['n'] += int(y.max() > 9)", "print(total / c['n'])"),
    "a sum of flags": ("pass", "wrong.append(bool(y.max() > 9))", "print(total / sum(wrong))"),
    "an argument": ("def tell(total, n):\n    print(total / n)", "pass", "tell(total, 0)"),
    "a default": ("def tell(total, n=0):\n    print(total / n)", "pass", "tell(total)"),
    "a difference": ("a = b = 0", "a += 1; b += 1", "n = a - b\nprint(total / n)"),
    "a counter that goes down": ("n = 50", "n -= 1", "print(total / n)"),
    "the turn, from 0 on": ("pass", "print(total / i)", "pass"),
    "the least of two": ("pass", "print(total / min(i, 3))", "pass"),
    "a flag": ("n = False", "pass", "print(total / n)"),
    "one of two names": ("n, m = 0, 1", "pass", "print(total / n)"),
    "the last of several names": ("*m, n = 1, 2, 0", "pass", "print(total / n)"),
    "one of names within names": ("n = 1\n(n, m), k = (0, 1), 2", "pass", "print(total / n)"),
    "one that a test binds": ("n = 1\nif (n := int(input())) > 3:\n    pass", "pass", "print(total / n)"),
    "a counter behind it": ("n = 0", "print(total / n)\nn += 1", "pass"),
    "a counter that a turn may leave out": ("n = 0", "if x.sum() > 99:\n    continue\nn += 1", "print(total / n)"),
    "a counter of the other branch": ("n = 0", "if i > 3:\n    pass\nelse:\n    n += 0", "print(total / n)"),
    "a counter that is reset alone": ("n = 0", "n += 1\nif i % 2:\n    n = 0", "print(total / n)"),
    "a rest": ("pass", "print(total / (i % 2))", "pass"),
    "a counter of another function": (
        "n = 0\ndef more(k):\n    global n\n    n += k", "more(0)", "print(total / n)",
    ),
    "what is rounded": ("pass", "pass", "print(total / int(len(loader) / 64))"),
    "what nobody knows": ("pass", "pass", "print(total / float(input()))"),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_a_total_over_what_is_not_0_is_a_number(tmp_path: Path, name: str) -> None:
    assert form(tmp_path, parted(*NUMBERS[name])) == "loss.item()"


@pytest.mark.parametrize("name", TENSORS)
def test_a_total_over_what_may_be_0_stays_a_tensor(tmp_path: Path, name: str) -> None:
    assert form(tmp_path, parted(*TENSORS[name])) == "loss.detach()"


@pytest.mark.parametrize(
    ("given", "end", "expected"),
    [
        ("loss", "pass", "loss.item()"),
        ("loss, 2", "pass", "loss.item()"),
        ("loss, x.size(0)", "pass", "loss.item()"),
        ("loss, n=len(x)", "pass", "loss.item()"),
        ("loss, 0", "pass", "loss.detach()"),
        ("loss, n=(y > 9).sum().item()", "pass", "loss.detach()"),
        ("loss", "meter.count = 0", "loss.detach()"),
    ],
)
def test_a_meter_that_divides_by_what_its_calls_give(tmp_path: Path, given: str, end: str, expected: str) -> None:
    assert form(tmp_path, METER.format(given=given, end=end)) == expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("print(total / len(x))", "loss.item()"),
        ("rest = loader\nprint(total / len(rest))", "loss.item()"),
        ("rest = [v for v in loader]\nprint(total / len(rest))", "loss.item()"),
        ("rest = [v for v in loader if v is None]\nprint(total / len(rest))", "loss.detach()"),
        ("rest = loader[50:]\nprint(total / len(rest))", "loss.detach()"),
        ("rest = list(filter(None, loader))\nprint(total / len(rest))", "loss.detach()"),
        ("rest = ''\nprint(total / len(rest))", "loss.detach()"),
        ("rest = list(loader)\nrest.clear()\nprint(total / len(rest))", "loss.detach()"),
        ("rest = x[x > 99]\nprint(total / rest.size(0))", "loss.detach()"),
        ("rest = x[x > 99]\nprint(total / rest.shape[0])", "loss.detach()"),
        ("c = {'n': 1}\nc.update(n=0)\nprint(total / c['n'])", "loss.detach()"),
    ],
)
def test_how_much_there_is_of_something(tmp_path: Path, end: str, expected: str) -> None:
    assert form(tmp_path, parted(end=end)) == expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [("meter.reset()", "loss.item()"), ("setattr(meter, 'count', 0)", "loss.detach()")],
)
def test_a_meter_that_is_reset_from_outside(tmp_path: Path, end: str, expected: str) -> None:
    assert form(tmp_path, METER.format(given="loss", end=end)) == expected


def test_a_meter_that_forgets_its_count_alone(tmp_path: Path) -> None:
    forgetful = METER.replace("    def add(", "    def clear(self):\n        self.count = 0\n    def add(")
    assert form(tmp_path, forgetful.format(given="loss", end="meter.clear()")) == "loss.detach()"


def test_a_counter_that_is_reset_with_the_dict_of_the_sum(tmp_path: Path) -> None:
    program = """
for epoch in range(3):
    parts = {"loss": 0.0}
    n = 0
    for x, y in loader:
        loss = criterion(net(x), y)
        learn(loss)
        parts["loss"] += loss
        n += 1
    print(parts["loss"] / n)
"""
    assert form(tmp_path, program) == "loss.item()"
