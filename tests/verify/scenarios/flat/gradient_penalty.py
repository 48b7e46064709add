"""A penalty on gradients, by a second derivative."""

import torch
from torch import nn

torch.manual_seed(2)
critic = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(40):
    points = torch.randn(6, 3, requires_grad=True)
    scores = critic(points)
    (slopes,) = torch.autograd.grad(scores.sum(), points, create_graph=True)
    loss = scores.mean() + (slopes.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
