"""Batches made by two worker processes, forked or spawned as the argument says."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.full((4,), index / 400.0), torch.tensor([index % 2.0])


if __name__ == "__main__":
    torch.manual_seed(2)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = sys.argv[1] if len(sys.argv) > 1 else "fork"
    loader = DataLoader(Numbers(), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context=start)
    for inputs, targets in loader:
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
