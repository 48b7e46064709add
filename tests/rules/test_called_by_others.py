"""Methods that a class has its state from, and that code elsewhere calls: its other methods find what they left."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Finding
from tests.rules.tools import found

BASE = """
import torch
from torch import nn

class Trainer:
    def {setup}(self, options):
        {first}
        self.net = nn.Linear(4, 2)
        self.loss_of = nn.MSELoss()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=options.lr)

    def one_turn(self):
        x, y = torch.randn(3, 4), torch.zeros(3, 2)
        loss = self.loss_of(self.net(x), y)
        {more}
        self.opt.zero_grad()
        loss.backward(retain_graph=True)
        self.opt.step()
        {after}

    {another}
"""

DERIVED = """
import torch
from trainer import Trainer

class Special(Trainer):
    def {setup}(self, options):
        Trainer.{setup}(self, options)
        self.rate = options.lr

    def again(self):
        self.opt.zero_grad()
        loss = self.net(torch.ones(4)).sum()
        loss.backward()
        self.opt.step()
"""


def flags(folder: Path, *, setup: str = "prepare", **parts: str) -> list[Finding]:
    given = {"first": "pass", "more": "pass", "after": "pass", "another": "pass"} | parts
    return found(folder, "surplus-retain-graph", DERIVED.format(setup=setup), trainer=BASE.format(setup=setup, **given))


@pytest.mark.parametrize("setup", ["prepare", "initialize", "x17"])
def test_a_method_that_a_derived_class_calls_sets_the_object_up(tmp_path: Path, setup: str) -> None:
    findings = flags(tmp_path, setup=setup)
    assert [f.promise.value for f in findings] == ["exact"]


def test_what_it_leaves_is_found_by_others_too(tmp_path: Path) -> None:
    findings = flags(tmp_path, another="def show(self, x):\n        print(self.net(x))")
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize(
    "parts",
    [
        # a graph of an earlier turn
        {"first": "self.last = 0.0", "more": "loss = loss + self.last", "after": "self.last = loss"},
        # and one that the object is set up with
        {"after": "self.kept.sum().backward()", "more": "self.kept = self.net(x); loss = loss + self.kept.mean()"},
        # what sets it up walks, and so is no way to set it up
        {"first": "self.again = torch.ones(2)", "more": "self.other = self.net(x)",
         "another": "def finish(self):\n        self.other.sum().backward()", "after": "self.finish()"},
        # what the object was not set up with stays unseen
        {"more": "loss = loss + self.outside"},
        {"more": "loss = loss + self.outside", "another": "def give(self, other):\n        self.outside = other"},
    ],
)  # fmt: skip
def test_what_may_be_walked_again_keeps_its_flag(tmp_path: Path, parts: dict[str, str]) -> None:
    findings = flags(tmp_path, **parts)
    assert [f for f in findings if f.promise.value != "advice" and "self.other" not in parts["more"]] == []


def test_a_method_that_walks_is_run_for_itself_only(tmp_path: Path) -> None:
    another = "def warm_up(self, x):\n        self.scale = self.net(x).mean()\n        self.scale.backward()"
    findings = flags(tmp_path, more="loss = loss * self.scale", another=another)
    assert [f for f in findings if f.promise.value != "advice"] == []
