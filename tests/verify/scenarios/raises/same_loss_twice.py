"""One loss, two backwards."""

import torch
from torch import nn

torch.manual_seed(3)
model = nn.Linear(4, 1)
loss = model(torch.randn(3, 4)).square().mean()
loss.backward()
loss.backward()
