"""Declared files, really written into the run's copy of the tree, so that whatever opens them finds them.

Files that torch saved are written once the script has imported torch: nothing can read them before.
"""

from __future__ import annotations

import functools
import os
import sys
import zlib
from typing import Any

from ..guarding.guard import Write
from ..guarding.hooks import when_imported
from . import formats

_TORCH = (".pt", ".pth")
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp")
_TABLES = {".csv": ",", ".tsv": "\t", ".txt": " "}


def install(config: dict[str, Any], write: Write) -> None:
    """Write what ``config["stand_ins"]`` declares, and make the folders ``config["places"]``, where nothing is yet."""
    for place in config.get("places") or ():
        _make_folder(place, os.path.realpath(config["root"]), write)
    together: dict[str, list[dict[str, Any]]] = {}
    for declaration in config.get("stand_ins") or ():
        together.setdefault(declaration["path"], []).append(declaration)
    for path, declarations in together.items():
        make = functools.partial(_stand_in, path, declarations, config, write)
        if os.path.splitext(path)[1].lower() in _TORCH:
            when_imported("torch", make)
        else:
            make()


def _stand_in(path: str, declarations: list[dict[str, Any]], config: dict[str, Any], write: Write) -> None:
    made_up = any(declaration.get("made_up") for declaration in declarations)
    try:
        written = _write_missing(path, declarations, os.path.realpath(config["root"]))
        # A rank or a spawned worker finds what its parent wrote, and uses made-up data as well.
        mark = os.path.join(config["records"], f"standin-{zlib.crc32(path.encode()):08x}")
        if written:
            open(mark, "wb").close()
            print(f"codemod: {path}: stand-in data{'' if made_up else ', as declared'}", file=sys.stderr)
        if os.path.exists(mark):
            shape = declarations[0]["shape"] if len(declarations) == 1 else None
            why = "not there; its letters are made up" if made_up else "declared, and not there"
            write({"event": "standin", "what": path, "why": why, "shape": shape})
        else:
            write({"event": "note", "text": f"{path}: is there; its stand-in was not needed"})
    except Exception as error:  # the script must run all the same, and then say itself what it misses
        text = f"{path}: no stand-in could be written: {type(error).__name__}: {error}"
        write({"event": "note", "text": text})


def _make_folder(place: str, root: str, write: Write) -> None:
    try:
        folder = _inside(place, root)
        if not os.path.isdir(folder):
            os.makedirs(folder)
            write({"event": "note", "text": f"{place}: the folder is not there, and is made"})
    except (OSError, ValueError) as error:
        write({"event": "note", "text": f"{place}: the folder could not be made: {type(error).__name__}: {error}"})


def _inside(place: str, root: str) -> str:
    """The folder ``place`` below ``root``. Raises ValueError where a link leads out of it."""
    folder = os.path.realpath(os.path.join(root, *place.split("/")))
    if folder != root and not folder.startswith(os.path.join(root, "")):
        raise ValueError("a link leads out of the tree, where nothing is written")
    return folder


def _write_missing(path: str, declarations: list[dict[str, Any]], root: str) -> bool:
    folder = _inside(os.path.dirname(path), root)
    written = False
    files = [declarations] if "*" not in path else [[one] for one in _each_file(declarations[-1])]
    for contents in files:
        target = os.path.join(folder, os.path.basename(contents[0]["path"]))
        # A link to nowhere counts as missing; what is written takes its place, here in the copy alone.
        if not os.path.exists(target):
            _write(target, _content(contents))
            written = True
    return written


def _each_file(declaration: dict[str, Any]) -> list[dict[str, Any]]:
    """One declaration a file: ``*`` stands for the indices of the first dimension."""
    count, *shape = declaration["shape"]
    digits = len(str(count - 1))
    names = (declaration["path"].replace("*", str(index).zfill(digits)) for index in range(count))
    return [dict(declaration, path=name, shape=shape) for name in names]


def _write(target: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    # Ranks start together: each writes its own, and the last one's takes the name.
    partial = f"{target}.{os.getpid()}~"
    with open(partial, "wb") as file:
        file.write(content)
    os.replace(partial, target)


def _content(declarations: list[dict[str, Any]]) -> bytes:
    suffix = os.path.splitext(declarations[0]["path"])[1].lower()
    if suffix == ".npz":
        arrays = {d["key"]: (d["key"], d["dtype"], d["shape"], _elements(d)) for d in declarations}
        return formats.npz(list(arrays.values()))
    if suffix in _TORCH:
        return _saved(declarations)
    declaration = declarations[-1]
    dtype, shape, data = declaration["dtype"], declaration["shape"], _elements(declaration)
    if suffix == ".npy":
        return formats.npy(dtype, shape, data)
    if suffix in _IMAGES:
        return formats.png(shape[0], shape[1], shape[2] if len(shape) == 3 else 1, data)
    if suffix in _TABLES and dtype != "text":
        return formats.rows(dtype, shape, data, _TABLES[suffix])
    return data


def _elements(declaration: dict[str, Any]) -> bytes:
    count = 1
    for size in declaration["shape"]:
        count *= size
    seed = "{path}[{key}]".format(path=declaration["path"], key=declaration.get("key"))
    return formats.elements(declaration["dtype"], count, declaration.get("below"), seed)


def _saved(declarations: list[dict[str, Any]]) -> bytes:
    import io

    import torch

    tensors = {}
    for declaration in declarations:
        flat = torch.frombuffer(bytearray(_elements(declaration)), dtype=getattr(torch, declaration["dtype"]))
        tensors[declaration.get("key")] = flat.reshape(declaration["shape"])
    file = io.BytesIO()
    torch.save(tensors.get(None, tensors), file)
    return file.getvalue()
