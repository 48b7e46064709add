"""backward(create_graph=True) makes cycles that wait for the garbage collector: garbage, but no leak."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(40):
    loss = model(torch.randn(6, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward(create_graph=True)
    optimizer.step()
