"""What step-outputs-kept finds and leaves alone."""

from __future__ import annotations

from tests.rules.tools import sited

RULE = "step-outputs-kept"
HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
import lightning.pytorch as pl
"""


def module(step: str, rest: str = "", base: str = "pl.LightningModule") -> str:
    """A module whose training step does ``step``."""
    text = f"""
class Net({base}):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.outputs = []
        self.parts = {{"loss": [], "score": []}}

    def forward(self, x):
        return self.layer(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        loss = F.cross_entropy(out, y)
        {step}
        return loss

    def on_train_epoch_end(self):
        self.log("loss", torch.stack(self.outputs).mean())
        self.outputs.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
"""
    return text + rest


SHARED = """
    def collect(self, loss):
        self.outputs.append(loss)
"""

FOUND = {
    "losses": (module("self.outputs.append(loss)"), "self.outputs.append(loss)", "self.outputs.append(loss.detach())"),
    "outputs of the layer": (
        module("self.outputs.append(out)"),
        "self.outputs.append(out)",
        "self.outputs.append(out.detach())",
    ),
    "both in a dict": (
        module('self.outputs.append({"loss": loss, "out": out})'),
        'self.outputs.append({"loss": loss, "out": out})',
    ),
    "a list in a dict": (
        module('self.parts["loss"].append(loss)'),
        'self.parts["loss"].append(loss)',
        'self.parts["loss"].append(loss.detach())',
    ),
    "in a method that the step calls": (
        module("self.collect(loss)", SHARED),
        "self.outputs.append(loss)",
        "self.outputs.append(loss.detach())",
    ),
    "the older name of the library": (
        "import pytorch_lightning\n" + module("self.outputs.append(loss)", base="pytorch_lightning.LightningModule"),
        "self.outputs.append(loss)",
        "self.outputs.append(loss.detach())",
    ),
    "validation clears it": (
        module(
            "self.outputs.append(loss)",
            """
    def on_validation_epoch_end(self):
        self.outputs.clear()
""",
        ),
        "self.outputs.append(loss)",
        "self.outputs.append(loss.detach())",
    ),
}


def unseen(step: str, loss: str = "self.criterion(self.model(x), y)", extra: str = "") -> str:
    """A module of a model that cannot be seen."""
    return f"""
class Net(pl.LightningModule):
    def __init__(self, model, criterion):
        super().__init__()
        {extra or "pass"}
        self.model, self.criterion = model, criterion
        self.outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = {loss}
        {step}

    def on_train_epoch_end(self):
        self.outputs.clear()
"""


KEPT = ("self.outputs.append(loss)", "self.outputs.append(loss.detach())")
FOUND |= {
    "the loss of a model that cannot be seen": (unseen("self.outputs.append(loss)\n        return loss"), *KEPT),
    "the loss that a model computes itself": (
        unseen("self.outputs.append(loss)\n        return {'loss': loss, 'y': y}", "self.model(x, y).loss"),
        *KEPT,
    ),
}

LEFT = {
    "something else of a model that cannot be seen": unseen("self.outputs.append(y.mean())\n        return loss"),
    "a loss that the step returns in no form that is known": unseen(
        "self.outputs.append(loss)\n        return loss, y"
    ),
    "a loss that gets its graph later": unseen(
        "self.outputs.append(loss)\n        loss = loss + x.sum()\n        return loss"
    ),
    "one of two losses": unseen(
        "self.outputs.append(loss)\n        if y is None:\n            return x.mean()\n        return loss"
    ),
    "a loss that the module back-propagates by hand": unseen(
        "self.outputs.append(loss)\n        return loss", extra="self.automatic_optimization = False"
    ),
    "a class that says so of all its modules": unseen("self.outputs.append(loss)\n        return loss").replace(
        "    def __init__", "    automatic_optimization = False\n\n    def __init__"
    ),
    "a list that the step reads too": module("self.outputs.append(loss)\n        print(self.outputs[0])"),
    "a list that the stored value is made of": module(
        "self.outputs.append(loss + self.outputs[-1] if batch_idx else loss)"
    ),
    "a loss without gradients": unseen(
        "with torch.no_grad():\n            self.outputs.append(loss.clone())\n        return loss"
    ),
    "detached": module("self.outputs.append(loss.detach())"),
    "a number": module("self.outputs.append(loss.item())"),
    "without gradients": module("with torch.no_grad():\n            self.outputs.append(F.mse_loss(self(x), x))"),
    "a list of this step": module("parts = []\n        parts.append(loss)\n        loss = sum(parts)"),
    "a list that each step makes": module("self.outputs = []\n        self.outputs.append(loss)"),
    "read by the step": module("self.outputs.append(loss)\n        loss = loss + self.outputs[-1]"),
    "emptied for each batch": module(
        "self.outputs.append(loss)",
        """
    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.outputs.clear()
""",
    ),
    "the end of an epoch learns of it": module("self.parts['loss'].append(loss)").replace(
        'self.log("loss", torch.stack(self.outputs).mean())',
        "self.manual_backward(torch.stack(self.parts['loss']).mean())",
    ),
    "labels": module("self.outputs.append(y)"),
    "predictions that have no gradient": module("self.outputs.append(out.argmax(1))"),
    "a module of torch": module("self.outputs.append(loss)", base="nn.Module"),
    "a base that cannot be seen": "from bases import Base\n" + module("self.outputs.append(loss)", base="Base"),
    "validation": module(
        "pass",
        """
    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.outputs.append(F.cross_entropy(self(x), y))
""",
    ),
    "a metric": module(
        "self.metric.update(out.detach(), y)",
        """
    def setup(self, stage):
        from torchmetrics import Accuracy

        self.metric = Accuracy("multiclass", num_classes=2)
""",
    ),
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)
