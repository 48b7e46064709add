"""The last losses with their graphs: a window that moves along is no growth."""

from collections import deque

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recent = deque(maxlen=8)
for _ in range(26):
    loss = model(torch.randn(4, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss)
