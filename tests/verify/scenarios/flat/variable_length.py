"""Sequences of another length in every step, and detached predictions kept."""

import torch
from torch import nn

torch.manual_seed(2)
embedding, lstm, head = nn.Embedding(30, 10), nn.LSTM(10, 10, batch_first=True), nn.Linear(10, 30)
optimizer = torch.optim.Adam([*embedding.parameters(), *lstm.parameters(), *head.parameters()])
kept = []
for _ in range(40):
    tokens = torch.randint(0, 30, (3, int(torch.randint(4, 40, ()))))
    output, _ = lstm(embedding(tokens))
    loss = nn.functional.cross_entropy(head(output).transpose(1, 2), tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss.detach())
