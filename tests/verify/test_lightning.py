"""step-outputs-kept by running Lightning itself, where it is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands import codemod

pytest.importorskip("lightning.pytorch")
pytestmark = pytest.mark.slow

FIT = """

if __name__ == "__main__":
    pl.seed_everything(0)
    images, labels = torch.randn(160, 64), torch.randint(0, 10, (160,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=8)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", callbacks=[], **quiet)
    trainer.fit(Digits(), loader)
"""
MODULE = """\
import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn


class Digits(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)
        self.losses = []

    def training_step(self, batch, batch_idx):
        images, labels = batch
        loss = F.cross_entropy(self.layer(images), labels)
        self.losses.append(loss)
        return loss

    def on_train_epoch_end(self):
        self.log("epoch_loss", torch.stack(self.losses).mean())
        self.losses.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
"""
CALLBACK = """

class Late(pl.Callback):
    def on_train_epoch_end(self, trainer, module):
        module.losses[-1].backward()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"


def test_what_a_step_keeps_is_detached_where_a_run_shows_that_it_holds(script: Path) -> None:
    script.write_text(MODULE + FIT)
    ran = codemod("apply", "train.py", "--verify", "train.py")
    said = ran.stdout + ran.stderr
    assert ran.status == 0, said
    assert re.search(r"kept +step-outputs-kept +train\.py:16 +exact\n +bit for bit the same over 20 steps", said)
    assert "graph growth 4 nodes a step before, none after" in said
    assert script.read_text() == (MODULE + FIT).replace("append(loss)", "append(loss.detach())")


def test_it_stays_where_a_callback_needs_the_graphs(script: Path) -> None:
    text = MODULE + CALLBACK + FIT.replace("(160", "(80").replace("callbacks=[]", "callbacks=[Late()]")
    script.write_text(text)
    ran = codemod("apply", "train.py", "--verify", "train.py")
    assert script.read_text() == text, ran.stdout + ran.stderr
    assert re.search(r"broken +step-outputs-kept", ran.stdout + ran.stderr), ran.stdout + ran.stderr
