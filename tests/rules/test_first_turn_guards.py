"""Guards that leave a state alone in the first turn of a loop, where there is nothing to cut yet, and some that do so
in further turns."""

from __future__ import annotations

from textwrap import indent

from tests.rules.tools import sited

HEAD = """\
import itertools
import torch
from torch import nn
from tqdm import tqdm

cell = nn.GRUCell(3, 4)
head = nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
data = [torch.randn(2, 3) for _ in range(6)]
h = torch.zeros(2, 4)
n = 0
"""

LOOP = """
for {loop}:
    {guard}
    h = cell(data[0], h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {end}
"""

CUT = "h = h.detach()"
STORE = "h = cell(data[0], h)"


def turns(test: str, loop: str = "step, x in enumerate(data)", *, cut: str = CUT, end: str = "pass") -> str:
    return LOOP.format(loop=loop, guard=f"if {test}:\n        {cut}", end=end)


def epochs(test: str, *, again: str = "pass") -> str:
    return f"for epoch in range(2):\n    {again}\n" + indent(turns(test), "    ")


def counting(test: str, end: str) -> str:
    return turns(test, "x in data", end=end)


LEFT = {
    "greater": turns("step > 0"),
    "at least": turns("step >= 1"),
    "another number": turns("step != 0"),
    "as a truth value": turns("step"),
    "not the first": turns("not step == 0"),
    "turned round": turns("0 < step"),
    "in the other branch": turns("step == 0", cut="pass\n    else:\n        h = h.detach()"),
    "it is there, too": turns("step > 0 and h is not None"),
    "it has a graph, too": turns("step > 0 and h.requires_grad"),
    "a graph that is asked for": turns("h.grad_fn is not None"),
    "a tensor that is asked for": turns("h.requires_grad"),
    "in place": turns("step > 0", cut="h.detach_()"),
    "its data": turns("step > 0", cut="h = h.data"),
    "counted from one": turns("step > 1", "step, x in enumerate(data, 1)"),
    "counted from one, by name": turns("step != 1", "step, x in enumerate(data, start=1)"),
    "in a bar": turns("step > 0", "step, x in tqdm(enumerate(data))"),
    "a range": turns("step > 0", "step in range(len(data))"),
    "a range from one": turns("step > 1", "step in range(1, 6)"),
    "a range by two": turns("step >= 2", "step in range(0, len(data), 2)"),
    "a number that does not come": turns("step != 1", "step in range(0, len(data), 2)"),
    "backwards": turns("step < 5", "step in range(5, -1, -1)"),
    "side by side": turns("step > 0", "x, step in zip(data, range(6))"),
    "endlessly": turns("step", "step, x in zip(itertools.count(), data)"),
    "counted": counting("n > 0", "n += 1"),
    "counted by two": counting("n >= 2", "n = n + 2"),
    "counted before": turns("n > 1", "x in data", end="pass").replace("    if", "    n += 1\n    if"),
    "made again in every epoch": epochs("step > 0", again="h = torch.zeros(2, 4)"),
    "the first turn of all epochs": epochs("epoch > 0 or step > 0"),
}

FOUND = {
    "one more": turns("step > 1"),
    "only the first": turns("step == 0"),
    "every other": turns("step % 2"),
    "the first few": turns("step < 3"),
    "counted from one, and one more": turns("step > 2", "step, x in enumerate(data, 1)"),
    "counted from below": turns("step > 0", "step, x in enumerate(data, -1)"),
    "counted from what somebody types": turns("step > 0", "step, x in enumerate(data, int(input()))"),
    "a range from below": turns("step > 0", "step in range(-1, 5)"),
    "backwards to the first": turns("step > 0", "step in range(5, -1, -1)"),
    "backwards, and one more": turns("step < 4", "step in range(5, -1, -1)"),
    "a number that comes again": turns("step != 4", "step in range(0, 6, 2)"),
    "in any order": turns("step > 0", "step in sorted(range(6))"),
    "side by side, in any order": turns("step > 0", "step, x in zip(reversed(range(6)), data)"),
    "one of two conditions": turns("step > 0 and x.mean() > 0"),
    "some other graph": turns("x.requires_grad", end="x = h"),
    "counted in some turns": counting("n > 0", "n += int(loss > 1)"),
    "counted where it is large": counting("n > 0", "if loss > 1:\n        n += 1"),
    "counted anew": counting("n > 0", "n += 1\n    n = n % 3"),
    "passed over": turns("n > 0", "x in data", end="if loss > 1:\n        continue\n    n += 1"),
    "once for all epochs": epochs("step > 0"),
    "the first turn of each epoch": epochs("epoch > 0 and step > 0"),
}

told, test_found, test_left = sited(
    "carried-hidden-state", HEAD, {name: (program, STORE) for name, program in FOUND.items()}, LEFT
)
