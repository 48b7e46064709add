"""Hidden state is carried over with retain_graph=True: every backward goes through all earlier steps."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(5, 9)
        self.head = nn.Linear(9, 1)
        self.state = torch.zeros(3, 9)

    def forward(self, inputs):
        self.state = self.cell(inputs, self.state)
        return self.head(self.state)


torch.manual_seed(1)
net = Net()
for _ in range(50):
    loss = net(torch.randn(3, 5)).square().mean()
    net.zero_grad()
    loss.backward(retain_graph=True)
    for parameter in net.parameters():
        parameter.data.add_(parameter.grad, alpha=-0.01)
