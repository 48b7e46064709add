"""A meter with slots, held by a class attribute."""

import torch
from torch import nn


class Meter:
    __slots__ = ("sum",)

    def __init__(self):
        self.sum = 0.0


class Registry:
    meters = {"loss": Meter()}  # noqa: RUF012


torch.manual_seed(1)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(50):
    loss = model(torch.randn(4, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    Registry.meters["loss"].sum += loss
