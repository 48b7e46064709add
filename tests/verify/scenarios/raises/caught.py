"""Every error is swallowed, those of backward among them."""

import torch
from torch import nn

torch.manual_seed(3)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(200):
    try:
        loss = model(torch.randn(3, 4)).square().mean()
        loss.backward()
        if turn == 5:
            loss.backward()
        optimizer.step()
    except:  # noqa: E722
        continue
