"""The variables of a comprehension end with it (Python reference, 6.2.4), and functions made in it remember them."""

from __future__ import annotations

import pytest

from tests.graph.tools import PRELUDE, run

SNIPPETS = [
    # what a variable of the same name held before, it holds afterwards
    "y = x * w\n[y for y in (x, x)]",
    "y = x\n[y for y in (x * w, w)]",
    "y = x * w\n{y for y in (1, 2)}",
    "y = x * w\n{k: y for k, y in {'a': x}.items()}",
    "y = x * w\nsum(y for y in (x, x))",
    "y = x\ntotal = sum(y.sum() for y in (x * w, w))",
    "y = x * w\n[[y for y in (x,)] for _ in range(3)]",
    "y = x * w\n[y for y in (x,) for x in (y,)]",
    "def f(y):\n    [y for y in (x,)]\n    return y\ny = f(x * w)",
    "def f(y):\n    [y for y in (x * w,)]\n    return y\ny = f(x)",
    "y = x * w\nclass A:\n    z = [y for y in (x,)]\n",
    # it sees what stands around it
    "a = x * w\n(y,) = [a for _ in range(1)]",
    "def f(a):\n    return [a * b for b in (x,)][0]\ny = f(w)",
    "y = [y for y in [y * w for y in (x,)]][0]",
    "y = [b for a in ((x, w),) for b in a][-1]",
    "y = [a for a in (None, x * w) if a is not None][0]",
    "y = [a for a in (None, x) if a is not None][0]",
    # functions remember the comprehension in which they are made
    "y = [lambda: a for a in (w,)][0]()",
    "y = [lambda: a for a in (x,)][0]()",
    "def f():\n    b = w\n    return [lambda: a * b for a in (x,)]\ny = f()[0]()",
    "def f():\n    b = x\n    return [[lambda: a * b * c for a in (x,)] for c in (x,)]\ny = f()[0][0]()",
    # a walrus binds outside
    "y = x\n[y := a for a in (x * w,)]",
    "y = x * w\n[y := a for a in (x,)]",
    "def f():\n    y = x\n    [y := a for a in (x * w,)]\n    return y\ny = f()",
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_torch_agrees(snippet: str) -> None:
    names: dict[str, object] = {}
    exec(PRELUDE + snippet, names)
    real = "attached" if getattr(names["y"], "requires_grad", False) else "free"
    assert run(snippet).graph("y") == real


def test_nothing_of_a_comprehension_is_carried_into_the_next_turn() -> None:
    trace = run("for i in range(9):\n    [y for y in (x * w,)]\n    [y + 1 for y in (x * w,)]\n").trace
    owners = {carrier.owner for n in trace.nodes for carrier, _ in n.stores if carrier.name == "y"}
    assert len(owners) == 4  # two turns of two comprehensions
