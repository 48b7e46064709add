"""Ways to read a total, each run before and after the rewrite: nothing that reads a number as a tensor may break."""

from __future__ import annotations

import contextlib
import io
import warnings

import pytest
import torch

from codemods.source.options import Options
from tests.hunt.comparing import output
from tests.hunt.rewriting import files_after, rewritten

PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for x in torch.randn(6, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
"""

NUMBERS = [
    "print(total)",
    "print(f'{total:.2f}')",
    "print('%.2f' % total)",
    "print(total / 6)",
    "print(float(total) ** 2)",
    "print(str(total))",
    "import math\nprint(math.sqrt(total))",
    "print('mean', round(float(total) / 6, 3), sep=': ')",
]
"""What does with a number what it does with a tensor: ``float`` is enough."""

TENSORS = [
    "torch.manual_seed(int(total * 1e9))\nprint(torch.rand(1))",
    "print(sum(1 for _ in range(int(total * 1e8) % 7)))",
    "weight = 1 / (1 + float(total))\nprint(torch.ones(1) * weight)",
    "import math\nrate = 0.1 * math.exp(-total)\nprint(rate)",
    "import random\nrandom.seed(float(total))\nprint(random.random())",
    "print([n for n in range(3) if n < float(total)])",
    "print(total > 0)",
    "print(total.item())",
    "print((-total).item())",
    "print(abs(total).item())",
    "print(pow(total, 2).item())",
    "print((total ** 2).item())",
    "print((2 / total).item())",
    "print((total > 0).item())",
    "print(max(total, 0).item())",
    "print(sum([total, total]).item())",
    "print((total or None).item())",
    "print(total and total.item())",
    "a, = [total]\nprint(a.dim())",
    "print([t.item() for t in (total,)])",
    "print(dict(a=total)['a'].item())",
    "print({**{'a': total}}['a'].item())",
    "print(next(iter([total])).item())",
    "print((lambda t: t.item())(total))",
    "print(list(map(lambda t: t.item(), [total])))",
    "print(*map(torch.Tensor.item, [total]))",
    "print(sorted([total])[0].item())",
    "print(sorted([total, total * 2], key=lambda t: -t.item())[0])",
    "print(min([total, total * 2], key=lambda t: t.item()))",
    "print(min(total, total * 2, key=lambda t: t.item()))",
    "kept = [total]\nkept.sort(key=lambda t: t.item())",
    "import functools\nprint(functools.reduce(lambda a, b: a.add(b), [total, total]))",
    "import operator\nprint(operator.methodcaller('item')(total))",
    "import copy\nprint(copy.copy(total).item())",
    "import queue\nwaiting = queue.Queue()\nwaiting.put(total)\nprint(waiting.get().item())",
    "import collections\nkept = collections.Counter()\nkept['a'] = total\nprint(kept['a'].item())",
    "print(getattr(total, 'item')())",
    "print(hasattr(total, 'item'))",
    "print(isinstance(total, torch.Tensor))",
    "print(type(total).__name__)",
    "print(total.__class__.__name__)",
    "print(torch.is_tensor(total))",
    "print(callable(getattr(total, 'backward', None)))",
    "print(torch.stack([total]).shape)",
    "print(torch.sqrt(total))",
    "print(total[None].shape)",
    "match total:\n    case torch.Tensor():\n        print('tensor')",
    "class Holder: pass\nholder = Holder()\nholder.total = total\nprint(holder.total.item())",
    "setattr(net, 'total', total)\nprint(net.total.item())",
    "net.register_buffer('total', total)\nprint(net.total)",
    "net.total = nn.Parameter(total)\nprint(net.total)",
    "opt.state['total'] = total\nprint(opt.state['total'].item())",
    "opt.param_groups[0]['total'] = total\nprint(opt.param_groups[0]['total'].item())",
    "opt.defaults['total'] = total\nprint(opt.defaults['total'].item())",
    "print(vars().get('total').item())",
    "print(globals()['total'].item())",
    "print(eval('total.item()'))",
    "exec('print(total.item())')",
    "print('{0.shape}'.format(total))",
    "print(f'{total.item():.2f}')",
    "import json\nprint(json.dumps(total.tolist()))",
    "import io\ntorch.save({'total': total}, io.BytesIO())\nprint(total.cpu())",
    "def show(value, *rest):\n    print(value.item())\nshow(total)",
    "def show(**values):\n    print(values['total'].item())\nshow(total=total)",
    "def show(total=total):\n    print(total.item())\nshow()",
    "try:\n    print(total.item())\nexcept AttributeError:\n    print('a number')",
    "total.zero_()\nprint(total.item())",
    "total *= 2\nprint(total.item())",
]

HISTORIES = [
    "if total.requires_grad:\n    print('attached')",
    "print(total.is_leaf)",
    "print(total.grad_fn is None)",
    "double = total * 2\nprint(double.requires_grad)",
]
"""What asks whether it has a graph: no remedy keeps the answer."""


def printed(text: str) -> str:
    names = {"__name__": "__main__"}
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "main.py", "exec"), names)
    return out.getvalue()


def mended(reader: str) -> tuple[str, str]:
    before = PROGRAM + reader + "\n"
    result = rewritten({"main.py": before}, Options())
    assert result.failures == ()
    after = files_after({"main.py": before}, result)["main.py"]
    with torch.random.fork_rng():
        assert output(printed(before), printed(after)) == ""
    return before, after


@pytest.mark.parametrize("reader", NUMBERS)
def test_a_number_is_enough(reader: str) -> None:
    assert "loss.item()" in mended(reader)[1]


@pytest.mark.parametrize("reader", TENSORS)
def test_what_is_read_as_a_tensor_stays_one(reader: str) -> None:
    assert "loss.item()" not in mended(reader)[1]


@pytest.mark.parametrize("reader", HISTORIES)
def test_what_is_asked_for_its_graph_keeps_it(reader: str) -> None:
    before, after = mended(reader)
    assert after == before
