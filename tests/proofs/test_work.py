"""How often proofs ask the same again: as often in a large program as in a small one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from codemods.graph.model.kinds import WalkKind
from codemods.graph.model.nodes import Node
from codemods.proofs.gradients import Event, Lives
from codemods.proofs.sums import Means
from tests.graph.tools import run

STEPS = """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
other = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(9):
    opt.zero_grad()
    other.zero_grad()
    head(net(x)).sum().backward()
    opt.step()
    opt.zero_grad()
    other.zero_grad()
    head(net(x)).sum().backward()
    other.step()
"""


def _network(layers: int) -> str:
    parts = ", ".join("nn.Linear(4, 4)" for _ in range(layers))
    return f"net = nn.Sequential({parts})\nhead = nn.Linear(4, 1)\n{STEPS}"


def _counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Counter[str]:
    calls: Counter[str] = Counter()
    original: Callable[..., Any] = getattr(owner, name)

    def counting(*args: Any) -> Any:
        calls[name] += 1
        return original(*args)

    monkeypatch.setattr(owner, name, counting)
    return calls


def test_parameters_that_the_same_events_name_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [run(_network(layers)).trace for layers in (2, 40)]
    calls = _counted(monkeypatch, Event, "clears")
    asked = []
    for trace in traces:
        lives = Lives(trace)
        for walk in trace.walks:
            lives.fate(walk)
        asked.append(calls.pop("clears"))
    assert asked[0] == asked[1] > 0


@pytest.mark.parametrize("layers", [1, 3])
def test_each_parameter_has_its_own_fate(layers: int) -> None:
    trace = run(_network(layers)).trace
    lives = Lives(trace)
    first, second = trace.walks[:2]
    shared = {leaf for leaf in first.seen if leaf.leaf}
    assert shared == {leaf for leaf in second.seen if leaf.leaf}
    assert len(shared) == layers + 1
    # the first step uses what it gives the network, and throws away what it gives the head; the second the other way
    assert len(lives.fate(first).used) == layers
    assert lives.fate(first).used | lives.fate(second).used == shared
    assert not lives.fate(first).used & lives.fate(second).used


MEANS = """
mean = torch.zeros(3)
total = torch.zeros(3)
for step in range(9):
    y = net(x)
    mean = 0.9 * mean + 0.1 * y
    total = total + y
    (y - mean.detach()).sum().backward()
"""


def test_a_running_mean_is_told_by_what_takes_part_and_not_looked_for_in_all_that_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = run("net = nn.Linear(3, 3)\n" + MEANS).trace
    calls = _counted(monkeypatch, Node, "descendants")
    means = Means(trace)
    found = {event.place.line: means.averages(event) for event in trace.accumulations}
    assert sorted(found.values()) == [False, True]
    assert found[min(found)]
    assert not calls


def test_inputs_of_a_walk_bound_what_it_goes_through() -> None:
    source = """
net = nn.Linear(3, 3)
h = net(x)
y = h * 2
side = (h * 3).sum()
grad = torch.autograd.grad(y.sum(), h, retain_graph=True)
later = (h * 5).sum()
side.backward()
"""
    result = run(source)
    walk = next(w for w in result.trace.walks if w.kind is WalkKind.GRAD)
    through = walk.through
    assert through is not None
    assert {n.operation for n in through} == {"Mult", "sum"}
    assert {n.place.line - min(m.place.line for m in through) for n in through} == {0, 2}
    assert all(n in walk.seen for n in through)
