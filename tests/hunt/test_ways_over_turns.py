"""Loops in which a later turn goes a way that no turn before it went: what decides is handed on from turn to turn."""

from __future__ import annotations

import pytest

from tests.hunt.checking import check

PROGRAM = """
import collections
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
xs = torch.randn(10, 5, 3)
{before}
for x in xs:
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
{inside}
    opt.step()
"""

NODE = """
class Node:
    def __init__(self, last, following):
        self.last, self.following = last, following
node = None
for last in (False, False, False, True, False, False, False, False, False, False):
    node = Node(last, node)
"""

RECORD = """
import dataclasses
@dataclasses.dataclass(frozen=True)
class Record:
    a: bool = False
    b: bool = False
    c: bool = False
    d: bool = False
    e: bool = False
record = Record()
"""

FIVE = """
def first(loss):
    return second
def second(loss):
    return third
def third(loss):
    return fourth
def fourth(loss):
    return fifth
def fifth(loss):
    ACT
    return first
act = first
"""

#: What is there before the loop, and what decides in it whether the loss is walked once more: ``AGAIN``.
LATE = {
    "flags that are handed on": (
        "a = b = c = d = e = False",
        "if a:\n    AGAIN\na, b, c, d, e = b, c, d, e, True",
    ),
    "texts that name what comes next": (
        'phase = "a"\nnext_of = dict(a="b", b="c", c="d", d="e", e="f", f="a")',
        'if phase == "f":\n    AGAIN\nphase = next_of[phase]',
    ),
    "a list that is emptied": (
        'left = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]',
        'if left.pop(0) == "f":\n    AGAIN',
    ),
    "a tuple that gets shorter": ("left = (1, 2, 3, 4, 5)", "if left:\n    left = left[1:]\nelse:\n    AGAIN"),
    "functions that wait in line": (
        "def none(loss):\n    pass\ndef again(loss):\n    loss.backward()\n"
        "line = collections.deque([none, none, none, none, none, again, none, none, none, none])",
        "line.popleft()(loss)",
    ),
    "functions that name the next one": (
        FIVE.replace("ACT", "loss.backward()"),
        "act = act(loss)",
    ),
    "attributes that are set one after the other": (
        "class Box:\n    a = b = c = d = None\nbox = Box()",
        "if box.d:\n    AGAIN\nbox.d, box.c, box.b, box.a = box.c, box.b, box.a, 1",
    ),
    "attributes that are made one after the other": (
        "class Box:\n    pass\nbox = Box()",
        'if hasattr(box, "d"):\n    AGAIN\nelif hasattr(box, "c"):\n    box.d = 1\n'
        'elif hasattr(box, "b"):\n    box.c = 1\nelif hasattr(box, "a"):\n    box.b = 1\nelse:\n    box.a = 1',
    ),
    "keys that are put in one after the other": (
        "seen = {}",
        'if seen.get("d"):\n    AGAIN\nelif seen.get("c"):\n    seen["d"] = 1\nelif seen.get("b"):\n    seen["c"] = 1\n'
        'elif seen.get("a"):\n    seen["b"] = 1\nelse:\n    seen["a"] = 1',
    ),
    "a list that is made anew": (
        "told = [False, False, False, False, False]",
        "told = told[1:] + [True]\nif told[0]:\n    AGAIN",
    ),
    "a record that is made anew": (
        RECORD,
        "if record.a:\n    AGAIN\nrecord = Record(record.b, record.c, record.d, record.e, True)",
    ),
    "a chain of objects": (NODE, "if node.last:\n    AGAIN\nnode = node.following"),
}


def _program(before: str, inside: str) -> str:
    body = "\n".join(f"    {line}" for line in inside.replace("AGAIN", "loss.backward()").splitlines())
    return PROGRAM.format(before=before, inside=body)


@pytest.mark.parametrize("name", LATE)
def test_a_way_that_only_later_turns_go_is_seen(name: str) -> None:
    verdict = check({"main.py": _program(*LATE[name])})
    assert verdict.violations == []
    assert not verdict.fired


#: The same where no way walks anything: the flag is surplus, and nothing that decides may hide that.
HARMLESS = {
    "a flag of the first turn": ("first = True", "if first:\n    print(loss.item())\nfirst = False"),
    "a flag that is turned round": ("odd = False", "if odd:\n    print(loss.item())\nodd = not odd"),
    "texts that name what comes next": (
        'phase = "a"\nnext_of = dict(a="b", b="c", c="d", d="e", e="f", f="a")',
        'if phase == "f":\n    print(loss.item())\nphase = next_of[phase]',
    ),
    "flags that are handed on": (
        "a = b = c = d = e = False",
        "if a:\n    print(loss.item())\na, b, c, d, e = b, c, d, e, True",
    ),
    "a tuple that grows": ("seen = ()", "seen = (*seen, 1)\nif len(seen) > 5:\n    print(loss.item())"),
    "a list of texts that grows": ("seen = []", 'seen.append("step")\nif len(seen) > 5:\n    print(seen[-1])'),
    "networks that change places": ("one, other = nn.Linear(1, 1), nn.Linear(1, 1)", "one, other = other, one"),
    "functions that name the next one": (
        FIVE.replace("ACT", "print(loss.item())"),
        "act = act(loss)",
    ),
    "numbers that count": ("count = 0", "count += 1\nif count == 6:\n    print(loss.item())"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_decides_hides_nothing(name: str) -> None:
    verdict = check({"main.py": _program(*HARMLESS[name])})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1


#: Ways to call a function of the element for each element, without a loop.
OVER = {
    "a comprehension": "[step(x) for x in xs]",
    "a comprehension of texts": "{step(x): 1 for x in xs}",
    "a comprehension of two": "[step(x) for _ in range(1) for x in xs]",
    "a condition of a comprehension": "[x for x in xs if not step(x)]",
    "a generator expression": "list(step(x) for x in xs)",
    "a sum": "sum(step(x) for x in xs)",
    "map": "list(map(step, xs))",
    "map over two": "list(map(lambda x, y: step(x), xs, xs))",
    "filter": "list(filter(step, xs))",
}

#: What decides, before the function and in it, and whether it is only known after some turns.
DECIDING = {
    "texts that name what comes next": (
        'phase = "a"\nnext_of = dict(a="b", b="c", c="d", d="e", e="f", f="a")',
        'if phase == "f":\n    AGAIN\nphase = next_of[phase]',
    ),
    "flags that are handed on": ("a = b = c = d = False", "if a:\n    AGAIN\na, b, c, d = b, c, d, True"),
    "a list that is emptied": (
        'left = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]',
        "if left.pop(0) == 'f':\n    AGAIN",
    ),
}


def _over(over: str, deciding: str, again: str) -> str:
    before, inside = DECIDING[deciding]
    body = inside.replace("AGAIN", again).splitlines()
    return f"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
xs = torch.randn(10, 5, 3)
{before}
def step(x):
    global phase, a, b, c, d
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
{chr(10).join(f"    {line}" for line in body)}
    opt.step()
    return 0
{OVER[over]}
"""


@pytest.mark.parametrize("deciding", DECIDING)
@pytest.mark.parametrize("over", OVER)
def test_a_way_that_only_later_turns_without_a_loop_go_is_seen(over: str, deciding: str) -> None:
    verdict = check({"main.py": _over(over, deciding, "loss.backward()")})
    assert verdict.violations == []
    assert not verdict.fired


@pytest.mark.parametrize("deciding", DECIDING)
@pytest.mark.parametrize("over", OVER)
def test_what_decides_in_turns_without_a_loop_hides_nothing(over: str, deciding: str) -> None:
    verdict = check({"main.py": _over(over, deciding, "print(loss.item())")})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1
