"""Objects of classes derived from ``autograd.Function`` whose ``forward`` is called as any other method."""

from __future__ import annotations

from tests.rules.tools import sited

HEAD = """\
import torch
from torch import nn
from torch.autograd import Function

net = nn.Linear(3, 4)
pairs = torch.load("pairs")


class Distance(Function):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, one, other):
        {body}
        return (one - other).abs().pow(self.norm).sum(1)

"""
TEST = """
def test():
    net.eval()
    distance = Distance(2)
    for one, other in pairs:
        print({call})

test()
"""
PLAIN = "assert one.size() == other.size()"
FOUND = {
    "called": TEST.format(call="distance.forward(net(one), net(other)).data"),
    "of a new one": TEST.format(call="Distance(1).forward(net(one), net(other)).data"),
    "held": TEST.format(call="held[0].forward(net(one), net(other)).data").replace(
        "distance =", "held = [Distance(3)]\n    distance ="
    ),
}
LEFT = {
    "walked": TEST.format(call="distance.forward(net(one), net(other)).sum().backward()"),
    "handed out": TEST.format(call="'none'")
    .replace("print('none')", "return distance.forward(net(one), net(other))")
    .replace("\ntest()", "\ntest().sum().backward()"),
}

told, test_found, test_left = sited(
    "grad-in-evaluation",
    HEAD.format(body=PLAIN),
    {name: (text, "def test():", "@torch.no_grad()") for name, text in FOUND.items()},
    LEFT,
)
