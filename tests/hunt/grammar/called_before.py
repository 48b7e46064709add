"""Modules within modules that were called before: what they give is back-propagated apart, again or together."""

from __future__ import annotations

from textwrap import indent

from tests.hunt.grammar import parts
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn, task

INNER = (
    "def inner(self, p, q):\n    h = torch.relu(self.a(p))\n    return self.b(h), self.c(h)",
    "def inner(self, p, q):\n    h = torch.tanh(self.a(q))\n    return h, self.b(h)",
    "def inner(self, p, q):\n    return self.b(p), self.c(q)",
    "def inner(self, p, q):\n    h = p * q\n    return torch.exp(-h * h), self.b(h)",
    "def inner(self, p, q):\n    self.kept = torch.sigmoid(self.a(p))\n    return self.b(self.kept), self.kept",
    "def inner(self, p, q):\n    rows = [self.a(p), self.a(q)]\n    h = torch.exp(-rows[0] * rows[1])\n"
    "    return self.b(h), rows[-1] * rows[-1]",
    "def inner(self, p, q):\n    h = torch.sigmoid(self.a(p))\n    if q.sum() > 0:\n        h = torch.exp(-self.b(h))\n"
    "    return h * h, self.c(h)",
    "def inner(self, p, q):\n    h = self.a(p) * q.detach()\n    return self.b(h * h), (self.c(q) ** 2)",
)
"""Each gives two results of 4 x 3, with or without a common part of their graphs."""

CALLS = (
    "return self.part.inner(p, q)",
    "self.part.inner(p, p)\nreturn self.part.inner(p, q)",
    "self.part.inner(q, p)\nreturn self.part.inner(self.first(p), q)",
    "h = torch.exp(-self.first(p))\nself.part.inner(h, h)\nreturn h * h, self.part.inner(h, q)[1]",
    "h = self.first(p) ** 2\none, two = self.part.inner(h, h)\nreturn h, one + two",
    "return self.part.given([p, self.first(q)])",
    "h = self.first(p) ** 2\nreturn self.part.given([h, h])[0], h * h",
    "return self.part.named({'p': self.first(p), 'q': q})",
    "found = []\nself.part.into(self.first(p), found)\nreturn found[0], found[0] * found[-1]",
)


@task("called before")
def called_before(s: Sketch) -> Turn:
    """A part of a model is called with the same arguments, and with others, before losses go through it."""
    inner, outer = s.fresh("Part"), s.fresh("Whole")
    s.define(f"""
class {inner}(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.kept = None

{indent(s.choices.one(INNER), "    ")}

    def given(self, pair):
        return self.inner(pair[0], pair[1])

    def named(self, pair):
        return self.inner(**pair)

    def into(self, p, found):
        found.extend(self.inner(p, p))


class {outer}(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.part = {inner}()

    def forward(self, p, q):
{indent(s.choices.one(CALLS), "        ")}
""")
    s.model = s.share("model", f"{outer}()")
    s.forward = lambda x: f"{s.model}({x}, {x} * 2)[0][:, :2]"
    s.optimizer = parts.optimizer(s, s.model)
    probe = s.share("probe", "torch.ones(4, 3)")
    before = s.choices.one(("", "{m}({p}, {p})", "with torch.no_grad():\n    {m}({p}, {p} + 1)", "sum({m}({p}, {p}))"))
    if before:
        s.prepare(before.format(m=s.model, p=probe))
    s.add("forward", f"one, two = {s.model}(x, x * 2)")
    flag, o = s.choices.one(("retain_graph=True", "retain_graph=True", "")), s.optimizer
    s.add("forward", "loss = two.pow(2).mean()")
    kind = s.choices.one(("apart", "apart", "together", "kept", "again"))
    s.features.append(f"called before {kind}")
    if kind == "apart":
        s.add("update", f"{o}.zero_grad()\none.pow(2).mean().backward({flag})\nloss.backward()\n{o}.step()")
    elif kind == "together":
        s.add("update", f"{o}.zero_grad()\n(one.mean() + loss).backward({flag})\n{o}.step()")
    elif kind == "kept" and s.choices.chance(50):
        s.add("update", f"{o}.zero_grad()\nloss.backward({flag})\nif {s.model}.part.kept is not None:\n"
                        f"    {s.model}.part.kept.pow(2).mean().backward()\n{o}.step()")  # fmt: skip
    else:
        s.add("update", f"{o}.zero_grad()\nloss.backward({flag})\n"
                        f"sum(r.pow(2).mean() for r in {s.model}(x, x)).backward()\n{o}.step()")  # fmt: skip
    return Turn("loss", "one")
