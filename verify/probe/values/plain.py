"""What a value is that can be written down: a number, a tensor, a text. Runs no code of the user's."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

#: Longer texts are told by a digest.
_LONGEST = 300
_MOST_MEMBERS = 10_000
_PLAIN = (str, bytes, int, float, bool, complex, type(None))
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_CONTAINERS = (list, tuple, dict, set, frozenset)
#: Iterators that tell how far they are, by the modules of their types.
_ITERATING = ("builtins", "itertools")
#: From then on those of itertools warn when they are asked.
_RELUCTANT = (3, 12)


def number_of(value: Any) -> Any:
    """``value`` as a number; None where it is none, or too large."""
    if isinstance(value, (bool, int, float)):
        return value if abs(value) < 1e300 or value != value else None
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        number = value.item()
        return number if isinstance(number, (bool, int, float)) else None
    return None


def tensor_of(value: Any) -> Any:
    """``value`` as a tensor: itself, an array's values, the state of a generator; None where it is none of these."""
    import torch

    if issubclass(type(value), torch.Tensor):
        return None if hasattr(value, "materialize") else value
    if isinstance(value, torch.Generator):
        return value.get_state() if value.device.type == "cpu" else None
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.ndarray and value.ndim and value.dtype.kind in "fiub":
        try:
            return torch.from_numpy(numpy.ascontiguousarray(value))
        except TypeError:
            # Types that torch has not (uint32 before 2.3).
            return None
    return None


def text_of(value: Any) -> str | None:
    """``value`` as a text: of a set its members in order; None where no text says what it is."""
    kind = type(value)
    if kind is str:
        return _short(value)
    if kind is bytes:
        return _short(repr(value))
    if value is None:
        return "None"
    if issubclass(kind, (set, frozenset)) and len(value) <= _MOST_MEMBERS:
        members = list(set.__iter__(value) if issubclass(kind, set) else frozenset.__iter__(value))
        if all(type(each) in _PLAIN for each in members):
            return _short(f"{{{', '.join(sorted(map(repr, members)))}}}")
    return None


def definition_of(value: Any) -> tuple[str, str] | None:
    """The name of a class or a function, and where it is defined with its full name; None where it is neither."""
    if issubclass(type(value), type):
        named = [type.__getattribute__(value, each) for each in ("__name__", "__module__", "__qualname__")]
    elif type(value) in _FUNCTIONS:
        named = [value.__name__, value.__module__, value.__qualname__]
    else:
        return None
    return str(named[0]), f"{named[1]}.{named[2]}"


def size_of(value: Any) -> int | None:
    """How many things a list, a dictionary or a set holds; None where ``value`` is something else."""
    import collections

    for base in (*_CONTAINERS, collections.deque):
        if issubclass(type(value), base):
            return int(base.__len__(value))
    return None


def keys_of(value: Any) -> str | None:
    """The keys of a dictionary, in order; None where ``value`` is no dictionary, or a key is an object."""
    if not issubclass(type(value), dict) or not 0 < len(value) <= _MOST_MEMBERS:
        return None
    keys = list(dict.__iter__(value))
    return _short(", ".join(map(repr, keys))) if all(type(key) in _PLAIN for key in keys) else None


def steps_of(value: Any) -> Iterator[tuple[str, Any]]:
    """What an iterator still has to go through, and how far it is, each by the path from it."""
    kind = type(value)
    if kind.__module__ not in _ITERATING or not hasattr(kind, "__next__") or not hasattr(kind, "__reduce__"):
        return
    if kind.__module__ == "itertools" and sys.version_info >= _RELUCTANT:
        if kind.__name__ == "count":
            yield ".<at>", repr(value)
        return
    reduced: Any = kind.__reduce__
    try:
        _, *parts = reduced(value)
    except (TypeError, AttributeError):
        # Generators, and whatever else does not tell.
        return
    found = [each for part in parts for each in (part if type(part) is tuple else (part,))]
    yield from ((f".<part {place}>", found[place]) for place in range(len(found)))


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[:40]}... ({len(text)} letters, {digest})"
