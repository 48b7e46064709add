"""What made-up files are made of can be read by what reads such files."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
from typing import Any

import numpy
import pytest

from verify.probe.calls import contents, values
from verify.probe.calls.recipes import Is


def form(**more: Any) -> dict[str, Any]:
    plain = {"kind": "open", "suffix": ".txt", "formats": ["text"], "keys": [], "separators": [], "columns": 0}
    return {**plain, "suffixes": [], "state": False, "empty": False, **more}


def recipe(kind: str, *parts: dict[str, Any], keys: tuple[str, ...] = (), shape: str = "whole") -> dict[str, Any]:
    return {"is": Is.FILE, "format": kind, "parts": list(parts), "keys": list(keys), "as": shape}


def first(**more: Any) -> dict[str, Any]:
    """The first recipe after that which leaves the file missing."""
    skeleton = list(contents.skeletons(form(**more)))[1]
    made: dict[str, Any] = values.chosen(skeleton, iter([leaf["options"][0] for leaf in values.leaves(skeleton)]))
    return made


def test_that_a_file_stays_missing_is_tried_first() -> None:
    for kind in ("open", "exists", "list", "glob"):
        assert next(contents.skeletons(form(kind=kind)))["format"] == "absent"
    assert next(contents.skeletons(form(empty=True)))["format"] == "text"


def test_the_same_path_has_the_same_content_and_others_have_others() -> None:
    made = recipe("text", {"v": "lines", "columns": ["floats"], "separator": " "})
    assert contents.content(made, 1) == contents.content(made, 1) != contents.content(made, 2)


def test_lines_have_columns_and_every_class() -> None:
    made = first(separators=["\t"], columns=3)
    rows = [line.split("\t") for line in contents.content(made, 0).decode().splitlines()]
    assert len(rows) == contents.ROWS
    assert {len(row) for row in rows} == {3}
    assert {int(row[0]) for row in rows} == {0, 1}


def test_a_text_without_columns_has_letters() -> None:
    assert first()["parts"] == [{"v": "letters"}]


def test_a_table_has_the_columns_that_are_asked_for() -> None:
    text = contents.content(first(suffix=".csv", formats=["table"], keys=["age", "kind"]), 0).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == contents.ROWS
    assert set(rows[0]) == {"age", "kind"}


def test_json_by_keys() -> None:
    made = recipe("json", {"v": "pairs"}, {"v": "index"}, {"v": "int"}, keys=("edges", "kinds", "target"), shape="dict")
    found = json.loads(contents.content(made, 5))
    assert {node for pair in found["edges"] for node in pair} == {int(node) for node in found["kinds"]}
    assert isinstance(found["target"], int)


def test_a_list_of_json_and_a_value_a_line() -> None:
    parts = ({"v": "text"}, {"v": "int"})
    some = json.loads(contents.content(recipe("json", *parts, keys=("text", "label"), shape="dicts"), 0))
    lines = contents.content(recipe("lines", *parts, keys=("text", "label"), shape="dicts"), 0).decode().splitlines()
    for each in (*some, *map(json.loads, lines)):
        assert isinstance(each["text"], str)
        assert each["label"] in (0, 1)


def test_arrays_in_their_formats() -> None:
    array = {"v": "array", "type": "float32", "shape": [64, 4]}
    assert numpy.load(io.BytesIO(contents.content(recipe("npy", array), 0))).shape == (64, 4)
    named = recipe("npz", array, array, keys=("x", "y"), shape="dict")
    assert set(numpy.load(io.BytesIO(contents.content(named, 0))).files) == {"x", "y"}
    assert pickle.loads(contents.content(recipe("pickle", array), 0)).dtype == numpy.float32


def test_pictures() -> None:
    image = pytest.importorskip("PIL.Image")
    made = recipe("image", {"v": "image", "shape": [28, 28, 1]})
    assert image.open(io.BytesIO(contents.content(made, 0))).size == (28, 28)


def test_a_state_stands_in_for_itself() -> None:
    assert len(list(contents.skeletons(form(suffix=".pth", formats=["torch"], state=True)))) == 1
    assert len(list(contents.skeletons(form(suffix=".pt", formats=["torch"])))) > 1


@pytest.mark.parametrize(
    ("pattern", "name", "count"),
    [
        ("data/*.npy", "data/item_03.npy", contents.ITEMS),
        ("data/*/*.png", "data/item_01/item_03.png", contents.ITEMS),
        ("data/**/x_?.txt", "data/item_00/x_0.txt", contents.ITEMS),
        ("data/x.txt", "data/x.txt", 1),
    ],
)
def test_names_that_fit_a_pattern(pattern: str, name: str, count: int) -> None:
    found = contents.names(recipe("folder", {"v": "matches"}), pattern.replace("/", os.sep))
    assert name.replace("/", os.sep) in found
    assert len(found) == count


def test_folders_of_classes() -> None:
    found = contents.names(recipe("folder", {"v": "classes", "suffix": ".jpg"}), "data")
    assert {os.path.dirname(name) for name in found} == {os.path.join("data", f"class_{each}") for each in range(2)}


def test_told_for_people() -> None:
    made = recipe("json", {"v": "pairs"}, {"v": "int"}, keys=("edges", "target"), shape="dict")
    assert contents.told(made) == "json (edges: pairs, target: int)"
    assert contents.told(recipe("text", {"v": "lines", "columns": ["words", "ints"], "separator": " "})) == (
        "text (lines of words, ints)"
    )
