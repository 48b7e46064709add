"""Models that ``torch.load`` gives whole: what takes a tensor is one. Beside them what else lies in files."""

from __future__ import annotations

from tests.rules.tools import sited

HEAD = """\
import pickle

import torch
from torch import nn
from torchvision import transforms

batches = torch.randn(6, 2, 3)
"""

LOOP = """
{made}
for x in batches:
    out = {call}
    {use}
"""
USE = "print(out.data.argmax(1))"


def loop(made: str, call: str = "net(x)", use: str = USE) -> str:
    return LOOP.format(made=made, call=call, use=use)


FOUND = {
    "called": loop("net = torch.load('net')"),
    "moved": loop("net = torch.load('net').to('cuda')"),
    "in a checkpoint": loop("state = torch.load('net')\nnet = state['net'].cuda()"),
    "one of two": loop("nets = torch.load('nets')", "nets[1](x)"),
}
FUNCTION = """
def look(net):
    for x in batches:
        print(net(x).data)

look(torch.load("net"))
"""
LEFT = {
    "walked": loop("net = torch.load('net')", use="out.sum().backward()"),
    "asked for a gradient": loop("net = torch.load('net')", use="print(torch.autograd.grad(out.sum(), batches))"),
    "out of another file": loop("net = pickle.load(open('net', 'rb'))"),
    "no tensor": loop("words = torch.load('words')", "words('some text')", "print(out)"),
    "data": loop("rows = torch.load('rows')", "rows[0] * x", "print(out)"),
    "without gradients": "torch.set_grad_enabled(False)\n" + loop("net = torch.load('net')"),
}  # fmt: skip


def _forward(text: str) -> str:
    return next(line.strip() for line in text.splitlines() if line.startswith("    out = "))


told, test_found, test_left = sited(
    "grad-in-evaluation",
    HEAD,
    {name: (text, _forward(text), "with torch.no_grad():", _forward(text)) for name, text in FOUND.items()}
    | {"in a function": (FUNCTION, "def look(net):", "@torch.no_grad()")},
    LEFT,
)
