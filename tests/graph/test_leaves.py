"""The parameters of a module are looked for once for as long as it stays the same, and anew once it changes."""

from __future__ import annotations

import pytest

from codemods.graph.model.nodes import Value
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
