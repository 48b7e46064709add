"""Recomputed activations: a backward runs forwards and backwards of its own."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.1)) for _ in range(3))

    def forward(self, inputs):
        for turn, block in enumerate(self.blocks):
            inputs = checkpoint(block, inputs, use_reentrant=turn % 2 == 0)
        return inputs


torch.manual_seed(2)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
for _ in range(40):
    loss = net(torch.randn(5, 6, requires_grad=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
