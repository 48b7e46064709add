"""What parameters could be, by what is done with them."""

from __future__ import annotations

import ast

import pytest

from verify.reaching.drives import drive, functions
from verify.reaching.hints import hints

OPTIONS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--hidden-size", type=int, default=64)
parser.add_argument("--cuda", action="store_true")
parser.add_argument("path")
class Net:
    def __init__(self, width):
        self.width = width
    def start(self, size):
        return size
"""
CASES = [
    ("def f(x):\n    return x.view(2)", ["tensor"]),
    ("def f(x: int):\n    return x", ["int"]),
    ("def f(x):\n    return torch.zeros(x, 2)", ["int"]),
    ("def f(x, y=1, *z):\n    x.step()", ["optimizer"]),
    ("def f(x):\n    for i, (a, b) in enumerate(x): pass", ["loader", "tensor"]),
    ("def f(x):\n    if x: pass", ["bool"]),
    ("def f(x):\n    return x(1)", ["module", "criterion"]),
    ("def f(x):\n    return g(x)", ["tensor", "labels"]),
    ("def f(x):\n    if x == 'lstm': pass", ["text"]),
    ("def f(x):\n    return x.hidden_size", ["options"]),
    ("def f(x):\n    x.start(2)\n    return x(1)", ["object"]),
    ("def f(x):\n    pass", ["tensor", "int", "labels", "module"]),
]


@pytest.mark.parametrize(("text", "roles"), CASES, ids=[text for text, _ in CASES])
def test_by_use(text: str, roles: list[str]) -> None:
    trees = {"a.py": ast.parse(text), "b.py": ast.parse(OPTIONS)}
    found = hints(next(functions(trees["a.py"]))[1], trees)
    assert list(found) == ["x"]
    assert found["x"]["roles"] == roles


def test_options_have_the_values_of_their_defaults() -> None:
    trees = {"a.py": ast.parse("def f(x):\n    return x.hidden_size, x.cuda, x.path"), "b.py": ast.parse(OPTIONS)}
    (hint,) = hints(next(functions(trees["a.py"]))[1], trees).values()
    assert hint["values"] == {"hidden_size": 64, "cuda": False, "path": None}


def test_a_drive_knows_how_its_object_is_made() -> None:
    trees = {"b.py": ast.parse(OPTIONS + "net = Net(3)\n")}
    found = drive("b.py", "Net.start", trees, [12, 11])
    assert (list(found.hints), found.lines) == (["size"], (11, 12))
    assert found.owner is not None
    assert [(each.function, each.arguments) for each in found.owner.sites] == [("Net", "__codemod_take__(3)")]


def test_classes_that_take_each_other_are_asked_once() -> None:
    text = "class A:\n    def __init__(self, b):\n        b.turn()\n    def spin(self, b):\n        b.turn()\n"
    text += "class B:\n    def __init__(self, a):\n        a.spin()\n    def turn(self):\n        pass\n"
    found = drive("a.py", "A.spin", {"a.py": ast.parse(text)})
    assert [maker["name"] for maker in found.hints["b"]["makers"]] == ["B.__init__"]
    assert found.owner is not None
    assert found.owner.hints["b"]["makers"] == []
