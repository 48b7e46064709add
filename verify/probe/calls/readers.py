"""What the code that asks for a file shows of it: its format, keys, columns, separators."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from .contents import IMAGES, SUFFIXES

#: The format by what reads it: of a call the last two names, of a library's function its name.
_READERS = {
    "json.load": "json", "json.loads": "json", "simplejson.load": "json", "ujson.load": "json", "read_json": "json",
    "pickle.load": "pickle", "cPickle.load": "pickle", "pkl.load": "pickle", "joblib.load": "pickle",
    "dill.load": "pickle", "read_pickle": "pickle", "loadmat": "mat", "h5py.File": "h5", "torch.load": "torch",
    "yaml.load": "json", "yaml.safe_load": "json", "read_csv": "table", "read_table": "table", "csv.reader": "table",
    "csv.DictReader": "table", "imread": "image", "Image.open": "image",
}  # fmt: skip
_DATA = re.compile(r"\.(?:png|jpe?g|bmp|npy|npz|json|txt|csv|tsv|mat|pkl|pickle|h5|hdf5|pts|xyz|off|dat)\b")
_MOST_COLUMNS, _MOST_KEYS, _MOST_SCOPES = 12, 12, 6


def form_of(kind: str, path: str, frames: list[FrameType], between: Iterable[str]) -> dict[str, Any]:
    """What ``frames`` of the tree, the innermost first, show of ``path``: they ask whether it ``exists``, ``open`` it,
    or ``list`` it. ``between`` are the names of the functions of libraries that were called on the way.

    ``formats`` come in the order in which to try them.
    """
    suffix = os.path.splitext(path)[1].lower()
    scopes = list(_scopes(frames))
    near = [name for part in _near(frames[0]) for name in _called(part)]
    formats = [_READERS[name] for name in between if name in _READERS]
    formats += [SUFFIXES[suffix]] if suffix in SUFFIXES else []
    formats += ["lines" if name == "json.loads" else _READERS[name] for name in near if name in _READERS]
    formats += ["text"] if suffix not in SUFFIXES or not formats else []
    formats += [_READERS[name] for scope in scopes[:1] for name in _called(scope) if name in _READERS]
    return {
        "kind": kind,
        # A state stands in for itself.
        "state": any("load_state_dict" in _called(scope) for scope in scopes),
        "suffix": suffix,
        "formats": list(dict.fromkeys(formats))[:3],
        "keys": _first(_keys, scopes)[:_MOST_KEYS],
        "separators": [each for each in _first(_separators, scopes) if each],
        "columns": next(iter(_first(_columns, scopes)), 0),
        "suffixes": list(dict.fromkeys(each for scope in scopes for each in _suffixes(scope)))[:6],
    }


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _near(frame: FrameType) -> list[ast.AST]:
    """The statement that asks, without what it has inside; of one that keeps a file open all of it."""
    tree = _parsed(frame.f_code.co_filename)
    found: list[ast.AST] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.With):
            items = [each.context_expr for each in node.items]
            if any(_covers(each, frame.f_lineno) for each in items):
                found.append(node)
        elif isinstance(node, ast.stmt) and not hasattr(node, "body") and _covers(node, frame.f_lineno):
            found.append(node)
    return found


def _first(look: Callable[[ast.AST], Iterator[Any]], scopes: Iterable[ast.AST]) -> list[Any]:
    """What is found in the innermost of ``scopes`` that shows anything, each once."""
    return next(filter(None, (list(dict.fromkeys(look(scope))) for scope in scopes)), [])


def _scopes(frames: list[FrameType]) -> Iterator[ast.AST]:
    """The functions of ``frames``, then their classes and files, from the inside out."""
    seen: list[ast.AST] = []
    for frame in frames[:_MOST_SCOPES]:
        around = _around(frame.f_code.co_filename, frame.f_lineno)
        seen += around
    sizes = {id(each): (not isinstance(each, ast.FunctionDef), isinstance(each, ast.Module)) for each in seen}
    unique = {id(each): each for each in seen}
    yield from sorted(unique.values(), key=lambda each: sizes[id(each)])


def _around(file: str, line: int) -> list[ast.AST]:
    """The innermost function at ``line`` of ``file``, the class around it and the file."""
    tree = _parsed(file)
    if tree is None:
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    inside = [node for node in nodes if node.lineno <= line <= (getattr(node, "end_lineno", None) or node.lineno)]
    return [*sorted(inside, key=lambda node: -node.lineno), tree]


@functools.lru_cache(maxsize=64)
def _parsed(file: str) -> ast.AST | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _called(scope: ast.AST) -> Iterator[str]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Call):
            func = node.func
            if isinstance(func, ast.Attribute):
                owner = func.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                yield f"{name}.{func.attr}"
                yield func.attr
            elif isinstance(func, ast.Name):
                yield func.id


def _keys(scope: ast.AST) -> Iterator[str]:
    """Texts that something is asked for by."""
    for node in ast.walk(scope):
        found: Any = None
        if isinstance(node, ast.Subscript) and not isinstance(getattr(node, "ctx", None), ast.Store):
            index: Any = node.slice
            found = getattr(index, "value", index) if type(index).__name__ == "Index" else index
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get" and node.args:
            found = node.args[0]
        texts = found.elts if isinstance(found, (ast.List, ast.Tuple)) else [found]
        for each in texts:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value


def _separators(scope: ast.AST) -> Iterator[str]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("split", "rsplit"):
            given = node.args[0] if node.args else None
            if given is None:
                yield " "
            elif _text(given) not in ("", "/", ".", "_"):
                yield _text(given)
        elif isinstance(node, ast.Call):
            yield from (_text(each.value) for each in node.keywords if each.arg in ("sep", "delimiter"))


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _columns(scope: ast.AST) -> Iterator[int]:
    """How many parts a line is taken apart into."""
    most = 0
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            if any(getattr(getattr(each, "func", None), "attr", "") == "split" for each in ast.walk(node.value)):
                yield len(node.targets[0].elts)
        elif isinstance(node, ast.Subscript):
            index: Any = node.slice
            index = getattr(index, "value", index) if type(index).__name__ == "Index" else index
            number = index.value if isinstance(index, ast.Constant) else None
            if type(number) is int and most <= number < _MOST_COLUMNS:
                most = number + 1
    if most:
        yield max(most, 2)


def _suffixes(scope: ast.AST) -> Iterator[str]:
    """Suffixes of data in the texts of ``scope``."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield from (found.lower() for found in _DATA.findall(node.value))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "imread":
            yield IMAGES[0]
