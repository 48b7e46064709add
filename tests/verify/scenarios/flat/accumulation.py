"""A step every sixth batch."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(1, 151):
    (model(torch.randn(4, 6)).square().mean() / 6).backward()
    if turn % 6 == 0:
        optimizer.step()
        optimizer.zero_grad()
