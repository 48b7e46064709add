"""Calls of one of several modules: those that would not take the arguments are not the one."""

from __future__ import annotations

from tests.rules.tools import sited

HEAD = """\
import functools
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask):
        return self.layer(x * mask)


class Down(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).tanh()


class Keeping(nn.Module):
    # walks what an earlier call left, too
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.kept = 0.0

    def forward(self, x, {more}):
        x = self.layer(x)
        seen, self.kept = self.kept, x.exp()
        return x + seen


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.ModuleList([{first}, Down()]) for _ in range(2)])

    def forward(self, x):
        mask = torch.ones(4)
        for part, down in self.parts:
            x = {use}
            x = down(x)
        return x


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.0)
{then}
for _ in range(4):
    loss = net(torch.randn(2, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""

FLAG = "loss.backward(retain_graph=True)"


def program(
    *, first: str = "Block()", use: str = "part(x, mask)", more: str = "mask", then: str = "", text: str = HEAD
) -> str:
    for name, given in (("first", first), ("use", use), ("more", more), ("then", then)):
        text = text.replace("{" + name + "}", given)
    return text


FOUND = {
    "each is called with its own": program(),
    "by name": program(use="part(x, mask=mask)"),
    "one of them would take no more": program(first="Block() if torch.rand(1) > 0.5 else Down()"),
    "one of them keeps nothing that takes so few": program(more="mask, scale").replace(
        "[Block(), Down()]", "[Keeping() if torch.cuda.is_available() else Block(), Down()]"
    ),
}

KEEPS = "Keeping() if torch.cuda.is_available() else Block()"

LEFT = {
    "it takes as many": program(first=KEEPS),
    "it takes more, which need not be given": program(first=KEEPS, more="mask, scale=1.0"),
    "it takes any number": program(first=KEEPS, more="*others"),
    "it takes any name": program(first=KEEPS, use="part(x, mask=mask)", more="**others"),
    "any number is given": program(first=KEEPS, use="part(x, *([mask] + [1.0] * (len(x) - 1)))", more="mask, scale"),
    "a hook gives more": program(
        first=KEEPS,
        more="mask, scale",
        then="for part, _ in net.parts:\n    part.register_forward_pre_hook(lambda m, args: (*args, 1.0))",
    ),
    "its class is called otherwise": program(first=KEEPS, more="mask, scale").replace(
        "    def forward(self, x, mask, scale):",
        "    def __call__(self, *args):\n        return self.forward(*args, 1.0)\n\n"
        "    def forward(self, x, mask, scale):",
    ),
    "its forward is another one": program(
        first=KEEPS,
        more="mask, scale",
        then="for part, _ in net.parts:\n    part.forward = functools.partial(part.forward, scale=1.0)",
    ),
    "its forward is decorated": program(first=KEEPS, more="mask, scale")
    .replace(
        "    def forward(self, x, mask, scale):",
        "    @scaled\n    def forward(self, x, mask, scale):",
    )
    .replace(
        "class Block(",
        "def scaled(f):\n    @functools.wraps(f)\n    def run(self, x, mask):\n        return f(self, x, mask, 1.0)\n\n"
        "    return run\n\n\nclass Block(",
    ),
}

told, test_found, test_left = sited(
    "surplus-retain-graph",
    "",
    {name: (text, FLAG, "loss.backward()") for name, text in FOUND.items()},
    LEFT,
)
