"""Function transforms beside ordinary training."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    jacobian = torch.func.jacrev(lambda point: model(point).tanh())(torch.randn(3))
    loss = model(torch.randn(4, 3)).square().mean() + jacobian.square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
