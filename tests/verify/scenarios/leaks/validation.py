"""Validation with gradients on, its outputs kept until the end of the epoch: no backward ever uses these graphs."""

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate():
    outputs = []
    for _ in range(12):
        outputs.append(model(torch.randn(5, 8)))
    return torch.cat(outputs).argmax(1).float().mean().item()


for _ in range(4):
    for _ in range(8):
        optimizer.zero_grad()
        model(torch.randn(5, 8)).square().mean().backward()
        optimizer.step()
    validate()
