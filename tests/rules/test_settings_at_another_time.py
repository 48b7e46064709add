"""A flag that code changes at a time that is not followed: callbacks, generators, special methods of objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "surplus-retain-graph"

PROGRAM = """
import atexit, contextlib, copy, functools, itertools, operator, threading, types, weakref
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

state = types.SimpleNamespace(more=False, plain=True)

def flip(*given):
    state.more = True
    state.plain = False

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
{before}
for step in range(3):
    {begin}
    opt.zero_grad()
    out = net(torch.ones(2, 3)).tanh()
    out.mean().backward(retain_graph=True)
    if {flag}:
        out.pow(2).mean().backward()
    opt.step()
    {end}
"""

ONE = "torch.ones(3)"
OF_A_CLASS = "class Thing{base}:\n    def {method}(self, *given):\n        flip()\n        {result}\nthing = Thing()"

LATER = {
    "a hook of a forward": ("net.register_forward_hook(flip)", "pass"),
    "a hook of gradients": ("net.weight.register_hook(flip)", "pass"),
    "a hook of an optimizer": ("opt.register_step_post_hook(flip)", "pass"),
    "what runs at the end": ("atexit.register(flip)", "pass"),
    "a stack of callbacks": ("stack = contextlib.ExitStack()\nstack.callback(flip)", "step == 1 and stack.close()"),
    "a thread": ("thread = threading.Thread(target=flip)", "thread.is_alive() or step or thread.start()"),
    "what a weak reference ends": ("class Box: pass\nbox = Box()\nweakref.finalize(box, flip)", "box = None"),
    "a map": ("later = map(flip, [1, 2])", "next(later, None)"),
    "a generator expression": ("later = (flip(v) for v in [1, 2])", "next(later, None)"),
    "a generator": (
        "def turns():\n    yield\n    flip()\n    yield\nlater = turns(); next(later)",
        "next(later, None)",
    ),
    "a coroutine": ("import asyncio\nasync def turn(): flip()\nlater = turn()", "step or asyncio.run(later)"),
    "a function up to a value": ("later = iter(flip, 1)", "next(later)"),
}

UNSEEN = {
    "setattr in a stack": (
        "stack = contextlib.ExitStack()\nstack.callback(setattr, state, 'more', True)",
        "step == 1 and stack.close()",
    ),
    "setattr in a thread": (
        "thread = threading.Thread(target=setattr, args=(state, 'more', True))",
        "step or thread.start()",
    ),
    "a bound method in a stack": (
        "stack = contextlib.ExitStack()\nstack.callback(vars(state).update, more=True)",
        "step == 1 and stack.close()",
    ),
    "a backward of the tree's": (
        "class Same(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): return x.view_as(x)\n"
        "    @staticmethod\n    def backward(ctx, g):\n        flip()\n        return g\n"
        "inner = net\nnet = lambda x: Same.apply(inner(x))",
        "pass",
    ),
    "rows of a dataset": (
        f"class Rows(Dataset):\n    def __len__(self): return 3\n    def __getitem__(self, i):\n        flip()\n"
        f"        return {ONE}\nrows = iter(DataLoader(Rows()))",
        "next(rows)",
    ),
    "an order of rows": (
        f"class Order(Sampler):\n    def __init__(self): pass\n    def __iter__(self):\n        yield 0\n"
        f"        state.more = True\n        yield 1\nrows = iter(DataLoader([{ONE}] * 3, sampler=Order()))",
        "next(rows, None)",
    ),
    "an exception that is made": (
        "class Bad(Exception):\n    def __init__(self): flip()",
        "try: raise Bad\n    except Bad: pass",
    ),
    "a question to a class": (
        "class Kind(type):\n    def __instancecheck__(cls, one):\n        flip()\n        return True\n"
        "class Thing(metaclass=Kind): pass",
        "isinstance(1, Thing)",
    ),
    "the end of an object": (OF_A_CLASS.format(base="", method="__del__", result="pass"), "thing = None"),
    "its truth": (OF_A_CLASS.format(base="", method="__bool__", result="return True"), "not thing"),
    "its length": (OF_A_CLASS.format(base="", method="__len__", result="return 1"), "len(thing)"),
    "its text": (OF_A_CLASS.format(base="", method="__str__", result="return ''"), "print(f'{thing}')"),
    "its hash": (OF_A_CLASS.format(base="", method="__hash__", result="return 1"), "{thing: 1}"),
    "its order": (OF_A_CLASS.format(base="", method="__lt__", result="return True"), "sorted([thing, Thing()])"),
    "its state": (OF_A_CLASS.format(base="", method="__getstate__", result="return {}"), "copy.copy(thing)"),
    "its copy": (OF_A_CLASS.format(base="", method="__deepcopy__", result="return self"), "copy.deepcopy([thing])"),
}


def promises(tmp_path: Path, flag: str, before: str, end: str) -> list[Promise | None]:
    code = PROGRAM.format(before=before, begin="pass", flag=flag, end=end)
    return [f.promise for f in found(tmp_path, RULE, code)]


@pytest.mark.parametrize("flag", ["state.more", "state.plain"])
@pytest.mark.parametrize("way", LATER)
def test_what_runs_later_may_have_run_or_not(tmp_path: Path, way: str, flag: str) -> None:
    assert Promise.EXACT not in promises(tmp_path, flag, *LATER[way])


@pytest.mark.parametrize("way", UNSEEN)
def test_what_is_called_out_of_sight_writes_as_well(tmp_path: Path, way: str) -> None:
    assert Promise.EXACT not in promises(tmp_path, "state.more", *UNSEEN[way])


@pytest.mark.parametrize("way", [way for way in {**LATER, **UNSEEN} if way != "a hook of a forward"])
def test_what_writes_something_else_leaves_the_flag_alone(tmp_path: Path, way: str) -> None:
    before, end = {**LATER, **UNSEEN}[way]
    code = PROGRAM.format(before=before.replace("more", "less"), begin="pass", flag="state.more", end=end)
    code = code.replace("    state.more = True\n    state.plain = False", "    state.less = True")
    got = [f.promise for f in found(tmp_path, RULE, code)]
    assert got == [Promise.EXACT]


COPIES = {
    "its state": "def __getstate__(self):\n        return {'more': True}",
    "how its state is set": "def __setstate__(self, state):\n        self.more = True",
    "how it is made": "def __reduce__(self):\n        return Settings, (True,)",
}

COPY = """
import copy
import torch
from torch import nn

class Settings:
    def __init__(self, more=False):
        self.more = more

    {method}

it = copy.{copy}(Settings())
net = nn.Linear(3, 3)
for _ in range(3):
    out = net(torch.ones(2, 3)).tanh()
    out.mean().backward(retain_graph=True)
    if it.more:
        out.pow(2).mean().backward()
"""


@pytest.mark.parametrize("copy", ["copy", "deepcopy"])
@pytest.mark.parametrize("way", COPIES)
def test_a_class_says_what_its_copies_hold(tmp_path: Path, way: str, copy: str) -> None:
    assert Promise.EXACT not in [f.promise for f in found(tmp_path, RULE, COPY.format(method=COPIES[way], copy=copy))]


@pytest.mark.parametrize("copy", ["copy", "deepcopy"])
def test_a_plain_copy_holds_the_same(tmp_path: Path, copy: str) -> None:
    code = COPY.format(method="def show(self):\n        return self.more", copy=copy)
    assert [f.promise for f in found(tmp_path, RULE, code)] == [Promise.EXACT]


OTHERS = {
    "defaults of a function": (
        "def asked(box=[False]):\n    return box[0]\nasked.__defaults__[0][0] = True",
        "asked()",
    ),
    "an element that is taken": ("it = {'plain': True}\nit.popitem()", "not it.get('plain')"),
    "an element under a computed name": ("it = {'plain': True}\nfor k in list(it): it.pop(k)", "not it.get('plain')"),
    "torch's own method": (
        "real = torch.Tensor.backward\ndef told(self, *a, **k):\n    print(a, k)\n    return real(self, *a, **k)\n"
        "torch.Tensor.backward = told",
        "False",
    ),
}


@pytest.mark.parametrize("way", OTHERS)
def test_other_ways_to_another_value(tmp_path: Path, way: str) -> None:
    before, flag = OTHERS[way]
    assert Promise.EXACT not in promises(tmp_path, flag, before, "pass")


def test_a_tensor_that_a_weight_keeps_is_walked_again(tmp_path: Path) -> None:
    code = """
        import torch
        from torch import nn

        net = nn.Linear(3, 3)
        for _ in range(3):
            out = net(torch.ones(2, 3)).tanh()
            old = getattr(net.weight, "last", None)
            loss = out.pow(2).mean() + (0 if old is None else old.mean())
            loss.backward(retain_graph=True)
            net.weight.last = out
    """
    assert Promise.EXACT not in [f.promise for f in found(tmp_path, RULE, code)]
