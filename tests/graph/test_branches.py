"""Branches are run both ways and joined; exceptions, returns and jumps end paths."""

from __future__ import annotations

import pytest

from codemods.graph.model.kinds import NodeKind
from tests.graph.tools import line, run

GRAPHS = [
    ("y = x\nif x.sum() > 0:\n    y = w", "perhaps"),
    ("if x.sum() > 0:\n    y = w * 2\nelse:\n    y = w * 3", "attached"),
    ("if x.sum() > 0:\n    y = w\nelif x.sum() < 1:\n    y = x\nelse:\n    y = x * 2", "perhaps"),
    ("if True:\n    y = x\nelse:\n    y = w", "free"),
    ("if 0:\n    y = w\nelse:\n    y = x", "free"),
    ("y = None\nif y is None:\n    y = w", "attached"),
    ("y = w\nif x.sum() > 0:\n    raise ValueError\nelse:\n    y = x", "free"),
    ("y = w\nwhile x.sum() > 0:\n    y = x\nelse:\n    y = w", "attached"),
    ("for i in range(3):\n    pass\nelse:\n    y = w", "attached"),
    ("y = x\nfor i in range(3):\n    if x.sum() > 0:\n        break\nelse:\n    y = w", "perhaps"),
    ("y = x\nfor i in []:\n    y = w", "free"),
    ("y = x\nfor i in ():\n    y = w", "free"),
    ("y = x\nwhile False:\n    y = w\nelse:\n    y = w", "attached"),
    ("y = w\nwhile True:\n    y = x\n    break", "free"),
    ("try:\n    y = w\nexcept ValueError:\n    y = x", "perhaps"),
    ("y = x\ntry:\n    y = w\nexcept ValueError:\n    pass", "perhaps"),
    ("try:\n    raise ValueError\nexcept ValueError:\n    y = w\nelse:\n    y = x", "attached"),
    ("try:\n    y = x\nfinally:\n    y = w", "attached"),
    ("y = x\ntry:\n    y = w\nexcept ValueError:\n    y = w\nexcept (TypeError, KeyError) as e:\n    y = w\nelse:\n"
     "    y = w",
     "attached"),
    ("def f():\n    try:\n        return w\n    finally:\n        pass\ny = f()", "attached"),
    ("def f():\n    if x.sum() > 0:\n        return x\n    return w\ny = f()", "perhaps"),
    ("def f():\n    for i in range(3):\n        return w\ny = f()", "perhaps"),
    ("def f():\n    for i in range(3):\n        if x.sum() > 0:\n            return w\n    return w\n"
     "y = f()", "attached"),
    ("def f():\n    raise NotImplementedError\n    return w\ntry:\n    y = f()\nexcept NotImplementedError:\n"
     "    y = x", "free"),
    ("match x:\n    case [a, b]:\n        y = w\n    case {'k': v}:\n        y = w\n    case _:\n"
     "        y = x", "perhaps"),
    ("match x:\n    case 1 | 2:\n        y = w\n    case str():\n        y = w * 2\n    case other:\n"
     "        y = other", "perhaps"),
    ("y = x\nmatch (w, x):\n    case (a, b) if x.sum() > 0:\n        y = a * 2\n    case _:\n"
     "        y = w", "attached"),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    y = w\nelse:\n    y = x", "free"),
    ("import typing as t\nif not t.TYPE_CHECKING:\n    y = w\nelse:\n    y = x", "attached"),
    ("y = w if True else x", "attached"),
    ("y = w if None else x", "free"),
    ("y = (z := w * 2) and z", "attached"),
    ("y = x\nif (n := 3) > 2:\n    y = w", "attached"),
    ("assert x.sum() > 0, 'no'\ny = w", "attached"),
    ("y = w\ndel y\ny = x", "free"),
]  # fmt: skip


KINDS = [
    ("type(made) not in [list, tuple]", "made", "x", "free"),
    ("type(made) is not list", "made", "x", "free"),
    ("type(made) == list", "made[0]", "w", "attached"),
    ("type(made) in (list, torch.Tensor)", "made", "x", "perhaps"),
    ("type(made) is torch.Tensor", "made", "x", "perhaps"),
    ("type(made) not in [list, kinds]", "made", "x", "free"),
    ("type(made) not in kinds", "made", "x", "perhaps"),
    ("type(made) != kinds", "made", "x", "perhaps"),
    ("kinds(made) is not list", "made", "x", "perhaps"),
]


@pytest.mark.parametrize(("test", "first", "second", "expected"), KINDS)
def test_types_are_told_apart(test: str, first: str, second: str, expected: str) -> None:
    made = "kinds = eval(input())\nmade = [w] if x.sum() > 0 else x\n"
    assert run(f"{made}if {test}:\n    y = {first}\nelse:\n    y = {second}").graph("y") == expected


@pytest.mark.parametrize(("code", "expected"), GRAPHS)
def test_branches_are_run_both_ways(code: str, expected: str) -> None:
    assert run(code).graph("y") == expected


FAILS = """\
def fails():
    raise NotImplementedError
y = x
d = open('f').read()
try:
    {}
except NotImplementedError:
    pass
"""


ENDED = [
    ("if fails():\n        y = w\n    else:\n        y = w", "free"),
    ("with fails():\n        y = w", "free"),
    ("with torch.no_grad(), fails():\n        pass\n    y = w", "free"),
    ("for i in fails():\n        y = w", "free"),
    ("z = fails() if d else 1\n    y = w", "perhaps"),
    ("z = d or fails()\n    y = w", "perhaps"),
    ("z = d and not fails() or 1\n    y = w", "perhaps"),
    ("z = fails() if d else fails()\n    y = w", "free"),
    ("z = fails() or d\n    y = w", "free"),
]


@pytest.mark.parametrize(("code", "expected"), ENDED)
def test_a_call_that_always_raises_ends_the_paths_that_come_to_it(code: str, expected: str) -> None:
    assert run(FAILS.format(code)).graph("y") == expected


def test_a_context_whose_making_raises_is_left() -> None:
    code = FAILS.format("with torch.no_grad(), fails():\n        pass")
    assert run(f"{code}y = w * 2").graph("y") == "attached"


def test_both_branches_leave_their_walks() -> None:
    found = run("if x.sum() > 0:\n    (w * x).sum().backward()\nelse:\n    (w * 2).sum().backward()")
    assert len(found.walks()) == 2


def test_a_store_in_a_branch_is_seen_by_the_next_turn() -> None:
    code = """
        h = x
        for i in range(9):
            y = h * w
            y.sum().backward()
            if i % 2:
                h = y
    """
    found = run(code)
    assert found.again() == [line(found, "backward")]


def test_a_window_is_no_proof() -> None:
    # conditions are not related to each other: the graph of a turn without backward meets that of a turn with one, but
    # only by a node that says that it may be another
    code = """
        h = x
        for i in range(9):
            h = h * w
            if i % 3 == 2:
                h.sum().backward()
                h = h.detach()
    """
    found = run(code)
    freed = {id(node) for walk in found.walks() for node, _ in walk.again}
    joined = [
        n for w in found.walks() for n in w.seen if n.kind is NodeKind.PHI and any(id(p) in freed for p in n.parents)
    ]
    assert joined
    assert not any(node.certain for node in joined)


TYPES = [
    ("[w * 2]", "type({}) in [list, tuple]", "attached"),
    ("[w * 2]", "type({}) not in (tuple, set)", "attached"),
    ("(w * 2,)", "type({}) is tuple", "attached"),
    ("(w * 2,)", "type({}) is not list", "attached"),
    ("[w * 2]", "type({}) in (tuple, dict)", "free"),
    ("(w * 2,)", "type({}) is list", "free"),
    ("[w * 2]", "type({}) in kinds()", "perhaps"),
    ("[w * 2]", "type({}) in (tuple, kinds)", "perhaps"),
    ("[w * 2]", "type({}) in (tuple, torch.Tensor)", "free"),
    ("(w * 2).max(0)", "type({}) is tuple", "perhaps"),
    ("w * 2", "type({}) in (list, tuple)", "perhaps"),
    ("unseen(w)", "type({}) in (list, tuple)", "perhaps"),
    ("dict(a=w * 2)", "type({}) is OrderedDict", "perhaps"),
]


@pytest.mark.parametrize(("value", "test", "expected"), TYPES)
def test_a_type_that_is_known_chooses_the_branch(value: str, test: str, expected: str) -> None:
    code = f"""
        from collections import OrderedDict
        from elsewhere import kinds, unseen
        made = {value}
        y = x
        if {test.format("made")}:
            y = w * 3
    """
    assert run(code).graph("y") == expected
