"""What made-up files and folders are made of: recipes in plain JSON, and the bytes and names that these come to.

A file takes the options that its reader leaves open (:mod:`.readers`); which of them fit is found by trial. Numbers are
small and whole wherever nothing speaks against it: they do as indices, as labels and as measurements.
"""

from __future__ import annotations

import importlib
import io
import itertools
import json
import os
import random
from collections.abc import Iterator
from typing import Any

from ..standins import formats
from .recipes import Is

#: Items of a folder, and classes that labels have: so many has every classifier.
ITEMS, _CLASSES = 32, 2
#: Lines of a text or a table: more than a batch has.
ROWS = 256
_MOST_WAYS = 3
_LETTERS = 20_000
_SENTENCE = "the quick brown fox jumps over the lazy dog"
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff", ".gif", ".webp")
#: The format of a file by its suffix, where its reader does not tell.
SUFFIXES = {
    ".json": "json", ".pkl": "pickle", ".pickle": "pickle", ".p": "pickle", ".npy": "npy", ".npz": "npz", ".mat": "mat",
    ".h5": "h5", ".hdf5": "h5", ".pt": "torch", ".pth": "torch", ".csv": "table", ".tsv": "table", ".jsonl": "lines",
    ".yaml": "json", ".yml": "json", **dict.fromkeys(IMAGES, "image"),
}  # fmt: skip
_SIZES = ((64, 64, 3), (64, 64, 1), (256, 256, 3), (28, 28, 1), (32, 32, 3))
_ARRAYS = (
    ("float32", (64, 4)), ("int64", (64,)), ("float32", (64, 3, 32, 32)), ("float32", (64, 64)),
    ("uint8", (64, 32, 32, 3)), ("float32", (64, 8, 4)), ("float32", (64,)), ("int64", (64, 8)),
    ("float32", (64, 3)), ("float32", (32, 32)),
)  # fmt: skip
#: Values of a key, or of a whole file, in the order in which to try them.
_VALUES = ("pairs", "index", "int", "texts", "ints", "text", "rows", "float", "vectors", "counts", "names")
_WHOLE = ("texts", "names", "counts", "pairs", "ints", "rows", "index", "vectors", "text")
_COLUMNS = ("ints", "words", "names", "floats", "texts")


def skeletons(form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Recipes with leaves in them, as :func:`.values.skeletons` has them, for what ``form`` shows: first that it stays
    missing, but for one that is there already and ``empty``."""
    if not form["empty"]:
        yield {"is": Is.FILE, "format": "absent", "parts": [], "keys": [], "as": "whole"}
    kind, suffix = form["kind"], form["suffix"]
    if kind == "exists":
        yield _whole("file" if suffix else "folder", [{"v": "empty"}])
    elif kind == "list":
        found = [suffix for suffix in form["suffixes"] if suffix] or [".png"]
        yield _whole("folder", [{"v": how, "suffix": each} for each in found for how in ("files", "classes")])
    elif kind == "glob":
        yield _whole("folder", [{"v": "matches"}])
    for each in form["formats"] if kind == "open" else ():
        if each == "torch" and form["state"]:
            return
        yield from itertools.islice(_of(each, form), _MOST_WAYS)


def _of(kind: str, form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if kind == "image":
        yield _whole("image", [{"v": "image", "shape": list(size)} for size in _SIZES])
    elif kind == "table":
        yield from _tables(form)
    elif kind in ("text", "lines"):
        yield from _texts(kind, form)
    else:
        yield from _values(kind, form)


def _values(kind: str, form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    keys = form["keys"]
    arrays = [{"v": "array", "type": dtype, "shape": list(shape)} for dtype, shape in _ARRAYS]
    options: list[Any] = [{"v": each} for each in _VALUES]
    joined = {"v": "joined", "count": form["columns"] or 2}
    whole: list[Any] = [*({"v": each} for each in _WHOLE[:2]), joined, *({"v": each} for each in _WHOLE[2:])]
    if kind in ("npy", "npz", "mat", "h5"):
        options, whole = arrays, arrays
    elif kind in ("pickle", "torch"):
        options, whole = options[:6] + arrays[:4] + options[6:], whole[:4] + arrays[:4] + whole[4:]
    if keys:
        for shape in ("dict", "dicts") if kind in ("json", "pickle", "torch") else ("dict",):
            parts = [{"options": options, "name": key} for key in keys]
            yield {"is": Is.FILE, "format": kind, "parts": parts, "keys": keys, "as": shape}
    if kind not in ("npz", "mat", "h5"):
        yield _whole(kind, whole)


def _tables(form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    separator = form["separators"][0] if form["separators"] else "\t" if form["suffix"] == ".tsv" else ","
    kinds = [{"v": each} for each in _COLUMNS]
    if form["keys"]:
        parts = [{"options": kinds, "name": key} for key in form["keys"]]
        yield {"is": Is.FILE, "format": "table", "parts": parts, "keys": form["keys"], "as": separator}
    yield _whole("text", list(_rows(form, [separator])))


def _texts(kind: str, form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if kind == "lines" and form["keys"]:
        parts = [{"options": [{"v": each} for each in ("text", *_VALUES)], "name": key} for key in form["keys"]]
        yield {"is": Is.FILE, "format": "lines", "parts": parts, "keys": form["keys"], "as": "dicts"}
    plain = [{"v": "letters"}, *({"v": "lines", "columns": [each], "separator": " "} for each in _COLUMNS)]
    rows = list(_rows(form, form["separators"] or [" "]))
    yield _whole("text", [*rows, *plain] if form["separators"] else [*plain, *rows])


def _rows(form: dict[str, Any], separators: list[str]) -> Iterator[dict[str, Any]]:
    """Lines of several columns: numbers, then a word, a text or a name of a file beside them."""
    for separator in separators:
        for count in dict.fromkeys([form["columns"] or 2, 2, 3, 8]):
            rest = count - 1
            mixes = [["ints"] * count, ["words", *["ints"] * rest], ["names", *["ints"] * rest], ["floats"] * count]
            if separator.strip() or count == 2:
                mixes += [["ints", *["texts"] * rest], ["texts", *["ints"] * rest], ["texts"] * count]
            mixes += [["words", *["floats"] * rest], ["words"] * count, ["names"] * count]
            for columns in mixes:
                yield {"v": "lines", "columns": columns, "separator": separator}


def _whole(kind: str, options: list[Any]) -> dict[str, Any]:
    return {"is": Is.FILE, "format": kind, "parts": [{"options": options}], "keys": [], "as": "whole"}


def told(recipe: dict[str, Any]) -> str:
    """``recipe`` for people."""
    kind = str(recipe["format"])
    if kind == "absent":
        return "nothing"
    if recipe["keys"]:
        inside = ", ".join(f"{key}: {_told(part)}" for key, part in zip(recipe["keys"], recipe["parts"]))  # noqa: B905
        return f"{kind} ({inside})"
    return f"{kind} ({_told(recipe['parts'][0])})"


def _told(value: dict[str, Any]) -> str:
    kind = str(value["v"])
    if kind == "lines":
        return f"lines of {', '.join(value['columns'])}"
    if kind in ("array", "image"):
        return f"{value.get('type', '')} {'×'.join(map(str, value['shape']))}".strip()
    if kind in ("files", "classes"):
        return f"{ITEMS} files {value['suffix']}" + " in folders of classes" * (kind == "classes")
    return kind


def content(recipe: dict[str, Any], seed: int) -> bytes:
    """The bytes of the file that ``recipe`` describes; ``seed`` is that of its path."""
    stream, kind, parts = random.Random(seed), recipe["format"], recipe["parts"]
    if kind in ("text", "file"):
        return _text(parts[0], stream)
    if kind == "image":
        height, width, channels = parts[0]["shape"]
        size = height * width * channels
        return formats.png(height, width, channels, stream.getrandbits(8 * size).to_bytes(size, "little"))
    if kind == "table":
        columns = [[_item(part["v"], row, stream) for row in range(ROWS)] for part in parts]
        lines = [recipe["keys"], *map(list, zip(*columns))]  # noqa: B905
        return ("\n".join(recipe["as"].join(map(str, line)) for line in lines) + "\n").encode()
    if kind == "lines":
        return "".join(json.dumps(_keyed(recipe, stream)) + "\n" for _ in range(ROWS)).encode()
    value: Any = [_keyed(recipe, stream) for _ in range(ITEMS)] if recipe["as"] == "dicts" else None
    if value is None:
        value = _keyed(recipe, stream) if recipe["keys"] else _value(parts[0], stream)
    return _written(kind, value)


def _keyed(recipe: dict[str, Any], stream: random.Random) -> dict[str, Any]:
    return {key: _value(part, stream) for key, part in zip(recipe["keys"], recipe["parts"])}  # noqa: B905


def _text(value: dict[str, Any], stream: random.Random) -> bytes:
    if value["v"] == "empty":
        return b""
    if value["v"] == "letters":
        return formats.elements("text", _LETTERS, None, str(stream.random()))
    lines = (value["separator"].join(str(_item(each, row, stream)) for each in value["columns"]) for row in range(ROWS))
    return ("\n".join(lines) + "\n").encode()


def _item(kind: str, row: int, stream: random.Random) -> Any:
    """An item of a column, or of a list. Whole numbers go through all classes."""
    if kind in ("ints", "int"):
        return row % _CLASSES
    if kind in ("floats", "float"):
        return round(stream.random(), 4)
    if kind in ("texts", "text"):
        words = _SENTENCE.split()
        return " ".join(stream.choice(words) for _ in range(8))
    return f"item_{row % ITEMS:02d}.png" if kind == "names" else _SENTENCE.split()[row % 8]


def _value(value: dict[str, Any], stream: random.Random) -> Any:
    kind = value["v"]
    if kind == "array":
        return _array(value, stream)
    if kind == "pairs":
        # A ring, and as many others: every number is there.
        ring = [[place, (place + 1) % 8] for place in range(8)]
        return ring + [[stream.randrange(8), stream.randrange(8)] for _ in range(8)]
    if kind == "index":
        return {str(place): place % _CLASSES for place in range(8)}
    if kind == "counts":
        return {word: place for place, word in enumerate(dict.fromkeys(_SENTENCE.split()))}
    if kind == "vectors":
        return {word: [round(stream.random(), 4) for _ in range(8)] for word in dict.fromkeys(_SENTENCE.split())}
    if kind == "rows":
        return [[round(stream.random(), 4) for _ in range(4)] for _ in range(ITEMS)]
    if kind == "joined":
        # As a path has them; a word beside another file's.
        return ["/".join([str(row % _CLASSES)] * value["count"]) for row in range(ROWS)]
    if kind in ("int", "float", "text"):
        return _item(kind, stream.randrange(_CLASSES), stream)
    return [_item(kind, row, stream) for row in range(ROWS)]


def _array(value: dict[str, Any], stream: random.Random) -> Any:
    import numpy

    count = 1
    for size in value["shape"]:
        count *= size
    below = 256 if value["type"] == "uint8" else _CLASSES
    data = formats.elements(value["type"], count, None if "float" in value["type"] else below, str(stream.random()))
    return numpy.frombuffer(bytearray(data), dtype=value["type"]).reshape(value["shape"])


def _written(kind: str, value: Any) -> bytes:
    file = io.BytesIO()
    if kind == "json":
        return json.dumps(value).encode()
    if kind == "pickle":
        import pickle

        return pickle.dumps(value, protocol=2)
    if kind in ("npy", "npz"):
        import numpy

        if kind == "npz":
            numpy.savez(file, **value)
        else:
            numpy.save(file, value, allow_pickle=True)
    elif kind == "mat":
        importlib.import_module("scipy.io").savemat(file, value)
    elif kind == "h5":
        with importlib.import_module("h5py").File(file, "w") as made:
            for key, each in value.items():
                made[key] = each
    else:
        import torch

        torch.save(value, file)
    return file.getvalue()


def names(recipe: dict[str, Any], path: str) -> list[str]:
    """The files, or folders where they have no suffix, that are made for the folder or the pattern ``path``."""
    value = recipe["parts"][0]
    if value["v"] == "empty":
        return []
    if value["v"] == "matches":
        found = []
        for number in range(ITEMS):
            parts = [_matching(part, number if last else number % 2) for part, last in _parts(path)]
            found.append(os.sep.join(parts))
        return list(dict.fromkeys(found))
    inside = [f"item_{number:02d}{value['suffix']}" for number in range(ITEMS)]
    if value["v"] == "classes":
        inside = [os.path.join(f"class_{number % _CLASSES}", name) for number, name in enumerate(inside)]
    return [os.path.join(path, name) for name in inside]


def _parts(pattern: str) -> list[tuple[str, bool]]:
    """The parts of a pattern, and whether each is the last that varies."""
    parts = pattern.split(os.sep)
    last = max((place for place, part in enumerate(parts) if "*" in part), default=-1)
    return [(part, place == last) for place, part in enumerate(parts)]


def _matching(part: str, number: int) -> str:
    if "[" in part:
        part = part[: part.index("[")] + "0" + part[part.rindex("]") + 1 :] if "]" in part else part
    text = part.replace("**", "*").replace("?", "0")
    return text.replace("*", f"item_{number:02d}", 1).replace("*", "0")
