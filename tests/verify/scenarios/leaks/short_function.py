"""Fewer steps than verify asks for, and the list dies with its function: at the end of the process nothing is left."""

import torch
from torch import nn


def train():
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for _ in range(14):
        loss = model(torch.randn(4, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(loss)
    return sum(loss.item() for loss in kept)


torch.manual_seed(1)
print(train())
