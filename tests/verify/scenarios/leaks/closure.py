"""A moving average lives in a closure."""

import torch
from torch import nn


def averager():
    average = None

    def update(value):
        nonlocal average
        average = value if average is None else 0.9 * average + 0.1 * value
        return average

    return update


torch.manual_seed(1)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
update = averager()
for _ in range(50):
    loss = model(torch.randn(4, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update(loss)
