"""Schedulers that programs derive from torch's: they step no parameters, and keep no graph of what they get."""

from __future__ import annotations

from tests.rules.tools import sited

HEAD = """\
import torch
from torch import nn
from torch.optim import lr_scheduler, swa_utils

net = nn.Linear(3, 4)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = torch.load("batches")
"""

TRAINING = """
def validate():
    net.eval()
    total = 0.0
    for x, y in batches:
        total += criterion(net(x), y){number}
    return total

{cls}
plan = Plan(opt)
for epoch in range(5):
    net.train()
    for x, y in batches:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    plan.step(validate())
"""
PLATEAU = """
class Plan(lr_scheduler.ReduceLROnPlateau):
    def __init__(self, optimizer, patience=3, **more):
        super().__init__(optimizer, patience=patience, **more)
        self.bad = 0

    def step(self, value):
        self.bad += value > self.best
        super().step(value)
"""
RATES = """
class Plan(lr_scheduler.{base}):
    def __init__(self, optimizer):
        self.most = 100
        super().__init__(optimizer)

    def get_lr(self):
        return [rate * (1 - self.last_epoch / self.most) for rate in self.base_lrs]

    def step(self, value=None):
        print(value)
        super().step()
"""
WALKING = """
class Plan:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, value):
        self.optimizer.zero_grad()
        value.backward()
        self.optimizer.step()
"""


def training(cls: str, number: str = ".item()") -> str:
    return TRAINING.format(cls=cls, number=number)


FOUND = {
    "of a plateau": training(PLATEAU),
    "of any": training(RATES.format(base="LRScheduler")),
    "by its former name": training(RATES.format(base="_LRScheduler")),
    "of one with a function": training("class Plan(lr_scheduler.ExponentialLR):\n    pass\n").replace(
        "(opt)", "(opt, 0.9)"
    ),
    "averaged weights": training("class Plan(swa_utils.SWALR):\n    pass\n").replace("(opt)", "(opt, 0.1)"),
}
LEFT = {
    "one that walks what it gets": training(WALKING, ""),
    "an optimizer": training("class Plan(torch.optim.SGD):\n    pass\n", "").replace(
        "Plan(opt)", "Plan(net.parameters(), 0.1)"
    ).replace("plan.step(validate())", "validate().backward()\n    plan.step()"),
    "one that asks for a backward": training("class Plan(lr_scheduler.ReduceLROnPlateau):\n    pass\n", "").replace(
        "plan.step(validate())", "worst = validate()\n    worst.backward()\n    plan.step(worst)"
    ),
}  # fmt: skip

told, test_found, test_left = sited(
    "grad-in-evaluation",
    HEAD,
    {name: (text, "def validate():", "@torch.no_grad()") for name, text in FOUND.items()},
    LEFT,
)
