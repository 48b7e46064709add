"""Where a program stopped, exactly: expressions, and which names stand there for something absent."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any

from ..lines import errors
from ..lines.places import places
from ..lines.sites import Tree
from . import values

#: Parts of torch that only read and write, or go over what they are given.
_READERS = ("serialization.py", "hub.py", os.path.join("utils", "data"))
_LOADER = os.path.join("torch", "utils", "data", "dataloader.py")
#: Errors of libraries that have no screen, no server, no such environment.
_ABSENT = frozenset({"TclError", "ConnectionError", "NamespaceNotFound", "NameNotFound", "DependencyNotInstalled"})
_MOST_NAMES = 200


def event(error: BaseException, at: TracebackType | None, tree: Tree) -> dict[str, Any]:
    """``frames`` of the tree, the innermost first, each with path, span, and ``hollow``: the names of what is absent,
    with the path and the span of what made it; whether the error may be one of the ``graph``, or one that a ``walk``
    through it raises, and whether something is ``missing``."""
    frames: list[dict[str, Any]] = []
    below: list[str] = []
    while at is not None:
        code = at.tb_frame.f_code
        path = tree.relative(code.co_filename)
        if path is None:
            below.append(code.co_filename)
        else:
            below = []
            frames.insert(0, {"path": path, "span": span(code, at.tb_lasti), "hollow": _hollow(at.tb_frame, tree)})
        at = at.tb_next
    own = os.path.join("", "torch", "")
    kind = errors.kind(error)
    fatal = kind in ("freed", "inplace", "memory")
    # A loader's arguments do not fit: it yields no batch.
    loads = not fatal and any(_LOADER in file for file in below)
    graph = any(f"{os.sep}{own}" in file and not any(part in file for part in _READERS) for file in below)
    why = errors.trouble(error)
    text = f"{why['type']}: {(why['message'].splitlines() or [''])[0][:120]}"
    told = {
        "event": "stopped",
        "frames": frames,
        "graph": fatal or (graph and not loads),
        "walk": kind in ("freed", "inplace"),
    }
    unmade = isinstance(error, AttributeError) and values.made_first(getattr(error, "obj", None))
    absent = missing(error)
    return {**told, "missing": absent or loads or unmade, "absent": absent, "why": text}


def names(at: TracebackType | None, path: Callable[[str], str | None]) -> set[str]:
    """The names in the lines of the tree that a traceback goes through; ``path`` tells which files are the tree's."""
    found: set[str] = set()
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if path(file) is not None:
            place = span(at.tb_frame.f_code, at.tb_lasti) or [at.tb_lineno, 0, at.tb_lineno, 0]
            for line in range(place[0], place[2] + 1):
                found.update(re.findall(r"[^\W\d]\w*", linecache.getline(file, line)))
        at = at.tb_next
    return found


def missing(error: BaseException) -> bool:
    """Whether ``error`` says that something is not there."""
    known = errors.kind(error) == "missing" or isinstance(error, OSError)
    # An option that no parser declares.
    option = isinstance(error, AttributeError) and type(getattr(error, "obj", None)).__name__ == "Namespace"
    return known or option or type(error).__name__ in _ABSENT


def span(code: CodeType, instruction: int) -> list[int] | None:
    """Line, column, end line and end column of what ``instruction`` computes; None before Python 3.11."""
    found = places(code).get(instruction)
    return None if found is None else list(found)


def _hollow(frame: FrameType, tree: Tree) -> list[Any]:
    """The names in ``frame``, and the attributes of their values, that are something absent."""
    from ..standins.modules import Nothing, is_absent

    names = {*frame.f_code.co_names, *frame.f_code.co_varnames, *frame.f_code.co_freevars, *frame.f_code.co_cellvars}
    found: list[Any] = []
    for name in sorted(names)[:_MOST_NAMES]:
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        if is_absent(value):
            found.append([name, _origin(value, tree) if isinstance(value, Nothing) else None])
        elif not isinstance(value, (ModuleType, type)):
            attributes = getattr(value, "__dict__", {})
            for each in names:
                inner = attributes.get(each) if isinstance(attributes, dict) else None
                if is_absent(inner):
                    found.append([f"{name}.{each}", _origin(inner, tree) if isinstance(inner, Nothing) else None])
    return found


def _origin(value: Any, tree: Tree) -> list[Any] | None:
    code, instruction = value.__dict__.get("_origin") or (None, 0)
    if code is None:
        return None
    path, place = tree.relative(code.co_filename), span(code, instruction)
    return None if path is None or place is None else [path, *place]
