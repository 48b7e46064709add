"""An inner loop that is differentiated through."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(25):
    outer = 0
    for _ in range(2):
        weights = dict(model.named_parameters())
        inputs, targets = torch.randn(5, 3), torch.randn(5, 1)
        for _ in range(2):
            inner = (functional_call(model, weights, (inputs,)) - targets).square().mean()
            grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
            weights = {name: weight - 0.1 * grad for (name, weight), grad in zip(weights.items(), grads, strict=True)}
        outer = outer + (functional_call(model, weights, (inputs,)) - targets).square().mean()
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
