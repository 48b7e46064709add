"""An epoch's total of losses keeps every step's graph."""

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()

total = 0
for _ in range(50):
    optimizer.zero_grad()
    loss = criterion(model(torch.randn(8, 12)), torch.randint(0, 3, (8,)))
    loss.backward()
    optimizer.step()
    total += loss
print(total.item() / 50)
