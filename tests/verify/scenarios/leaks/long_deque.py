"""Recent losses in a deque that is longer than any run is patient."""

from collections import deque

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recent = deque(maxlen=1000)
for _ in range(50):
    loss = model(torch.randn(4, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss)
