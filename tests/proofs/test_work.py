"""How often proofs ask the same again: as often in a large program as in a small one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from codemods.graph.model.kinds import WalkKind
from codemods.graph.model.nodes import Node
from codemods.graph.model.trace import Mark, Trace
from codemods.proofs import carried, effects
from codemods.proofs.carried import Carry, Ledger
from codemods.proofs.early_changes import changes_of, late
from codemods.proofs.gradients import Event, Lives
from codemods.proofs.marks import clearings
from codemods.proofs.reach import SurePaths
from codemods.proofs.sums import Means
from codemods.rules import all_rules
from codemods.rules.grad_in_evaluation import phases
from codemods.rules.grad_in_evaluation.phases import Phases
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


def _counted(monkeypatch: pytest.MonkeyPatch, owner: type | ModuleType, name: str) -> Counter[str]:
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


def _carrying(reads: int) -> str:
    """A loop whose state goes on to the next turn, which reads it so many times."""
    used = " + ".join(f"net(state) * {i + 2}" for i in range(reads))
    return f"""
net = nn.Linear(3, 3)
state = net(x)
for step in range(4):
    y = {used}
    y.sum().backward(retain_graph=True)
    state = net(y)
"""


def test_what_is_walked_again_is_looked_for_once_for_all_that_a_turn_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [run(_carrying(reads)).trace for reads in (1, 30)]
    calls = _counted(monkeypatch, SurePaths, "below")
    asked = []
    for trace in traces:
        assert Ledger(trace).carries
        asked.append(calls.pop("below"))
    assert asked[0] == asked[1] > 0


def test_what_each_part_carries_stays_its_own() -> None:
    source = """
net = nn.Linear(3, 3)
a = net(x)
b = net(x)
for step in range(3):
    y = net(a) + net(b)
    y.sum().backward(retain_graph=True)
    a = net(y)
    b = net(x)
"""
    trace = run(source).trace
    carries = Ledger(trace).carries
    assert {carry.carrier.name for carry in carries} == {"a"}
    assert all(carry.store.line != carry.child.place.line for carry in carries)


@pytest.mark.parametrize("first", ["a", "b"])
def test_the_last_store_before_a_read_held_the_value(first: str) -> None:
    second = {"a": "b", "b": "a"}[first]
    source = f"""
net = nn.Linear(3, 3)
a = b = net(x)
for step in range(3):
    y = net(a) + net(b)
    y.sum().backward(retain_graph=True)
    h = net(y)
    {first} = h
    {second} = h
"""
    carries: list[Carry] = Ledger(run(source).trace).carries
    lines = {carry.carrier.name: carry.store.line for carry in carries}
    assert sorted(lines) == ["a", "b"]
    assert lines[second] == lines[first] + 1


CLEARED = """
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    y = net(x)
    y.sum().backward()
    {between}
    opt.step()
"""


@pytest.mark.parametrize(
    ("between", "changed"),
    [("pass", True), ("opt.zero_grad()", False), ("net.zero_grad()", False), ("other.zero_grad()", True)],
)
def test_a_step_changes_what_a_backward_has_filled_and_nothing_cleared(between: str, changed: bool) -> None:
    trace = run("other = nn.Linear(2, 2)\n" + CLEARED.format(between=between)).trace
    assert bool(changes_of(trace)) is changed


def test_changes_of_parameters_are_worked_out_once_for_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = run(CLEARED.format(between="pass")).trace
    calls = _counted(monkeypatch, Trace, "once")
    worked: list[Trace] = []

    def clears(asked: Trace) -> list[Mark]:
        worked.append(asked)
        return clearings(asked)

    monkeypatch.setattr("codemods.proofs.early_changes.clearings", clears)
    for earlier, walk in zip(trace.walks, trace.walks[1:], strict=False):
        late(trace, earlier, walk)
    assert calls["once"] > 1
    assert worked == [trace]


def _evaluating(forwards: int) -> str:
    inner = "\n    ".join(f"y = net(x) + {i}" for i in range(forwards))
    return f"""
import sys
net = nn.Linear(3, 3)
train = sys.argv[1] == "train"
def many():
    {inner}
    return y
for step in range(3):
    loss = many().sum()
    if train:
        loss.backward()
"""


def test_the_statements_of_a_phase_are_told_once_for_all_forwards_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [run(_evaluating(forwards)).trace for forwards in (1, 20)]
    asked: list[int] = []
    original = phases._needed_elsewhere

    def needed(*args: Any) -> bool:
        asked[-1] += 1
        return original(*args)

    monkeypatch.setattr(phases, "_needed_elsewhere", needed)
    for trace in traces:
        asked.append(0)
        of_run = Phases(trace)
        found = [of_run.of(forward) for forward in trace.forwards]
        assert {phase.test for phase in found if phase is not None} == {"train"}
    assert asked[0] == asked[1] > 0


def test_each_function_that_code_enters_is_asked_once_what_else_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    depth = 6
    functions = [f"def f{i}(x):\n    return f{i + 1}(x) + f{i + 1}(x)\n" for i in range(depth)]
    source = "\n".join([*functions, f"def f{depth}(x):\n    return x * 2\n", "net = nn.Linear(3, 3)", "y = f0(net(x))"])
    trace = run(source).trace
    calls = _counted(monkeypatch, effects, "writes_elsewhere")
    told = trace.once(effects.Effects)
    body = next(frame.call.statement for frame in trace.frames if frame.call is not None)
    assert body is not None
    assert told.of(body) == told.of(body) == ""
    assert calls["writes_elsewhere"] == depth + 1


def test_functions_that_call_each_other_may_all_do_what_one_of_them_does() -> None:
    source = """
def even(n, x):
    return x if n == 0 else odd(n - 1, x)


def odd(n, x):
    seen.append(n)
    return x if n == 0 else even(n - 1, x)


seen = []
net = nn.Linear(3, 3)
y = even(4, net(x))
"""
    trace = run(source).trace
    told = effects.Effects(trace)
    definitions = {frame.definition for frame in trace.frames if frame.definition is not None}
    assert {bool(told.of(definition)) for definition in definitions} == {True}


def test_rules_share_what_a_run_says_of_what_steps_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nh = torch.zeros(3)\nfor step in range(9):\n"
    code += "    h = net(x * h)\n    h.sum().backward()\n    opt.step()\n"
    trace = run(code).trace
    made = _counted(monkeypatch, Ledger, "__init__")
    crossing = _counted(monkeypatch, carried, "crossed")
    rules = [all_rules()[name] for name in ("carried-hidden-state", "stored-graph", "hook-keeps-graph")]
    seen, asked = [], []
    for rule in rules * 2:
        seen.append(len(list(rule.observe(trace))))
        asked.append(crossing["crossed"])
    assert made["__init__"] == 1
    assert sum(seen[:2]) > 0
    assert seen[:3] == seen[3:]
    # whoever asks again hears what is known
    ledger = trace.once(Ledger)
    for walk in trace.walks:
        assert ledger.crossings(walk) is ledger.crossings(walk)
