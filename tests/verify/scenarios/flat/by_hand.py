"""Gradient descent without an optimizer."""

import torch

torch.manual_seed(2)
weight = torch.randn(5, 1, requires_grad=True)
for _ in range(60):
    loss = (torch.randn(16, 5) @ weight - 1).square().mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.02 * weight.grad
        weight.grad = None
