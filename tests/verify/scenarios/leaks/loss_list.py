"""A trainer's history holds losses with their graphs, deep inside an object."""

import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Linear(6, 2)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.logs = {"train": {"loss": []}}

    def run(self, steps):
        for _ in range(steps):
            loss = self.model(torch.randn(4, 6)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.logs["train"]["loss"].append(loss)


if __name__ == "__main__":
    torch.manual_seed(1)
    Trainer().run(50)
