"""What comes out of itself in each turn of a loop may be anything that lies in it, however deep."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

BOXES = """
class Box:
    def __init__(self, inner, kept=None):
        self.inner = inner
        self.kept = kept
n = int(x.sum())
path = [0] * n
"""

WAYS = {
    "lists": ("[[[[[[{it}]]]]]]", "while isinstance(v, list):\n    v = v[0]"),
    "the last of lists": ("[0, [0, [0, [0, [0, {it}]]]]]", "while isinstance(v, list):\n    v = v[-1]"),
    "tuples": ("(((((({it},),),),),),)", "while isinstance(v, tuple):\n    v = v[0]"),
    "dicts": ("{{'a': {{'a': {{'a': {{'a': {{'a': {it}}}}}}}}}}}", "while isinstance(v, dict):\n    v = v['a']"),
    "objects": ("Box(Box(Box(Box(Box({it})))))", "while isinstance(v, Box):\n    v = v.inner"),
    "objects in lists": ("[Box([Box([Box({it})])])]", "while isinstance(v, list):\n    v = v[0].inner"),
    "a path": ("[[[[[[{it}]]]]]]", "for i in path:\n    v = v[i]"),
    "a number of times": ("Box(Box(Box(Box(Box({it})))))", "for _ in range(n):\n    v = v.inner"),
    "an attribute": (
        "Box([[[[[{it}]]]]])",
        "while isinstance(v.inner, list):\n    v.inner = v.inner[0]\nv = v.inner",
    ),
    "until it breaks": (
        "[[[[[[{it}]]]]]]",
        "while True:\n    if not isinstance(v, list):\n        break\n    v = v[0]",
    ),
    "two at once": ("[[[[[[{it}]]]]]]", "u = v\nwhile isinstance(v, list):\n    u, v = v, v[0]"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_found_in_the_end_may_have_a_graph(way: str) -> None:
    held, loop = WAYS[way]
    found = run(BOXES + f"v = {held.format(it='torch.exp(w)')}\n{loop}\nr = v * 2\n")
    assert found.graph("r") != "free"


@pytest.mark.parametrize("way", WAYS)
def test_data_stays_data(way: str) -> None:
    held, loop = WAYS[way]
    assert run(BOXES + f"v = {held.format(it='x')}\n{loop}\nr = v * 2\n").graph("r") == "free"


CHAIN = """
head = None
for i in range(6):
    head = Box(head, torch.exp(w) * i)
first = torch.exp(w)
head = Box(Box(Box(Box(Box(Box(None, first), x), x), x), x), x)
total, node = 0, head
while node is not None:
    {step}
    node = node.inner
total.sum().backward()
"""


@pytest.mark.parametrize("step", ["total = total + node.kept", "total += node.kept.sum()", "last = total = node.kept"])
def test_a_chain_of_objects_is_looked_at_to_its_end(step: str) -> None:
    found = run(BOXES + CHAIN.replace("{step}", step))
    assert {node for node in found.nodes("first") if not node.leaf} <= set(found.walks()[-1].seen)


def test_a_chain_without_graphs_walks_nothing() -> None:
    text = CHAIN.replace("None, first", "None, x").replace("{step}", "total = total + node.kept")
    assert not run(BOXES + text).walks()[-1].seen


def test_a_loop_that_takes_all_its_turns_knows_where_it_ends() -> None:
    text = "v = [[[torch.exp(w)], x], x]\nfor i in (0, 0, 0):\n    v = v[i]\n"
    assert run(text).graph("v") == "attached"
    assert run(text.replace("v[i]", "v[1]", 1).replace("(0, 0, 0)", "(0,)")).graph("v") == "free"


def test_a_model_that_is_unwrapped_stays_what_it_is() -> None:
    text = "model = nn.DataParallel(net)\nwhile hasattr(model, 'module'):\n    model = model.module\nr = model(x)\n"
    assert run(text).graph("r") == "attached"


SHIFTED = """
{names} = {nones}
for out in {outs}:
    {names} = {rest}, out
"""


def _shifted(places: int, outs: str) -> str:
    names = [f"p{i}" for i in range(places)]
    return SHIFTED.format(
        names=", ".join(names), nones=", ".join(["None"] * places), rest=", ".join(names[1:]), outs=outs
    )


@pytest.mark.parametrize("outs", ["[torch.exp(w)] * int(x.sum())", "(torch.exp(w) for _ in range(int(x.sum())))"])
@pytest.mark.parametrize("places", [2, 4, 9])
def test_what_is_shifted_on_arrives_at_the_end(places: int, outs: str) -> None:
    found = run(_shifted(places, outs))
    assert found.graph("p0") != "free"
    assert not found.trace.notes


def test_what_is_shifted_on_for_too_long_is_not_looked_at_to_its_end() -> None:
    found = run(_shifted(16, "[torch.exp(w) for _ in range(int(x.sum()))]"))
    assert found.graph("p15") != "free"
    assert ["not entered" in note for note in found.trace.notes] == [True]
    assert not run(_shifted(16, "[x for _ in range(int(x.sum()))]")).trace.notes
