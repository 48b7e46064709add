"""Hidden state of the last step goes into the next one."""

import torch
from torch import nn

torch.manual_seed(3)
lstm, head = nn.LSTM(4, 6, num_layers=2), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
hidden = (torch.zeros(2, 3, 6), torch.zeros(2, 3, 6))
for _ in range(10):
    output, hidden = lstm(torch.randn(5, 3, 4), hidden)
    loss = head(output).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
