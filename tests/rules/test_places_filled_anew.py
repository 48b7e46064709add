"""Lists that lie on a model and in which a forward fills every place again: nothing of the step before is left in them.
Beside them some of which a place is left over, or read before it is filled."""

from __future__ import annotations

from tests.rules.tools import sited

HEAD = """\
import torch
from torch import nn

"""

MODEL = """
class Draw(nn.Module):
    def __init__(self, turns):
        super().__init__()
        self.turns = turns
        self.cell = nn.GRUCell(3, 4)
        self.drawn = {made}

    def forward(self, x):
        h = x.new_zeros(len(x), 4)
        for {loop}:
            {body}
        return {result}

net = Draw(turns={turns})
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(5, 2, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    {end}
"""

WALK = "loss.backward(retain_graph=True)"
ADDED = "h = self.cell(x, h + (0 if t == 0 else self.drawn[t - 1]))\n            self.drawn[t] = h"
ALONE = "h = self.cell(x, h)\n            self.drawn[t] = h"
GUARDED = """if {test}:
                h = h + self.drawn[t - 1]
            h = self.cell(x, h)
            self.drawn[t] = h"""
BLANK = """
    def blank(self):
        for t in range(self.turns):
            self.drawn[t] = torch.zeros(2, 4)
"""
LAST = "self.drawn[-1]"
SUM = "sum(self.drawn)"


def model(
    body: str,
    result: str = LAST,
    *,
    made: str = "[0] * turns",
    loop: str = "t in range(self.turns)",
    turns: str = "6",
    end: str = "pass",
) -> str:
    return MODEL.format(made=made, loop=loop, body=body, result=result, turns=turns, end=end)


FOUND = {
    "zeros": model(ADDED),
    "nothing": model(ALONE, made="[None] * turns"),
    "made one by one": model(ALONE, SUM, made="[None for _ in range(turns)]"),
    "tensors": model(ADDED, SUM, made="[torch.zeros(2, 4) for _ in range(turns)]"),
    "all of them": model(ADDED, SUM),
    "one after the other": model(ADDED, "torch.stack([out for out in self.drawn])"),
    "in another loop": model(ADDED, "sum(self.drawn[k] for k in range(self.turns))"),
    "as many as it has": model(ADDED, loop="t in range(len(self.drawn))"),
    "one by one": model(ADDED, loop="t, _ in enumerate(self.drawn)"),
    "more of them": model(ADDED, loop="t in range(0, 6)", turns="5"),
    "a number of the command line": model(ADDED, turns="settings.turns").replace(
        "class Draw", "import argparse\nsettings = argparse.ArgumentParser().parse_args()\n\nclass Draw"
    ),
    "behind the first": model(GUARDED.format(test="t > 0")),
    "not in the first": model(GUARDED.format(test="not t == 0")),
    "in all but the first": model(GUARDED.format(test="t")),
    "from the other side": model(GUARDED.format(test="t >= 1")),
    "filled by another method, too": model(ADDED, end="net.blank()").replace("\nnet =", BLANK + "\nnet ="),
}

LEFT = {
    "the last one in the first turn": model("h = self.cell(x, h + self.drawn[t - 1])\n            self.drawn[t] = h"),
    "the same place before it is filled": model("h = self.cell(x, h + self.drawn[t])\n            self.drawn[t] = h"),
    "a place too many": model(ADDED, SUM, made="[0] * (turns + 1)"),
    "some places": model(ADDED, SUM, loop="t in range(3)"),
    "all but the first": model(ADDED, SUM, loop="t in range(1, self.turns)"),
    "every other place": model(ALONE, SUM, loop="t in range(0, self.turns, 2)"),
    "two for each turn": model(ADDED, SUM, made="[0, 0] * turns"),
    "made one by one, and too many": model(ALONE, SUM, made="[torch.zeros(2, 4) for _ in range(turns + 1)]"),
    "made of some, and too many": model(ALONE, SUM, made="[torch.zeros(2, 4) for k in range(turns) for _ in (0, k)]"),
    "in some turns": model("h = self.cell(x, h)\n            if x.mean() > 0:\n                self.drawn[t] = h", SUM),
    "until something happens": model(ALONE + "\n            if h.mean() > 0:\n                break", SUM),
    "passed over": model("h = self.cell(x, h)\n            if h.mean() > 0:\n                continue\n" + " " * 12
                         + "self.drawn[t] = h", SUM),
    "longer with each step": model(ALONE, SUM, end="net.drawn.append(loss)"),
    "longer by all": model(ALONE, SUM, end="net.drawn.extend(list(net.drawn))"),
    "another number": model(ADDED, SUM, loop="t in range(len(x))", turns="6"),
    "a place that is asked for in the first turn": model(GUARDED.format(test="t == 0")),
    "two places before": model(ADDED.replace("t - 1", "t - 2")),
    "in any order": model(ADDED, loop="t in sorted(range(self.turns), key=lambda k: -k)"),
    "backwards": model(ADDED, loop="t in reversed(range(self.turns))"),
}  # fmt: skip

told, test_found, test_left = sited(
    "surplus-retain-graph", HEAD, {name: (text, WALK, "loss.backward()") for name, text in FOUND.items()}, LEFT
)
