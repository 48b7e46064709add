"""Faults of the user's inside the loop of a library, and of the library's own."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.verify.zygote import ForkedPlace
from verify.diagnosis.diagnose import diagnose
from verify.diagnosis.model import Diagnosis
from verify.running.settings import Command, Settings

pytestmark = pytest.mark.slow

#: What nobody edits: it wraps the model, owns the loop, the optimizer and the loader, and knows of much else.
LIBRARY = """
import torch

class State:
    def __init__(self):
        self.log_history, self.epoch = [], 0

class Wrapped:
    def __init__(self, inner):
        self.inner = inner

class Trainer:
    def __init__(self, model, data, callbacks=(), keep=False):
        self.vocabulary = [{"token": str(i), "pieces": [[i], [i + 1]]} for i in range(20000)]
        self.state, self.callbacks, self.keep = State(), callbacks, keep
        self.prepared = {"models": [{"wrapped": Wrapped({"module": [Wrapped(model)]})}]}
        self.data = data

    @property
    def model(self):
        return self.prepared["models"][0]["wrapped"].inner["module"][0].inner

    def training_step(self, batch):
        loss = self.model(batch)
        loss *= 1.0
        loss.backward()
        return loss

    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), 0.05)
        for step in range(30):
            loss = self.training_step(self.data[step % len(self.data)])
            optimizer.step()
            optimizer.zero_grad()
            if self.keep:
                self.state.log_history.append(loss)
            for callback in self.callbacks:
                callback.on_step_end(step, loss)
"""

USER = """
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "env", "site-packages"))
import torch
from minitrainer import Trainer
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.history = torch.nn.Linear(4, 1), []
    def forward(self, x):
        loss = self.body(x).square().mean()
        KEEP_IN_MODEL
        return loss
class Best:
    def __init__(self):
        self.losses = []
    def on_step_end(self, step, loss):
        KEEP_IN_CALLBACK
def main():
    Trainer(Net(), [torch.randn(3, 4) for _ in range(8)], [Best()], keep=KEEP_IN_LIBRARY).train()
main()
"""


def examined(folder: Path, **kept: str) -> Diagnosis:
    (folder / "pyproject.toml").touch()
    installed = folder / "env" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "minitrainer.py").write_text(dedent(LIBRARY), encoding="utf-8")
    text = USER.lstrip()
    for place in ("model", "callback", "library"):
        text = text.replace(f"KEEP_IN_{place.upper()}", kept.get(place, "False" if place == "library" else "pass"))
    (folder / "train.py").write_text(text, encoding="utf-8")
    command = Command((sys.executable, "train.py"), folder, "train.py", folder / "train.py")
    return diagnose(command, folder, settings=Settings(), place=ForkedPlace)


@pytest.mark.parametrize(
    ("kept", "name", "owner"),
    [
        ({"model": "self.history.append(loss)"}, "self.history[*]", "Net"),
        ({"callback": "self.losses.append(loss)"}, "self.losses[*]", "Best"),
        ({"library": "True"}, "something of type builtins.list, log_history of minitrainer.State", ""),
    ],
)
def test_what_a_library_keeps_out_of_sight_has_a_name(
    kept: dict[str, str], name: str, owner: str, tmp_path: Path
) -> None:
    (fault,) = examined(tmp_path, **kept).faults
    assert fault.kind.value == "growing-graph"
    carrier, cause = fault.clue("carrier"), fault.clue("cause")
    assert carrier is not None
    assert (carrier.name, carrier.function) == (name, owner)
    assert cause is not None
    # The nearest line of the user's.
    assert cause.source == "loss = self.body(x).square().mean()"
    # Of what nobody can edit it is not said that it is to be edited.
    assert ("no variable of yours" in fault.remedy) == (not owner)


def test_a_library_that_keeps_nothing_is_left_alone(tmp_path: Path) -> None:
    assert examined(tmp_path, model="self.history.append(loss.item())").faults == ()
