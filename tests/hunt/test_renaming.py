"""Other names, the same findings and diffs; and that the names are other ones, in a tree that means the same."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from codemods.source.options import Options
from fixtures import Case, cases
from tests.hunt.renaming import differences, renamed

ALL = [case for case in cases() if not any(path.endswith(".ipynb") for path in case.before)]
FAST = ALL[::40]

TREE = {
    "tools/store.py": """\
import torch
from torch import nn as layers

LIMIT = 3


def keep(value, *, factor=1.0):
    global LIMIT
    LIMIT += 1
    return value * factor


class Box(layers.Module):
    size = 4

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = layers.Linear(width, 1)

    def forward(self, x, mask=None):
        return self.layer(x)

    def twice(self, x):
        return [self.forward(item) for item in (x, x)]
""",
    "main.py": """\
import argparse

import tools.store
from tools.store import Box, keep as hold

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=4)
args = parser.parse_args()
box = Box(args.width)
print(hold(2.0, factor=3.0), tools.store.LIMIT, box.size, f"{box.twice.__name__}")
""",
}


def texts(case: Case) -> dict[str, str]:
    return {path: text.decode() for path, text in case.before.items()}


def options(case: Case) -> Options:
    chosen: dict[str, Any] = {}
    given = iter(case.options)
    for name in given:
        field = name[2:].replace("-", "_")
        if field == "unsafe":
            chosen[field] = True
        elif field in ("select", "ignore"):
            chosen[field] = (*chosen.get(field, ()), *next(given).split(","))
        else:
            chosen[field] = next(given)
    return Options(**chosen)


def identifiers(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        found.update(
            str(getattr(node, name)) for name in ("id", "attr", "arg", "name", "asname") if hasattr(node, name)
        )
    return found


@pytest.mark.parametrize("style", ["neutral", "telling"])
def test_the_users_names_go_and_those_of_others_stay(style: str) -> None:
    after = renamed(TREE, style)
    words = {word for text in after.texts.values() for word in identifiers(text)}
    gone = {"keep", "hold", "factor", "Box", "twice", "layer", "LIMIT", "layers", "x", "mask", "parser", "box", "self"}
    # what the command line calls "width" is asked for by that name
    stay = {"torch", "Module", "Linear", "forward", "__init__", "super", "width", "parse_args", "add_argument", "print"}
    assert stay <= words
    if style == "neutral":
        assert not gone & words
    assert sorted(after.paths.values()) == sorted(TREE)
    assert not {"tools/store.py", "main.py"} & set(after.texts)


@pytest.mark.parametrize("style", ["neutral", "telling"])
def test_names_that_belong_together_stay_together(style: str) -> None:
    after = renamed(TREE, style)
    back = {before: now for now, before in after.paths.items()}
    store, main = ast.parse(after.texts[back["tools/store.py"]]), ast.parse(after.texts[back["main.py"]])
    plain = next(n for n in main.body if isinstance(n, ast.Import) and n.names[0].name != "argparse")
    taken = next(n for n in main.body if isinstance(n, ast.ImportFrom))
    assert plain.names[0].name == taken.module == back["tools/store.py"].removesuffix(".py").replace("/", ".")
    function = next(n for n in store.body if isinstance(n, ast.FunctionDef))
    assert [alias.name for alias in taken.names] == [store.body[-1].name, function.name]  # type: ignore[attr-defined]
    calls = [n for n in ast.walk(main) if isinstance(n, ast.Call) and n.keywords]
    assert function.args.kwonlyargs[0].arg in {k.arg for call in calls for k in call.keywords}
    limit = next(n for n in ast.walk(store) if isinstance(n, ast.Global)).names[0]
    assert limit in {n.attr for n in ast.walk(main) if isinstance(n, ast.Attribute)}


def test_nothing_of_a_tree_changes_but_its_names() -> None:
    for path, text in renamed(TREE, "telling").texts.items():
        kinds = [type(n) for n in ast.walk(ast.parse(text))]
        assert kinds == [type(n) for n in ast.walk(ast.parse(TREE[renamed(TREE, "telling").paths[path]]))]


def test_what_a_name_decides_is_shown() -> None:
    # pytest says by the name of a file that it holds tests, which evaluate a little of everything
    code = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
net.load_state_dict(torch.load("net.pt"))
net.eval()
for x in [torch.randn(3, 4)] * 9:
    print(net(x).max())
"""
    assert differences({"score.py": code}) == []
    assert differences({"tests/test_score.py": code}) == []


@pytest.mark.parametrize("case", FAST, ids=str)
def test_findings_and_diffs_of_a_fixture_are_the_same(case: Case) -> None:
    assert differences(texts(case), options(case)) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_findings_and_diffs_of_all_fixtures_are_the_same(case: Case) -> None:
    styles = [("neutral", 0), *(("telling", seed) for seed in range(3))]
    assert differences(texts(case), options(case), styles=styles) == []
