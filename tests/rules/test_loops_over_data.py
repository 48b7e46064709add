"""Loops over data, which hand on numbers and texts from turn to turn, and say nothing of the graphs of a program."""

from __future__ import annotations

from tests.rules.tools import sited

HEAD = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Sequential(nn.Conv2d(3 + i, 4 + i, 3), nn.BatchNorm2d(4 + i), nn.ReLU()) for i in range(14)]
        self.layers = nn.Sequential(*parts)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                n = m.kernel_size[0] * m.out_channels
                m.weight.data.normal_(0, n**-0.5)
            elif isinstance(m, nn.BatchNorm2d):
                m.bias.data.zero_()

    def forward(self, x):
        return self.layers(x)


def read(lines):
    found = {{}}
    for line in lines:
        {body}
    return found


table = read(open("words"))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = net(torch.randn(2, 3, 40, 40)).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
{end}
"""

FLAG = "loss.backward(retain_graph=True)"


def program(*body: str, end: str = "") -> str:
    return HEAD.format(body="\n        ".join(body), end=end)


FOUND = {
    "lists of texts under any key": program(
        "word, sound = line.split()",
        "if word in found:",
        "    found[word].append(sound)",
        "else:",
        "    found[word] = [sound]",
    ),
    "lists of lists": program("found.setdefault(line[0], []).append([len(line)])"),
    "a class made anew in each turn": program(
        "class Row:", "    text = line", "found[line] = Row()", "found['last'] = Row()"
    ),
}

LEFT = {
    "functions that wait in line": program(
        "found.setdefault('later', []).append(line)",
        end="""
waiting = [print, print, print, lambda told: told.backward()]
for _ in range(4):
    loss = net(torch.randn(2, 3, 40, 40)).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    waiting.pop(0)(loss)
    opt.step()
""",
    ).replace(FLAG + "\n    opt.step()\n\nwaiting", "loss.backward()\n    opt.step()\n\nwaiting"),
}

told, test_found, test_left = sited(
    "surplus-retain-graph", "", {name: (text, FLAG, "loss.backward()") for name, text in FOUND.items()}, LEFT
)
