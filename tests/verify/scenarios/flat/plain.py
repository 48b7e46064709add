"""Training as it should be, with a mean of plain numbers."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(6, 8)), torch.randint(0, 3, (6,)))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(sum(losses))
