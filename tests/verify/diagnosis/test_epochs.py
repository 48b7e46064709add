"""What grows within an epoch, where epochs are cut short so that a run sees more of a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codemods.source.options import Options
from tests.verify.diagnosis.test_scripts import examined
from tests.verify.zygote import ForkedPlace
from verify.diagnosis.diagnose import cut_short
from verify.diagnosis.model import Diagnosis, Fault, Kind
from verify.fixing.fix import Fixer
from verify.running.settings import Command, Settings

TEXT = """\
from collections import ChainMap
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
loader = DataLoader(TensorDataset(torch.randn(90, 4)), batch_size=3)
for epoch in range(4):
    rows = ChainMap()
    for (x,) in loader:
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows = rows.new_child({"epoch": epoch, "loss": KEPT})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kept", "kinds"), [("loss", ["growing-graph"]), ("loss.item()", [])])
def test_a_list_that_every_epoch_begins_anew_grows_within_it(kept: str, kinds: list[str], tmp_path: Path) -> None:
    diagnosis = examined(TEXT.replace("KEPT", kept), tmp_path)
    assert [fault.kind.value for fault in diagnosis.faults] == kinds
    assert len(diagnosis.runs) == 2


@pytest.mark.slow
def test_what_grows_is_not_hidden_by_a_layer_that_nobody_uses(tmp_path: Path) -> None:
    text = TEXT.replace("net = nn.Linear(4, 1)", "net = nn.Linear(4, 1)\nnet.spare = nn.Linear(2, 2)")
    diagnosis = examined(text.replace("KEPT", "loss"), tmp_path)
    assert [fault.kind.value for fault in diagnosis.faults] == ["growing-graph", "no-gradient"]


@pytest.mark.slow
def test_it_is_mended_with_whole_epochs(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(TEXT.replace("KEPT", "loss"), encoding="utf-8")
    command = Command((sys.executable, "train.py"), tmp_path, "train.py", tmp_path / "train.py")
    fixed = Fixer(command, tmp_path, settings=Settings(), options=Options(), place=ForkedPlace).fix()
    assert (fixed.status, len(fixed.repairs)) == (0, 1)
    assert "loss.detach()" in fixed.repairs[0].diff


def diagnosed(*kinds: Kind, capped: bool = True, reason: str = "") -> Diagnosis:
    faults = tuple(Fault(kind, "", None) for kind in kinds)
    return Diagnosis("t.py", "/tree", faults, (), (), (), 20, 20, (), reason, capped=capped)


def test_whole_epochs_are_run_only_where_they_may_show_more() -> None:
    assert cut_short(diagnosed(), Settings())
    assert cut_short(diagnosed(Kind.UNUSED_FORWARDS, Kind.NO_GRADIENT), Settings())
    assert not cut_short(diagnosed(capped=False), Settings())
    assert not cut_short(diagnosed(Kind.GROWING_GRAPH), Settings())
    assert not cut_short(diagnosed(reason="it stops"), Settings())
    assert not cut_short(diagnosed(), Settings(batches=3))
