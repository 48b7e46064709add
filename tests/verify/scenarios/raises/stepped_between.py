"""The optimizer changes weights that a later backward still needs."""

import torch
from torch import nn

torch.manual_seed(3)
first, second = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
features = first(torch.randn(3, 4))
loss = second(features).square().mean()
other = second(features).mean()
loss.backward(retain_graph=True)
optimizer.step()
other.backward()
