"""Losses in objects that a list keeps, and in a ``Counter`` that adds up what it is updated with."""

from __future__ import annotations

import pytest

from tests.rules.tools import LEARNING, Told, told_of

HEAD = (
    LEARNING
    + """
from collections import Counter, namedtuple
from dataclasses import dataclass
from elsewhere import report

@dataclass
class Row:
    step: int
    loss: object = None

class Entry:
    def __init__(self, step, loss):
        self.step = step
        self.loss = loss

class Rounded:
    def __init__(self, loss):
        self.loss = loss.item()

@dataclass
class Checked:
    loss: object

    def __post_init__(self):
        assert self.loss.requires_grad

kept = []
"""
)

ROWS = {
    "a dataclass": (
        """
for step, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    kept.append(Row(step, loss))
print(kept[-1].loss)
""",
        "kept.append(Row(step, loss.detach()))",
    ),
    "by name": (
        """
for step, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    kept.append(Row(step, loss=loss))
print([row.loss for row in kept])
""",
        "kept.append(Row(step, loss=loss.detach()))",
    ),
    "a class with names of its own": (
        """
for step, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    kept.append(Entry(step, loss))
print([entry.loss.item() for entry in kept])
""",
        "kept.append(Entry(step, loss.detach()))",
    ),
    "code that cannot be seen gets them": (
        """
for step, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    kept.append(Row(step, loss))
report(kept)
""",
        "kept.append(Row(step, loss.detach()))",
    ),
}

COUNTERS = {
    "a dict": (
        """
counter = Counter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    counter.update({"loss": loss, "seen": len(x)})
print(counter["loss"] / counter["seen"])
""",
        'counter.update({"loss": loss.detach(), "seen": len(x)})',
    ),
    "names": (
        """
counter = Counter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    counter.update(loss=loss, seen=1)
print(counter)
""",
        "counter.update(loss=loss.detach(), seen=1)",
    ),
    "an attribute": (
        """
class Log:
    def __init__(self):
        self.sums = Counter(loss=0)

log = Log()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    log.sums.update(loss=loss * len(x))
print(log.sums["loss"])
""",
        "log.sums.update(loss=loss.detach() * len(x))",
    ),
}

LEFT = {
    "its number": """
counter = Counter()
for step, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    kept.append(Row(step, loss.item()))
    counter.update(loss=loss.item())
print(kept, counter)
""",
    "a class that takes its number": """
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    kept.append(Rounded(loss))
print(kept)
""",
    "all are walked at the end": """
for step, (x, y) in enumerate(batches()):
    kept.append(Row(step, criterion(net(x), y)))
learn(sum(row.loss for row in kept))
""",
    "a sum that is walked": """
counter = Counter()
for x, y in batches():
    counter.update(loss=criterion(net(x), y))
learn(counter["loss"])
""",
    "a row of each step's own": """
for step, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    rows = []
    rows.append(Row(step, loss))
    print(rows[0].loss)
""",
    "a counter of each step's own": """
for x, y in batches():
    counter = Counter()
    loss = criterion(net(x), y)
    learn(loss)
    counter.update(loss=loss)
    print(counter)
""",
    "a graph that is still there may be walked where it cannot be seen": """
for step, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    kept.append(Row(step, loss))
report(kept)
""",
    "a dict takes the place of what lay there": """
latest = dict()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    latest.update(loss=loss)
print(latest)
""",
}


def _told(folder: pytest.TempPathFactory, rule: str, found: dict[str, tuple[str, str]]) -> dict[str, Told]:
    programs = {name: text for name, (text, _) in found.items()} | LEFT
    return told_of(folder.mktemp(rule), rule, HEAD, programs)


@pytest.fixture(scope="module", name="histories")
def _histories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    return _told(tmp_path_factory, "attached-loss-history", ROWS)


@pytest.fixture(scope="module", name="totals")
def _totals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    return _told(tmp_path_factory, "attached-loss-total", COUNTERS)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_keeps_the_loss_without_its_graph(histories: dict[str, Told], name: str) -> None:
    assert histories[name].written == [ROWS[name][1]]


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_adds_up_losses_without_their_graphs(totals: dict[str, Told], name: str) -> None:
    assert totals[name].written == [COUNTERS[name][1]]


@pytest.mark.parametrize("name", LEFT)
def test_it_is_left(histories: dict[str, Told], totals: dict[str, Told], name: str) -> None:
    assert histories[name] == totals[name] == Told([], [])


def test_a_class_with_code_of_its_own_is_left_as_it_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    program = """
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    kept.append(Checked(loss))
print([one.loss for one in kept])
"""
    told = told_of(tmp_path_factory.mktemp("checked"), "attached-loss-history", HEAD, {"checked": program})
    assert told["checked"].written == []
