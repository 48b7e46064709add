"""Truncated backpropagation through time: state crosses four steps of the loop, and is cut."""

import torch
from torch import nn

torch.manual_seed(2)
cell, head = nn.GRUCell(3, 7), nn.Linear(7, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
state, losses = torch.zeros(2, 7), []
for turn in range(1, 161):
    state = cell(torch.randn(2, 3), state)
    losses.append(head(state).square().mean())
    if turn % 4 == 0:
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()
        state, losses = state.detach(), []
