"""Several closures a step, and a history of gradients in the optimizer."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.2, max_iter=4)
inputs, targets = torch.randn(20, 4), torch.randn(20, 1)


def closure():
    optimizer.zero_grad()
    loss = (model(inputs) - targets).square().mean()
    loss.backward()
    return loss


for _ in range(40):
    last = optimizer.step(closure)
print(last.item())
