"""What a loop writes by another name, or to an array that shares its memory, and gradients that have a name."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.source.options import Options
from tests.rules.tools import LEARNING, analysed, found, mended

LOSSES = """
import operator
import numpy as np
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
mask = torch.ones(3, 8)
held = {{"mask": mask}}
array = np.ones((3, 8), dtype="float32")
for epoch in range(3):
    out = net(torch.randn(3, 4))
    opt.zero_grad()
    {before}
    for k in range(3):
        loss = (out * mask).mean()
        loss.backward(retain_graph=True)
{behind}
    opt.step()
"""


@pytest.mark.parametrize(
    ("before", "behind", "edited"),
    [
        ("pass", "pass", True),
        ("pass", "mask.clone().mul_(2)", True),
        ("pass", "copied = mask.clone()\ncopied.mul_(2)", True),
        ("pass", "loss.detach().numpy()", True),
        ("pass", "array[0] = 2", True),
        # a name for what every turn reads
        ("pass", "other = held['mask']\nother.mul_(2)", False),
        ("pass", "for other in held.values():\n    other.mul_(2)", False),
        ("other = mask", "other.mul_(2)\nother = torch.ones(1) if k else mask", False),
        ("other = mask", "other += 1", False),
        ("other = torch.zeros(1)", "other += loss.detach()", True),
        ("pass", "mask.view(-1).mul_(2)", False),
        ("pass", "torch.mul(mask, 2, out=mask)", False),
        ("pass", "torch._foreach_mul_([mask], 2)", False),
        ("pass", "operator.imul(mask, 2)", False),
        ("pass", "nn.init.constant_(mask, k)", False),
        # an array of its memory
        ("shared = mask.numpy()", "shared *= 2", False),
        ("shared = mask.numpy()", "shared[k] = 2", False),
        ("shared = np.asarray(mask)", "shared.fill(2)", False),
        ("shared = mask.numpy().reshape(-1)", "shared += 1", False),
        ("shared = mask.numpy()\n    row = shared[0]", "row *= 2", False),
        ("shared = mask.numpy()", "np.copyto(shared, k)", False),
        ("mask = torch.from_numpy(array)", "array.fill(2)", False),
        ("mask = torch.as_tensor(array)", "array *= 2", False),
    ],
)
def test_a_backward_is_not_put_off_past_a_write(tmp_path: Path, before: str, behind: str, edited: bool) -> None:
    program = LOSSES.format(before=before, behind=indent(behind, "        "))
    assert bool(found(tmp_path, "backward-in-loss-loop", program)) is edited


@pytest.mark.parametrize(
    ("change", "kept"), [("array[0] = 2", "item"), ("array *= 2", "item"), ("shared *= 2", "detach")]
)
def test_a_loss_whose_array_is_written_stays_a_tensor(tmp_path: Path, change: str, kept: str) -> None:
    program = f"""
import numpy as np
array = np.ones(3)
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    shared = loss.detach().numpy()
    seen.append(loss)
    {change}
print(sum(seen))
"""
    options = Options(select=("attached-loss-history",))
    assert f"seen.append(loss.{kept}())" in mended(tmp_path, analysed(tmp_path, options, LEARNING, program))


SUMMED = """
net(torch.randn(16, 4)).mean().backward()
{named}
for epoch in range(3):
    opt.zero_grad(set_to_none=False)
    total = 0
    for x, y in [*batches()]:
        total = total + criterion(net(x), y) * {factor}
    total.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("named", "factor", "edited"),
    [
        ("first = net[0].weight.grad", "2", True),
        ("first = net[0].weight.grad.norm().item()", "first", True),
        ("first = net[0].weight.grad.clone()", "first.norm().item()", True),
        ("first = net[0].weight.grad", "first.norm().item()", False),
        ("first = net[0].weight.grad.view(-1)", "first.norm().item()", False),
        ("first = net[0].weight.grad.detach()", "first.norm().item()", False),
        ("all_of = [p.grad for p in net.parameters()]", "sum(g.norm().item() for g in all_of)", False),
    ],
)
def test_a_gradient_by_its_name_shows_each_backward(tmp_path: Path, named: str, factor: str, edited: bool) -> None:
    program = LEARNING + SUMMED.format(named=named, factor=factor)
    assert bool(found(tmp_path, "summed-micro-batches", program)) is edited


OLD = """
from itertools import zip_longest
import torch
from torch.autograd import Variable
from torch.utils.data import DataLoader

xs, ys = [torch.ones(3)] * 4, [torch.ones(1)] * 3

def filtered(batch):
    batch = [one for one in batch if one.sum() > 0]
    {back}

for x, y in {iterated}:
    {asked}
    y = Variable(y)
    print(x, y)
"""


@pytest.mark.parametrize(
    ("back", "iterated", "asked", "edited"),
    [
        ("return batch", "zip(xs, ys)", "pass", True),
        ("return torch.stack(batch)", "DataLoader(xs, collate_fn=filtered)", "pass", True),
        ("return None", "zip(xs, ys)", "pass", True),
        ("return batch", "zip_longest(xs, ys, fillvalue=xs[0])", "pass", True),
        ("return batch", "zip_longest(xs, ys)", "if y is None: continue", True),
        ("return batch", "zip_longest(xs, ys)", "pass", False),
        ("return (torch.stack(batch), None)", "DataLoader(xs, collate_fn=filtered)", "pass", False),
        ("return batch if batch else None", "DataLoader(xs, collate_fn=filtered)", "pass", False),
        ("return batch", "DataLoader(xs, collate_fn=lambda batch: (batch, None))", "pass", False),
    ],
)
def test_a_variable_of_what_a_loop_may_find_none_in_stays(
    tmp_path: Path, back: str, iterated: str, asked: str, edited: bool
) -> None:
    program = OLD.format(back=back, iterated=iterated, asked=asked)
    assert bool(found(tmp_path, "legacy-variable", program)) is edited
