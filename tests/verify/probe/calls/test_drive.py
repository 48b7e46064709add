"""Functions that are called at the end of a run: how they are found, and what is told of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from tests.verify.probe.tools import forked
from verify.reaching.drives import CallSite, Drive, drive

pytestmark = pytest.mark.slow

TRAIN = """\
import torch
class Meter:
    def __init__(self):
        self.seen = []
    def read(self, scale=2):
        return scale * len(self.seen)
def total(values, weight):
    return sum(values) * weight
def fails(values):
    return values.missing
def leaves(values):
    raise SystemExit(3)
def silent(values):
    pass
def made(images, labels, size):
    images = images.view(size, -1)
    return torch.nn.functional.cross_entropy(images, labels)
class Net(torch.nn.Module):
    def __init__(self, width, kind="linear"):
        super().__init__()
        self.first = torch.nn.Linear(width, 3)
    def forward(self, x):
        self.calls = self.first(x)
        return self.calls.relu()
def main():
    values, weight = [1, 2], torch.ones(1, requires_grad=True)
    meter = Meter()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(100):
        (weight * 2).sum().backward()
        optimizer.step()
    print("never")
main()
"""


def driven(*drives: Drive, strict: bool = False, **more: Any) -> Any:
    config = {"drive": [each.configuration() for each in drives], "strict": strict}
    return forked(TRAIN, steps=3, **config, **more)


def site(function: str, arguments: str) -> CallSite:
    return CallSite("train.py", 31, "main", function, arguments)


def test_as_a_call_has_it_and_by_names() -> None:
    record, done = driven(
        Drive(
            "train.py", "total", (site("other", "__codemod_take__(1)"), site("total", "__codemod_take__(values, 3)"))
        ),
        Drive("train.py", "total"),
        Drive("train.py", "Meter.read"),
    )
    assert [(each.name, each.call, each.how, each.reason, each.error) for each in record.driven] == [
        ("total", 1, "as train.py:31 calls it", "", None),
        ("total", 2, "as train.py:31 calls it", "", None),
        ("total", 1, "with what is called like its parameters", "", None),
        ("total", 2, "with what is called like its parameters", "", None),
        ("Meter.read", 1, "with what is called like its parameters", "", None),
        ("Meter.read", 2, "with what is called like its parameters", "", None),
    ], done.stderr
    assert all(each.told for each in record.driven)
    assert (record.end, len(record.steps)) == ("steps", 3)
    assert "never" not in done.stdout


def test_what_cannot_be_called_and_what_fails() -> None:
    record, _ = driven(
        Drive("train.py", "absent"),
        Drive("train.py", "fails"),
        Drive("train.py", "leaves"),
        Drive("missing.py", "total"),
        Drive("train.py", "silent"),
    )
    told = {each.name if each.path == "train.py" else each.path: each for each in record.driven}
    assert told["absent"].reason == "absent is not made where it stands"
    assert told["fails"].error is not None
    assert (told["fails"].error.type, told["fails"].line) == ("AttributeError", ("train.py", 10))
    assert told["leaves"].error is not None
    assert told["leaves"].error.type == "SystemExit"
    assert told["missing.py"].reason.startswith("its file cannot be loaded")
    assert (told["silent"].error, told["silent"].told) == (None, 0)
    assert record.end == "steps"


def test_a_strict_error_ends_the_run() -> None:
    record, done = driven(Drive("train.py", "fails"), strict=True)
    assert (record.end, done.returncode) == ("raised", 1)
    assert record.error is not None
    assert record.error.type == "AttributeError"
    assert "drive.py" not in record.traceback


def test_lines_that_only_a_call_at_the_end_reached() -> None:
    record, _ = driven(Drive("train.py", "total"), watch={"train.py": [8, 29]})
    assert record.reached == {("train.py", 8), ("train.py", 29)}
    assert record.alone == {("train.py", 8)}


def test_what_nothing_is_at_hand_for_is_made_up_and_made_again() -> None:
    trees = {"train.py": ast.parse(TRAIN)}
    wanted = [drive("train.py", "made", trees, [16, 17]), drive("train.py", "Net.forward", trees, [23, 24])]
    record, done = driven(*wanted, make_up=True, seed=0)
    shown = [(each.name, each.how, each.reason, each.error) for each in record.driven if each.call == 1]
    assert shown == [
        ("made", "with made-up arguments (images: float32 2×4, labels: float32 2×4, size: 2)", "", None),
        (
            "Net.forward",
            "with made-up arguments (x: float32 2×2), on a Net made with made-up arguments (width: 2)",
            "",
            None,
        ),
    ], done.stderr
    # What was tried left nothing behind, and the other program is given the same.
    recipes = {each.name: each.recipe for each in record.driven}
    again, _ = driven(*(replace(each, recipe=recipes[each.name]) for each in wanted), make_up=True, seed=0)
    assert [each.values.digest for each in again.outputs] == [each.values.digest for each in record.outputs]
    assert len([each for each in record.outputs if each.form is not None]) == 4
    assert record.outputs[0].graphs.partition("|")[0] == "1"
    assert "what is called" not in done.stdout
