"""A running average in a registered buffer is updated with a graph attached."""

import torch
from torch import nn


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(5))
        self.register_buffer("average", torch.zeros(5))

    def forward(self, inputs):
        scaled = inputs * self.scale
        self.average = 0.9 * self.average + 0.1 * scaled.mean(0)
        return scaled


torch.manual_seed(1)
layer = Normalized()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
for _ in range(50):
    optimizer.zero_grad()
    layer(torch.randn(6, 5)).square().mean().backward()
    optimizer.step()
