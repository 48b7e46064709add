"""``copy.copy`` and ``copy.deepcopy``: what the copy shares with what it was made of."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

CLASS = """
import copy
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([nn.Linear(3, 3)])
        self.cut = False
        self.itself = [self]
    def forward(self, t):
        t = self.inner[0](t)
        return t.detach() if self.cut else t
made = Net()
"""


@pytest.mark.parametrize(
    ("code", "original", "other"),
    [
        ("for p in other.parameters():\n    p.requires_grad = False", "attached", "free"),
        ("other.requires_grad_(False)", "attached", "free"),
        ("made.requires_grad_(False)", "free", "attached"),
        ("other.inner[0].weight.requires_grad = False\nother.inner[0].bias.requires_grad = False", "attached", "free"),
        ("other.itself[0].cut = True", "attached", "free"),
        ("other.cut = True", "attached", "free"),
    ],
)
def test_a_deep_copy_is_a_module_of_its_own(code: str, original: str, other: str) -> None:
    found = run(f"{CLASS}other = copy.deepcopy(made)\n{code}\na, b = made(x), other(x)")
    assert (found.graph("a"), found.graph("b")) == (original, other)


def test_a_copy_is_as_frozen_as_what_it_was_made_of() -> None:
    found = run(f"{CLASS}made.requires_grad_(False)\nother = copy.deepcopy(made)\nb = other(x)")
    assert found.graph("b") == "free"


def test_a_shallow_copy_shares_the_parameters_and_not_the_attributes() -> None:
    head = f"{CLASS}other = copy.copy(made)\n"
    found = run(head + "other.cut = True\na, b = made(x), other(x)")
    assert (found.graph("a"), found.graph("b")) == ("attached", "free")
    found = run(head + "other.requires_grad_(False)\na = made(x)")
    assert found.graph("a") == "free"


def test_a_class_may_copy_by_itself() -> None:
    code = "class Same:\n    def __deepcopy__(self, memo):\n        return self\nsame = Same()\nsame.h = x * w\n"
    found = run(f"import copy\n{code}other = copy.deepcopy(same)\nother.h = x\nh = same.h")
    assert found.graph("h") == "free"


def test_what_cannot_be_seen_and_has_a_graph_is_refused_and_not_followed_for_ever() -> None:
    found = run("import copy\nfrom somewhere import made\ny = made(w)\nz = copy.deepcopy(y)\nu = copy.deepcopy([y, w])")
    assert found.trace.complete
    assert found.trace.notes == []
    assert found.graph("y") == "perhaps"
