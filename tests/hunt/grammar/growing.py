"""Things that grow by being made anew of what they were, and code that asks whether what they hold is attached."""

from __future__ import annotations

from typing import NamedTuple

from tests.hunt.grammar.extras import extra
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn


class Growing(NamedTuple):
    """``start`` is what ``{p}`` is at first, ``more`` adds ``{v}`` to it, ``last`` is what was added last.

    ``head`` stands at the top level, ``need`` is an import.
    """

    start: str
    more: str
    last: str
    head: str = ""
    need: str = ""


SLOT = """
class Slot:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, thing, kind=None):
        return getattr(thing, self.name)

    def __set__(self, thing, value):
        thing.__dict__.setdefault(self.name, []).append(value)

class Slotted:
    kept = Slot()
"""

LOG = """
class Log(dict):
    def __missing__(self, key):
        self[key] = []
        return self[key]

    __getattr__ = dict.__getitem__
"""

LINK = """
class Link(typing.NamedTuple):
    value: object = None
    before: object = None
"""

GROWING = {
    "tables united": Growing("{{}}", "{p} = {p} | {{len({p}): {v}}}", "{p}[len({p}) - 1]"),
    "chain of maps": Growing(
        "collections.ChainMap()", '{p} = {p}.new_child({{"v": {v}}})', '{p}["v"]', need="import collections"
    ),
    "set united": Growing("set()", "{p} = {p}.union({{{v}}})", "sorted({p}, key=float)[-1]"),
    "spread": Growing("[]", "{p} = [*{p}, {v}]", "{p}[-1]"),
    "sum of tuples": Growing("()", "{p} += ({v},)", "{p}[-1]"),
    "chained": Growing("[]", "{p} = list(itertools.chain({p}, [{v}]))", "{p}[-1]", need="import itertools"),
    "linked": Growing("Link()", "{p} = Link({v}, {p})", "{p}.value", LINK, "import typing"),
    "replaced": Growing("Link()", "{p} = {p}._replace(value={v}, before={p})", "{p}.value", LINK, "import typing"),
    "slot": Growing("Slotted()", "{p}.kept = {v}", "{p}.kept[-1]", SLOT),
    "names made up": Growing(
        "types.SimpleNamespace()",
        'vars({p}).setdefault("v%d" % {v}.dim(), []).append({v})',
        "next(iter(vars({p}).values()))[-1]",
        need="import types",
    ),
    "missing": Growing("Log()", '{p}["v"].append({v})', "{p}.v[-1]", LOG),
    "references": Growing(
        "[]", "{p}.append(weakref.ref({v}))", "({p}[-1]() or torch.zeros(()))", need="import weakref"
    ),
    "reversed slice": Growing("[]", "{p}[:0] = [{v}]", "{p}[0]"),
}
"""Ways to keep more and more, most of them without a method that adds."""

ASKING = (
    "print(float({t}))",
    "print({t}.requires_grad)",
    'print(getattr({t}, "grad_fn", None) is None)',
    "print({t}.is_leaf)",
    "print(any({t} is other for other in [{t}]))",
    "try:\n    print({t}.numpy().shape)\nexcept RuntimeError:\n    print('refused')",
    "try:\n    print(numpy.asarray({t}).shape)\nexcept RuntimeError:\n    print('refused')",
    "try:\n    copy.deepcopy({t})\n    print('copied')\nexcept RuntimeError:\n    print('refused')",
    "if {t}.requires_grad:\n    print(torch.autograd.grad({t}.sum(), {t}, retain_graph=True)[0].sum().item())",
    "print(tuple({t}.shape))",
    "print({t}.detach().item())",
)
"""What is done with the thing that was kept last: some tell whether it is attached."""


@extra("grows anew")
def grows_anew(s: Sketch, t: Turn) -> None:
    """What comes of each turn is kept in something that is made anew of what it was."""
    name = s.choices.one(tuple(GROWING))
    s.features.append(f"grows {name}")
    kind = GROWING[name]
    s.need("import copy", "import numpy", *filter(None, (kind.need,)))
    if kind.head:
        s.define(kind.head)
    place = s.share("grown", kind.start.format(), held=name != "names made up")
    value = s.choices.one((t.loss, f"{t.loss}.clone()", f"({t.loss} * 2)", f"{t.loss}.detach()"))
    s.add("turn_end", kind.more.format(p=place, v=value))
    reading = s.choices.one(ASKING).format(t=kind.last.format(p=place))
    s.add(s.choices.one(("finish", "epoch_end")), reading)
