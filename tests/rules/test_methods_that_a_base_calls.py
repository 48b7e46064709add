"""Methods of a derived class that a method of its base calls: what the base does around them counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Finding
from tests.rules.tools import found

BASE = """
import torch

class Trainer:
    def __init__(self, model, device="cpu"):
        self.model = model
        self.device = device
        self.losses = []
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def learn(self, batch):
        raise NotImplementedError

    def judge(self, batch):
        raise NotImplementedError

    def fit(self, batches):
        for batch in batches:
            self.learn(batch)
        return self.validate(batches)

    {validate}
"""

DERIVED = """
import torch
from torch.nn import functional as F
from trainer import Trainer

class Classifier(Trainer):
    def learn(self, batch):
        x, y = batch
        loss = F.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def judge(self, batch):
        x, y = batch
        return (self.model(x).argmax(1) == y).float().mean().item()
"""

WITH = """
    def validate(self, batches):
        self.model.eval()
        with torch.no_grad():
            for batch in batches:
                print(self.judge(batch))
"""

DECORATED = """
    @torch.no_grad()
    def validate(self, batches):
        self.model.eval()
        for batch in batches:
            print(self.judge(batch))
"""

BY_ANOTHER = """
    def validate(self, batches):
        self.model.eval()
        with torch.no_grad():
            self.turns(batches)

    def turns(self, batches):
        for batch in batches:
            print(self.judge(batch))
"""

BARE = """
    def validate(self, batches):
        self.model.eval()
        for batch in batches:
            print(self.judge(batch))
"""

OF_TRAINING_ONLY = """
    def validate(self, batches):
        with torch.no_grad():
            print(len(batches))
"""


def evaluations(folder: Path, validate: str, derived: str = DERIVED, **files: str) -> list[Finding]:
    return found(folder, "grad-in-evaluation", derived, trainer=BASE.replace("    {validate}", validate), **files)


@pytest.mark.parametrize("validate", [WITH, DECORATED, BY_ANOTHER])
def test_a_base_that_switches_gradients_off_has_done_it(tmp_path: Path, validate: str) -> None:
    assert evaluations(tmp_path, validate) == []


@pytest.mark.parametrize("validate", [WITH, DECORATED, BY_ANOTHER])
def test_a_class_between_them_changes_nothing(tmp_path: Path, validate: str) -> None:
    between = "from trainer import Trainer\n\nclass Middle(Trainer):\n    def log(self, text):\n        print(text)\n"
    derived = DERIVED.replace("from trainer import Trainer", "from middle import Middle").replace(
        "(Trainer)", "(Middle)"
    )
    assert evaluations(tmp_path, validate, derived, middle=between) == []


@pytest.mark.parametrize("validate", [BARE, OF_TRAINING_ONLY])
def test_a_base_that_does_not_leaves_the_finding(tmp_path: Path, validate: str) -> None:
    assert [f.promise.value for f in evaluations(tmp_path, validate)] == ["exact"]


def test_a_base_whose_method_is_replaced_does_not_count(tmp_path: Path) -> None:
    own = DERIVED + BARE
    assert [f.promise.value for f in evaluations(tmp_path, WITH, own)] == ["exact"]


RETAINING = DERIVED.replace("backward()", "backward(retain_graph=True)").replace(
    "        self.opt.zero_grad()\n", "        self.losses.append(loss)\n        self.opt.zero_grad()\n"
)

WALKING = """
    def validate(self, batches):
        for batch in batches:
            self.learn(batch)
        sum(self.losses).backward()
        self.opt.step()
        self.losses.clear()
"""

READING = """
    def validate(self, batches):
        for batch in batches:
            self.learn(batch)
        print(sum(loss.item() for loss in self.losses))
        self.losses.clear()
"""


def test_a_base_that_walks_what_the_derived_class_keeps_needs_its_graph(tmp_path: Path) -> None:
    base = BASE.replace("    {validate}", WALKING)
    for rule in ("surplus-retain-graph", "attached-loss-history"):
        assert all(f.promise.value == "advice" for f in found(tmp_path, rule, RETAINING, trainer=base))


def test_a_base_that_reads_it_needs_none(tmp_path: Path) -> None:
    base = BASE.replace("    {validate}", READING)
    findings = found(tmp_path, "attached-loss-history", RETAINING, trainer=base)
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize("name", ["fit", "train", "eval", "zero_grad"])
def test_a_part_of_an_object_may_have_a_method_called_as_one_of_the_object(tmp_path: Path, name: str) -> None:
    base = BASE.replace("    {validate}", READING).replace("def fit", f"def {name}")
    derived = RETAINING.replace("x, y = batch", f"x, y = batch\n        self.model.{name}()", 1)
    findings = found(tmp_path, "attached-loss-history", derived, trainer=base)
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize("name", ["fit", "train", "eval", "zero_grad"])
def test_what_such_a_method_of_the_object_walks_counts(tmp_path: Path, name: str) -> None:
    base = BASE.replace("    {validate}", WALKING).replace("def fit", f"def {name}")
    derived = RETAINING.replace("x, y = batch", f"x, y = batch\n        self.model.{name}()", 1)
    for rule in ("surplus-retain-graph", "attached-loss-history"):
        assert all(f.promise.value == "advice" for f in found(tmp_path, rule, derived, trainer=base))
