"""Validation under no_grad between epochs."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    for _ in range(8):
        optimizer.zero_grad()
        model(torch.randn(5, 8)).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        outputs = [model(torch.randn(5, 8)) for _ in range(12)]
