"""What carries a graph by ways that are easily overlooked: nothing that a backward needs goes under ``no_grad``, is cut
or freed. The programs run as they stand; torch itself says that each of them learns."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from codemods.source.options import Options
from tests.rules.tools import LEARNING, analysed, mended

WAYS = {
    "a field of max": "q.max(1).values",
    "a field of max by keyword": "torch.max(q, dim=1).values",
    "an element of min": "q.min(1)[0]",
    "a field of topk": "torch.topk(q, 1).values",
    "a field of sort": "torch.sort(q).values",
    "a field of the median": "q.median(1).values",
    "a field of the mode": "torch.mode(q).values",
    "a field of kthvalue": "q.kthvalue(1).values",
    "a field of cummax": "torch.cummax(q, 1).values",
    "an axis from elsewhere": "q.max(axis()).values",
    "a field of a decomposition": "torch.linalg.svd(q).S",
    "the adjoint": "q.mH",
    "a packed sequence": "rnn.pack_padded_sequence(q[None], [len(q)], batch_first=True).data",
    "a packed sequence, unpacked": "rnn.pad_packed_sequence(rnn.pack_sequence([q]))[0]",
    "a packed sequence from a function": "packed(q).data",
    "indices asked for": "F.max_pool1d(q[None], 2, return_indices=True)[0]",
    "a view that is written to": "through_view(q)",
    "a view of a view that is assigned to": "through_views(q)",
    "another name that is added to": "through_name(q)",
    "an element of a list that is written to": "through_list(q)",
    "a distribution": "torch.distributions.Normal(q, 1.0).rsample()",
    "a distribution of its own": "torch.distributions.Normal(0.0, 1.0).log_prob(q)",
    "values of a sparse tensor": "q.to_sparse().coalesce().values()",
    "a function over functions": "torch.vmap(lambda row: row * 2)(q)",
    "a checkpoint with keywords": "checkpoint(scaled, q, by=2.0, use_reentrant=False)",
    "a change without gradients": "changed(q)",
    "an object whose base keeps it": "Shifted(q, 1.0).moved()",
    "an object whose base is called by its name": "Named(q).moved()",
    "a method of such a base": "Shifted(q, 1.0).rsample()",
    "a method of its own with the name of one that cuts": "Shifted(q, 1.0).sample()",
    "a dataset of it": "torch.utils.data.TensorDataset(q)[0][0]",
    "a batch of it": "torch.utils.data.default_collate([q, q])",
    "a buffer": "next(Kept(q).buffers())",
    "a buffer by its name": "dict(Kept(q).named_buffers())['q']",
    "a partial method": "Fixed(q).twice()",
    "a product": "math.prod([q, 2.0])",
    "one dimension less": "np.squeeze(q[None])",
    "a half": "np.split(q, (8,))[0]",
    "a nested tensor": "torch.nested.as_nested_tensor([q, q]).values()",
}

HELP = """\
import functools
import math
import numpy as np
import torch.nn.functional as F
from torch.nn.utils import rnn
from torch.utils.checkpoint import checkpoint

class Shifted(torch.distributions.Normal):
    def __init__(self, loc, scale):
        super().__init__(loc, scale)

    def moved(self):
        return self.loc + 1

    def sample(self, shape=()):
        return self.loc + torch.randn(self.loc.shape) * self.scale

class Named(torch.distributions.Normal):
    def __init__(self, loc):
        torch.distributions.Normal.__init__(self, loc, 1.0)

    def moved(self):
        return self.mean + 1

class Kept(nn.Module):
    def __init__(self, q):
        super().__init__()
        self.register_buffer("q", q)

class Fixed:
    def __init__(self, q):
        self.q = q

    def times(self, by, shift=0.0):
        return self.q * by + shift

    twice = functools.partialmethod(times, 2.0, shift=1.0)

def axis():
    return 1

def packed(q):
    return rnn.pack_padded_sequence(q[None], [len(q)], batch_first=True)

def scaled(q, by):
    return q * by

def through_view(q):
    out = torch.zeros(len(q))
    first = out[0]
    first.copy_(q.sum())
    return out

def through_views(q):
    out = torch.zeros(3, 3)
    out.view(-1)[3] = q.sum()
    return out

def through_name(q):
    out = torch.zeros(())
    same = out
    same += q.sum()
    return out

def through_list(q):
    rows = [torch.zeros(2), torch.zeros(2)]
    rows[0][1] = q.sum()
    return rows[0]

def changed(q):
    q = q * 1.0
    with torch.no_grad():
        q.mul_(2)
    return q
"""

PROGRAMS = {
    "a forward in a helper": (
        "grad-in-evaluation",
        """
        def look(x):
            q = net(x)
            return {way}

        for x, _ in batches():
            learn(look(x).sum())
        """,
    ),
    # without the other loss the step would find no gradient, were the way overlooked, and that alone keeps rules silent
    "a forward beside another loss": (
        "grad-in-evaluation",
        """
        def look(x):
            q = net(x)
            return {way}

        for x, _ in batches():
            learn(look(x).sum() + net(-x).square().sum())
        """,
    ),
    "a flag that is needed": (
        "surplus-retain-graph",
        """
        for x, _ in batches():
            opt.zero_grad()
            q = net(x)
            one = {way}.exp().sum()
            two = q.exp().sum()
            one.backward(retain_graph=True)
            two.backward()
            opt.step()
        """,
    ),
    "a total that is walked": (
        "attached-loss-total",
        """
        total = 0
        for x, _ in batches():
            q = net(x)
            total += {way}.sum()
        learn(total)
        """,
    ),
    "a list that is walked": (
        "attached-loss-history",
        """
        losses = []
        for x, _ in batches():
            q = net(x)
            losses.append({way}.sum())
        learn(torch.stack(losses).mean())
        """,
    ),
}


def runs(program: str) -> bool:
    """Whether a program runs to its end and its network has learnt."""
    torch.manual_seed(0)
    names: dict[str, object] = {}
    try:
        exec(compile(program.replace("range(50)", "range(2)"), "train.py", "exec"), names)
    except RuntimeError:
        return False
    net = names["net"]
    assert isinstance(net, torch.nn.Module)
    return any(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in net.parameters())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_stays(tmp_path: Path, name: str, way: str) -> None:
    rule, template = PROGRAMS[name]
    program = f"{LEARNING}{HELP}{textwrap.dedent(template).format(way=WAYS[way])}"
    findings = analysed(tmp_path, Options(unsafe=True, select=(rule,)), program)
    assert mended(tmp_path, findings) == program


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_agrees(name: str, way: str) -> None:
    assert runs(f"{LEARNING}{HELP}{textwrap.dedent(PROGRAMS[name][1]).format(way=WAYS[way])}")


FOUND = {
    "a sample": ("grad-in-evaluation", "learn(criterion(net(-x), y)); print(Shifted(net(x), 1.0).draw().sum().item())"),
    "a parameter, cut": (
        "grad-in-evaluation",
        "learn(criterion(net(-x), y)); print(Shifted(net(x), 1.0).loc.detach().sum())",
    ),
    "a graph that nobody keeps": (
        "surplus-retain-graph",
        "loss = Shifted(net(x), 1.0).log_prob(y).mean(); opt.zero_grad(); loss.backward(retain_graph=True); opt.step()",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_distributions_of_the_tree_keep_nothing(tmp_path: Path, name: str) -> None:
    rule, turn = FOUND[name]
    program = HELP.replace("def moved", "def draw(self):\n        return super().sample()\n\n    def moved", 1)
    turn = "\n".join(f"    {line}" for line in turn.split("; "))
    findings = analysed(tmp_path, Options(select=(rule,)), f"{LEARNING}{program}\nfor x, y in batches():\n{turn}\n")
    assert [finding.promise.value for finding in findings] == ["exact"]
