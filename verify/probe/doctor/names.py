"""What the user calls a tensor: the path from a variable to it, as one would type it."""

from __future__ import annotations

import gc
import re
import time
import types
import typing
from typing import Any

from ..graph.holders import own_class, variables
from ..lines.sites import Tree
from ..values.tensors import storage

_SECONDS = 2.0
_MOST = 4
#: How many references are followed outward from a tensor that no walk from the variables comes to.
_DEEPEST = 12
_WIDEST = 2000
#: Mixed into the names that modules give to what they hold; people type the attribute.
_HIDDEN = re.compile(r"\._parameters\['(\w+)'\]")


def names(wanted: typing.Callable[[Any], bool], tree: Tree, frames: list[types.FrameType]) -> list[dict[str, str]]:
    """``{name, function}`` of each tensor that is ``wanted``, nearest first; ``frames`` are the innermost first."""
    import torch

    found: list[dict[str, str]] = []
    until = time.perf_counter() + _SECONDS
    for name, value, function in variables(tree, frames, until):
        if issubclass(type(value), torch.Tensor) and wanted(value):
            found.append({"name": typed(name), "function": function})
            if len(found) >= _MOST:
                break
    return found


def sharing(tensor: Any, tree: Tree, frames: list[types.FrameType]) -> list[dict[str, str]]:
    """The same of the tensors that share memory with ``tensor``."""
    key = storage(tensor)
    return names(lambda value: key is not None and storage(value) == key, tree, frames)


def typed(name: str) -> str:
    """``name`` as one would type it."""
    return re.sub(r"\.(\d+)\b", r"[\1]", _HIDDEN.sub(r".\1", name))


def outward(tensor: Any, tree: Tree) -> list[dict[str, str]]:
    """The same for one tensor, from the tensor outward: through closures, hooks, caches, arguments' defaults."""
    level: list[tuple[Any, str]] = [(tensor, "")]
    seen = {id(tensor), id(level)}
    for _ in range(_DEEPEST):
        following: list[tuple[Any, str]] = []
        own = {id(level), id(following)} | {id(pair) for pair in level}
        for thing, path in level:
            for parent in gc.get_referrers(thing):
                if id(parent) in seen or id(parent) in own or _ours(parent):
                    continue
                seen.add(id(parent))
                root = _root(parent, thing, tree)
                if root is not None:
                    return [{"name": typed(root[0] + path), "function": root[1]}]
                following.append((parent, _step(parent, thing) + path))
        level = following[:_WIDEST]
    return []


def _ours(parent: Any) -> bool:
    kind = type(parent)
    if kind is types.FrameType:
        return True
    return kind in (list, tuple) and len(parent) == 2 and type(parent[1]) is str


def _root(parent: Any, thing: Any, tree: Tree) -> tuple[str, str] | None:
    """The name of ``thing`` where ``parent`` is a function, an object of a class or the namespace of a module of the
    user's."""
    if type(parent) is types.FunctionType and tree.relative(parent.__code__.co_filename) is not None:
        name = parent.__qualname__
        if thing is parent.__defaults__ or thing is parent.__kwdefaults__:
            return f"{name}.<default>", "<module>"
        if thing is parent.__closure__:
            return f"{name}.<closure>", "<module>"
    if type(parent) is dict and "__name__" in parent and "__file__" in parent:
        file = parent["__file__"]
        if isinstance(file, str) and tree.relative(file) is not None:
            for key, value in list(parent.items()):
                if value is thing:
                    return str(key), "<module>"
    if own_class(type(parent), tree):
        # Code of a library holds it; in the class itself everybody calls it self.
        return "self" + _step(parent, thing), type(parent).__qualname__
    return None


def _step(parent: Any, thing: Any) -> str:
    kind = type(parent)
    if kind is dict:
        for key, value in list(parent.items()):
            if value is thing:
                return f".{key}" if type(key) is str and key.isidentifier() else f"[{key!r:.40}]"
    if kind in (list, tuple):
        for position in range(len(parent)):
            if parent[position] is thing:
                return "" if kind is tuple else f"[{position}]"
    try:
        attributes = object.__getattribute__(parent, "__dict__")
    except AttributeError:
        attributes = {}
    if attributes is thing or kind in (types.CellType, types.MethodType, dict):
        return ""
    return next((f".{key}" for key, value in list(attributes.items()) if value is thing), f".<{kind.__name__}>")
