"""What is kept under a name that only the run makes up, and is asked whether it is attached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

PROGRAM = """
import torch
from torch import nn

class Slot:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, thing, kind=None):
        return getattr(thing, self.name)

    def __set__(self, thing, value):
        thing.__dict__.setdefault(self.name, []).append(value)

class Slotted:
    kept = Slot()

net, slotted = nn.Linear(3, 1), Slotted()
for x in torch.randn(5, 4, 3):
    loss = net(x).pow(2).mean()
    loss.backward()
    slotted.kept = loss
print({read})
"""


@pytest.mark.parametrize("name", ["is_leaf", "requires_grad", "grad_fn", "_saved_tensors"])
def test_it_keeps_its_graph_where_code_asks_for_it(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, "attached-loss-history", PROGRAM.format(read=f"slotted.kept[-1].{name}")) == []


@pytest.mark.parametrize("name", ["shape", "dtype", "device", "item()"])
def test_it_loses_its_graph_where_none_is_asked_for(tmp_path: Path, name: str) -> None:
    assert len(found(tmp_path, "attached-loss-history", PROGRAM.format(read=f"slotted.kept[-1].{name}"))) == 1


@pytest.mark.parametrize(
    ("read", "error", "stays"),
    [
        ("numpy()", "RuntimeError", True),
        ("numpy().shape", "Exception", True),
        ("numpy()", "OSError", False),
        ("detach().numpy()", "RuntimeError", False),
        ("tolist()", "RuntimeError", False),
        ("item()", "RuntimeError", False),
    ],
)
def test_it_keeps_its_graph_where_code_catches_what_torch_refuses(
    tmp_path: Path, read: str, error: str, stays: bool
) -> None:
    begin, end = PROGRAM.split("print({read})")
    text = f"{begin}try:\n    print(slotted.kept[-1].{read})\nexcept {error}:\n    pass\n{end}"
    assert (found(tmp_path, "attached-loss-history", text) == []) is stays
