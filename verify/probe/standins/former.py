"""Names that newer releases of Python, NumPy and others removed: their successors stand in for them.

Old programs stop at such names long before they train.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..guarding.guard import Write
from ..guarding.hooks import when_imported
from .former_names import FORMER, GONE

_STOPPED = re.compile(
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'"
    r"|cannot import name '(?P<imported>\w+)' from '(?P<origin>[\w.]+)'"
    r"|`np\.(?P<numpy>\w+)` was removed"
    r"|No module named '(?P<gone>[\w.]+)'"
)
_CALLED = re.compile(
    r"load\(\) missing 1 required positional argument: 'Loader'"
    r"|Unable to avoid copy while creating an array as requested"
)


def is_former(message: str) -> bool:
    """Whether ``message`` is that of an error about a name which a module had once."""
    match = _STOPPED.match(message)
    if match is None:
        return _CALLED.match(message) is not None
    if match["gone"]:
        return match["gone"] in GONE
    module = match["module"] or match["origin"] or "numpy"
    return (match["name"] or match["imported"] or match["numpy"]) in FORMER.get(module, {})


def install(write: Write) -> None:
    """Have such names be found from now on. Writes a ``standin`` event for each that is asked for."""
    for module, names in FORMER.items():
        when_imported(module, functools.partial(_patch, module, names, write))
    for module, name, amend in (("yaml", "load", _loader), ("numpy", "array", _copy)):
        when_imported(module, functools.partial(_once_valid, module, name, amend, write))
    sys.meta_path.append(_Finder())


def _patch(name: str, names: dict[str, Any], write: Write) -> None:
    module = sys.modules[name]
    held = vars(module)
    before = held.get("__getattr__")

    def find(name: str) -> Any:
        if name not in names:
            if before is not None:
                return before(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        value = names[name]
        if isinstance(value, str):
            place, _, last = value.rpartition(".")
            value = getattr(importlib.import_module(place), last) if place else importlib.import_module(value)
        held[name] = value
        meant = names[name] if isinstance(names[name], str) else "what it did"
        what = f"{module.__name__}.{name}"
        write({"event": "standin", "what": what, "why": f"no longer there; {meant} stands for it", "shape": None})
        return value

    held["__getattr__"] = find


#: Changes the named arguments of a call of a library that was valid once, and says what it made of it; nothing where it
#: still is.
_Amend = Callable[[Any, tuple[Any, ...], dict[str, Any]], str]


def _once_valid(module: str, name: str, amend: _Amend, write: Write) -> None:
    """Have the function ``name`` of ``module`` take what it took."""
    library: Any = sys.modules[module]
    original = getattr(library, name)
    told = False

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal told
        why = amend(library, arguments, named)
        if why and not told:
            told = True
            write({"event": "standin", "what": f"{module}.{name}", "why": why, "shape": None})
        return original(*arguments, **named)

    setattr(library, name, call)


def _loader(yaml: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """PyYAML 6 asks for a loader; before 5.1 the one was taken that may run code, now the full one is."""
    if named or len(arguments) != 1:
        return ""
    named["Loader"] = yaml.FullLoader
    return "without a loader; the full one"


def _copy(numpy: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """NumPy 2 raises where ``copy=False`` cannot be had; before, it copied there."""
    if named.get("copy", True) is not False:
        return ""
    named["copy"] = None
    return "copy=False means to copy where that must be, as before NumPy 2"


class _Finder:
    """Last in ``sys.meta_path``: makes modules that are gone altogether."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name in GONE else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing stands in it but what :func:`install` puts there."""
