"""What stands in the place of what is left out: values found by trial, given again, and what goes in is looked at."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
import torch

from tests.verify.probe.tools import forked, probe
from verify.probe.calls import values
from verify.probe.standins import arguments

PROGRAM = """\
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = __codemod_left__(0, None)("data.npy")
for turn in range(3):
    loss = model(data).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    more = __codemod_left__(1, (model))(loss, turn)
print("%.4f" % float(data.sum()))
"""
FORM = {"roles": ["int", "text", "tensor", "hollow"]}
NOTHING = {"is": "hollow"}


def left(form: dict[str, Any], recipe: Any = None, *, deep: bool = False) -> dict[str, Any]:
    return {
        "place": "train.py:4",
        "span": ["train.py", 4, 0, 4, 9],
        "form": form,
        "deep": deep,
        "why": "",
        "recipe": recipe,
    }


@pytest.mark.slow
def test_of_several_the_one_that_comes_furthest_is_found_and_given_again() -> None:
    both = [left(FORM), left({"roles": ["hollow"]}, NOTHING)]
    found, done = probe(PROGRAM, left=both, explore=True, watch=[[["train.py", 10]]], params=True)
    first = found.left[0]["recipe"]
    assert (first["is"], first["shape"][-1]) == ("tensor", 3)
    # The copies that tried are silent.
    assert len(found.steps) == 3
    again, other = probe(PROGRAM, left=[left(FORM, first), both[1]])
    assert (other.stdout, again.left[0]["recipe"]) == (done.stdout, first)
    assert [step.params for step in again.steps] == [step.params for step in found.steps]


def test_what_goes_in_is_looked_at() -> None:
    tensor = {"is": "tensor", "shape": [2, 3], "type": "float32", "below": 0}
    record, _ = forked(PROGRAM, left=[left({}, tensor), left({}, NOTHING)], watch=[[["train.py", 9]]])
    seen = [each for each in record.observed if each.place.startswith("1 ")]
    assert [(each.call, each.begun, each.whole) for each in seen] == [(1, True, True), (2, True, True), (3, True, True)]
    assert len({each.values.digest for each in seen}) == 3
    first = next(each for each in record.observed if each.place.startswith("0 "))
    assert not first.begun
    deep, _ = forked(PROGRAM, left=[left({}, tensor), left({}, NOTHING, deep=True)])
    assert not any(each.whole for each in deep.observed if each.place.startswith("1 "))


LOADER = "import torch\nfrom torch.utils.data import DataLoader\n"


def test_an_attribute_that_only_what_was_made_up_lacks() -> None:
    for name, missing in (("made", True), ("other", False)):
        program = f"made = __codemod_left__(0, None)()\nother = [1]\nprint({name}.classes)\n"
        record, _ = forked(program, left=[left({}, {"is": "texts"})], explore=True)
        assert record.stopped is not None
        assert record.stopped.missing is missing
        assert record.stopped.frames[0].span == (3, 6, 3, 6 + len(name) + 8)


@pytest.mark.parametrize(
    ("text", "missing", "graph"),
    [
        ("open('nowhere.txt')", True, False),
        ("{}['x']", False, False),
        ("import torch\ntorch.nn.Linear(2, 2)(torch.ones(3))", False, True),
        ("import torch\nx = torch.ones(1, requires_grad=True) ** 2\nx.backward()\nx.backward()", False, True),
        ("import torch\ntorch.load('nowhere.pt')", True, False),
        ("import argparse\nargparse.Namespace(a=1).b", True, False),
        ("object().b", False, False),
        (f"{LOADER}next(iter(DataLoader([torch.ones(2), torch.ones(3)], batch_size=2)))", True, False),
        (f"{LOADER}for x in DataLoader([torch.ones(2)]): torch.nn.Linear(3, 3)(x)", False, True),
    ],
)
def test_why_it_stopped(text: str, missing: bool, graph: bool) -> None:
    record, _ = forked(text + "\n", explore=True)
    assert record.stopped is not None
    assert (record.stopped.missing, record.stopped.graph) == (missing, graph)
    assert [frame.path for frame in record.stopped.frames] == ["train.py"]


def test_what_is_absent_has_a_place_that_it_came_from() -> None:
    record, _ = forked("import gone\nenv = gone.make(1)\nx = 1 + env\n", explore=True, modules=["gone"])
    assert record.stopped is not None
    (frame,) = record.stopped.frames
    names = dict(frame.hollow)
    assert frame.span == (3, 4, 3, 11)
    assert names["env"] == ("train.py", 2, 6, 2, 18)
    assert names["gone"] is None


def test_what_is_told_to_a_module_that_is_not_there() -> None:
    text = "import torch, gone\nfor turn in range(3):\n    gone.log({'loss': turn})\n"
    record, _ = forked(text, modules=["gone"])
    seen = [each for each in record.observed if each.place == "the module gone.log"]
    assert [each.call for each in seen] == [1, 2, 3]
    assert len({each.values.digest for each in seen}) == 3


def test_whether_a_graph_goes_in_is_nothing_to_what_tells_people() -> None:
    text = (
        "import torch, gone\ngone.log(torch.ones(1, requires_grad=True) * 2)\nthing = gone.make()\nthing.loss = 3.0\n"
    )
    plain, _ = forked(text, modules=["gone"])
    people, _ = forked(text, modules=["gone"], people=["gone"])
    assert [each.graphs for each in plain.observed if each.place == "the module gone.log"] == ["1"]
    assert [each.graphs for each in people.observed if each.place == "the module gone.log"] == [""]
    assert "the module gone.make.loss" in {each.place for each in plain.observed}


def test_values_differ_from_turn_to_turn_and_not_from_run_to_run() -> None:
    torch = pytest.importorskip("torch")
    array = {"is": "array", "shape": [3], "type": "float32", "below": 0}
    recipe = {"is": "parts", "parts": [array, {"is": "bool"}, {"is": "float"}]}
    one, other, again = (values.make(recipe, 0, turn) for turn in (1, 2, 1))
    assert one[0].tolist() == again[0].tolist() != other[0].tolist()
    assert one[1:] == again[1:] != other[1:]
    assert [values.make({"is": "bool"}, 0, turn) for turn in range(1, 5)] == [False, False, False, True]
    batches = values.make({"is": "loader", "item": {"is": "parts", "parts": [array, array]}}, 0, 1)
    assert not torch.equal(torch.as_tensor(batches[0][0]), torch.as_tensor(batches[1][0]))
    state = torch.get_rng_state()
    values.make({"is": "module"}, 0, 1)
    assert torch.equal(torch.get_rng_state(), state)


def test_leaves_are_chosen_one_by_one() -> None:
    form = {"roles": ["parts"], "parts": [{"roles": ["int"]}, {"roles": ["bool", "text"], "texts": ["b"]}]}
    (skeleton,) = values.skeletons(form, [])
    options = [leaf["options"] for leaf in values.leaves(skeleton)]
    assert options[1][:2] == [{"is": "bool"}, {"is": "value", "value": "b"}]
    chosen = values.chosen(skeleton, iter([options[0][0], options[1][1]]))
    assert values.told(chosen) == "(4, 'b')"


def test_arguments_that_nobody_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", argparse.ArgumentParser.parse_known_args)
    events: list[dict[str, Any]] = []
    arguments.install({"mode": "fast", "size": "large", "kind": "b"}, events.append)
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--kind", choices=["a", "b"], required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--mode", type=str, required=True)
    parser.add_argument("--plain", default="p")
    found = parser.parse_args(["--rate", "3"])
    assert vars(found) == {"path": "made-up", "size": 2, "kind": "a", "rate": 3.0, "mode": "fast", "plain": "p"}
    assert [event["what"] for event in events] == [f"the argument {name}" for name in ("path", "size", "kind", "mode")]
    with pytest.raises(SystemExit):
        parser.parse_args(["--size", "x"])


def first(skeleton: dict[str, Any]) -> list[list[int]]:
    """The shapes of what is tried first in the place of each leaf."""
    return [leaf["options"][0]["shape"] for leaf in values.leaves(skeleton)]


def test_batches_have_the_size_that_loaders_are_told() -> None:
    item = {"roles": ["parts"], "parts": [{"roles": ["tensor"]}, {"roles": ["labels"]}]}
    form = {"roles": ["loader", "samples"], "item": item, "batch": 16}
    batches, samples = list(values.skeletons(form, [torch.nn.Conv2d(3, 8, 3)]))[:2]
    assert (batches["is"], first(batches)) == ("loader", [[16, 3, 16, 16], [16]])
    assert (samples["is"], first(samples)) == ("samples", [[3, 16, 16], []])
    made = values.make(values.chosen(batches, iter([leaf["options"][0] for leaf in values.leaves(batches)])), 0, 1)
    assert (made.batch_size, len(made.dataset), len(made)) == (16, 64, 4)
    assert made.dataset[63] is made[3]
    x, y = made[0]
    assert (len(x), len(y)) == (16, 16)


def test_loaders_that_come_together_are_each_one() -> None:
    item = {"roles": ["parts"], "parts": [{"roles": ["tensor"]}, {"roles": ["labels"]}]}
    loader = {"roles": ["loader", "tensor"], "item": item}
    form = {"roles": ["parts"], "parts": [loader, loader, {"roles": ["int", "loader"]}]}
    found = next(values.skeletons(form, []))
    assert [part.get("is") for part in found["parts"]] == ["loader", "loader", None]
    made = values.make(values.chosen(found, iter([leaf["options"][0] for leaf in values.leaves(found)])), 0, 1)
    assert len(made[0]) == len(made[1]) == 4
    assert isinstance(made[2], int)


LOADERS = """\
import torch
torch.manual_seed(0)
one = __codemod_left__(0, None)("train")
other = __codemod_left__(1, None)("valid")
model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(), torch.nn.Linear(2 * 30 * 30, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for loader in (other, one):
    for x, y in loader:
        loss = (model(x)[:, 0] - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("end")
"""


def test_what_is_like_another_begins_with_what_was_found_there() -> None:
    item = {"roles": ["parts"], "parts": [{"roles": ["tensor"], "name": "x"}, {"roles": ["labels"], "name": "y"}]}
    form = {"roles": ["loader"], "item": item}
    found, done = forked(LOADERS, left=[left(form), left(form)], explore=True, watch=[[["train.py", 9]]])
    assert done.stdout == "end\n"
    first, second = (each["recipe"]["item"]["parts"] for each in found.left)
    assert first[0]["shape"] == second[0]["shape"] == [4, 3, 32, 32]


def test_points_come_with_their_features_last() -> None:
    form = {"roles": ["tensor"], "batch": 4}
    (leaf,) = values.leaves(next(values.skeletons(form, [torch.nn.Conv1d(3, 8, 1)])))
    shapes = [option["shape"] for option in leaf["options"]]
    assert [2, 3, 16] in shapes[:4]
    assert [2, 16, 3] in shapes[:8]
