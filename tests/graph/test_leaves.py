"""The parameters of a module are looked for once for as long as it stays the same, and anew once it changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codemods.graph.model.cells import Key
from codemods.graph.model.nodes import Value, all_ancestors
from codemods.graph.model.state import State
from codemods.graph.run.leaves import Leaves
from tests.graph.tools import run

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.calls = 0
        self.kept = None
model = Net()
params = model.parameters()
total = sum(p.sum() for p in params)
"""


def leaves_after(change: str) -> int:
    """How many trainable parameters the engine finds in ``model`` after a change, which it was asked for before."""
    found = run(NET + change)
    owner = found.value("model")
    assert owner is not None
    known = found.machine.run.parameter_leaves(owner)
    found.machine.run.found_leaves.clear()
    assert known == found.machine.run.parameter_leaves(owner)
    return len(known)


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ("model.last = nn.Linear(3, 3)", 1),
        ("model.layers.append(nn.Linear(3, 3))", 1),
        ("setattr(model, 'scale', nn.Parameter(torch.ones(1)))", 1),
        ("model.first.requires_grad_(False)", -1),
        ("model.first = nn.ReLU()", -1),
        ("del model.first", -1),
        ("model.first.requires_grad_(False)\nlist(model.parameters())\nmodel.first.requires_grad_(True)", 0),
        ("model.calls += 1", 0),
        ("model.kept = x * 2", 0),
        ("if x.sum() > 0:\n    model.last = nn.Linear(3, 3)\n    list(model.parameters())", 1),
        ("def grow():\n    model.last = nn.Linear(3, 3)\ngrow()", 1),
        ("if x.sum() > 0:\n    list(model.parameters())\nelse:\n    model.last = nn.Linear(3, 3)", 1),
    ],
)
def test_what_changes_a_model_changes_its_parameters(change: str, more: int) -> None:
    assert leaves_after(change) == leaves_after("pass") + more


def test_paths_that_change_a_model_before_it_is_asked_for_are_told_apart() -> None:
    # both paths fork off from one state, and the model is first looked into on one of them
    code = """
        model = nn.Sequential(nn.Linear(3, 3))
        if x.sum() > 0:
            model[0].requires_grad_(False)
            a = sum(p.sum() for p in model.parameters())
        else:
            b = sum(p.sum() for p in model.parameters())
    """
    found = run(code)
    assert found.graph("b") == "attached"


def test_a_model_that_stays_the_same_is_looked_through_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    plain = Leaves._trainable

    def counted(self: Leaves, owner: Value, seen: set[int]) -> list[object]:
        nonlocal looks
        looks += not seen
        return plain(self, owner, seen)  # type: ignore[return-value]

    monkeypatch.setattr(Leaves, "_trainable", counted)
    steps = "\n".join("total = sum(p.sum() for p in params)" for _ in range(40))
    run(NET + steps)
    assert looks < 20


IN_A_FORWARD = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
        def forward(self, t):
            params = self.layers.parameters()
            {reads}
            return t
    model = Net()
    y = model(x)
    {change}
    z = model(x)
"""


def test_cells_of_parameters_are_noted_as_read_once_in_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(plain: Callable[[State, Key], object]) -> Callable[[State, Key], object]:
        def look(self: State, key: Key) -> object:
            nonlocal looks
            looks += self.reads is not None
            return plain(self, key)

        return look

    monkeypatch.setattr(State, "peek", counted(State.peek))
    monkeypatch.setattr(State, "get", counted(State.get))

    def asked(times: int) -> int:
        nonlocal looks
        looks = 0
        run(IN_A_FORWARD.format(reads="\n            ".join(["params"] * times), change="pass"))
        return looks

    few, many = asked(2), asked(42)
    # each more looks for the name, and not for what the parameters are found by
    assert many - few < 40 * 12, many - few


@pytest.mark.parametrize("change", ["model.layers[0].requires_grad_(False)", "model.layers.append(nn.Linear(3, 3))"])
def test_a_call_that_read_parameters_is_run_anew_where_they_change(change: str) -> None:
    code = IN_A_FORWARD.format(reads="t = t + sum(p.sum() for p in params)\n            params", change=change)
    plain, remembered = run(code, memo=False), run(code)
    told = [
        [sorted(n.birth for n in all_ancestors(found.nodes(name)) if n.leaf) for name in ("y", "z")]
        for found in (plain, remembered)
    ]
    assert [len(leaves) for leaves in told[0]] == [len(leaves) for leaves in told[1]]
    assert len(told[1][0]) != len(told[1][1])
