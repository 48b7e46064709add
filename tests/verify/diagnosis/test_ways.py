"""The doctor on programs as people start them: modules, launchers, tests, notebooks, the loop of a library."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from verify.diagnosis.diagnose import diagnose
from verify.diagnosis.model import Diagnosis, Fault, Kind
from verify.diagnosis.reports import text
from verify.running.settings import Settings, entry_command, script_command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("folder")]

STATE = """
import torch
from torch import nn
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head, self.hidden = nn.GRU(4, 8), nn.Linear(8, 1), torch.zeros(1, 2, 8)
    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)
        return self.head(out)
"""
LOOP = """
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(8):
    loss = model(torch.ones(3, 2, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HISTORY = """
import torch
from torch import nn
def main():
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    history = []
    for step in range(13):
        loss = net(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss)
    print(sum(history) / len(history))
"""
TOTAL = """
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
total = 0
for step in range(16):
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = total + loss
"""


def written(path: str, *parts: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(part.lstrip("\n") for part in parts), encoding="utf-8")


def examined(entry: str) -> Diagnosis:
    words = shlex.split(entry)
    if words[0] == "-m":
        command = script_command(words[1], words[2:], sys.executable, module=True)
    else:
        command = entry_command(entry, sys.executable, Path.cwd())
    return diagnose(command, Path.cwd(), settings=Settings())


def only(diagnosis: Diagnosis, kind: Kind) -> Fault:
    (fault,) = diagnosis.faults
    assert fault.kind is kind
    return fault


def stations(fault: Fault) -> dict[str, str]:
    return {clue.role: clue.name or clue.source for clue in fault.clues}


def test_a_module_of_a_package() -> None:
    written("pkg/__init__.py")
    written("pkg/parts.py", STATE)
    written("pkg/train.py", "from pkg.parts import *\n", LOOP)
    fault = only(examined("-m pkg.train"), Kind.SECOND_BACKWARD)
    assert stations(fault)["carrier"] == "self.hidden"
    assert [str(clue.site) for clue in fault.clues if clue.role == "cause"] == ["pkg/parts.py:8"]


def test_processes_of_a_launcher() -> None:
    group = 'import torch.distributed as dist\ndist.init_process_group("gloo")\nmain()\ndist.destroy_process_group()\n'
    whole = HISTORY.replace("= nn.Linear(4, 1)", "= nn.parallel.DistributedDataParallel(nn.Linear(4, 1))")
    written("train.py", whole, group)
    fault = only(examined("torchrun --nproc-per-node 2 train.py"), Kind.GROWING_GRAPH)
    assert stations(fault)["carrier"] == "history[*]"
    assert fault.site is not None
    assert fault.site.line == 8


def test_a_list_that_is_gone_when_the_program_ends() -> None:
    # What looks at containers must not keep them, or everything that a function collected seems to stay.
    written("train.py", HISTORY.replace("history.append(loss)", "history.append(torch.randn(9000))"), "main()\n")
    fault = only(examined("train.py"), Kind.GROWING_TENSORS)
    assert stations(fault)["carrier"] == "history"


def test_lists_of_functions_that_are_over_are_no_growth() -> None:
    epoch = "for epoch in range(4):\n    main()\n"
    assert examined_text(HISTORY.replace("range(13)", "range(5)"), epoch).faults == ()


def examined_text(*parts: str) -> Diagnosis:
    written("train.py", *parts)
    return examined("train.py")


def test_a_test_that_trains() -> None:
    indented = "".join(f"    {line}\n" for line in LOOP.strip().split("\n"))
    written("tests/test_train.py", STATE, "def test_other():\n    pass\ndef test_training():\n", indented)
    fault = only(examined("pytest -q tests/test_train.py::test_training"), Kind.SECOND_BACKWARD)
    assert stations(fault)["carrier"] == "self.hidden"


def test_a_notebook_is_told_by_its_cells() -> None:
    sources = ["import torch\nfrom torch import nn\n", "%matplotlib inline\n" + TOTAL.lstrip()]
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source.splitlines(keepends=True)}
        for source in sources
    ]
    written("train.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    diagnosis = examined("train.ipynb")
    fault = only(diagnosis, Kind.GROWING_GRAPH)
    assert stations(fault)["carrier"] == "total"
    assert stations(fault)["cause"] == "total = total + loss"
    assert str(fault.site) == "train.ipynb:cell 2:10"
    assert "train.ipynb:cell 2:10  total = total + loss" in text.render(diagnosis)


def test_the_loop_of_a_library() -> None:
    """As Lightning and the Trainer of transformers have it: the user writes a step, installed code does the rest."""
    written(
        "env/site-packages/minitrainer.py",
        dedent(
            """
            import torch
            class Trainer:
                def fit(self, module, batches):
                    torch.autograd.set_detect_anomaly(False)  # as Lightning does
                    self.module = module
                    optimizer = module.configure_optimizers()
                    for batch in batches:
                        loss = self._step(module, batch)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                def _step(self, module, batch):
                    return module.training_step(batch)
            """
        ),
    )
    head = 'import sys\nsys.path.insert(0, "env/site-packages")\nimport minitrainer\n'
    step = """
    def training_step(self, x):
        return self(x).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
"""
    run = "minitrainer.Trainer().fit(Tagger(), [torch.ones(3, 2, 4)] * 8)\n"
    written("train.py", head, STATE, step.lstrip("\n"), run)
    fault = only(examined("train.py"), Kind.SECOND_BACKWARD)
    assert stations(fault)["carrier"] == "self.hidden"
    assert stations(fault)["cause"] == "out, self.hidden = self.rnn(x, self.hidden)"
    # The backward is the library's: the nearest line of the user's is the one that started it.
    assert stations(fault)["freed by"] == run.strip()
