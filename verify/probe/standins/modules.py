"""Modules that nobody has installed: those of the tree are found in it, the others do nothing, but for environments.

What is asked of a module that does nothing can be called, entered and gone over, and gives nothing back that could be
counted with: whoever computes with it raises a TypeError. A loop over what wrapped something goes over that.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..guarding.guard import Write

#: Who looks at what such a module is given.
_SEEN: list[Any] = []
#: Modules of environments, which are computed with.
ENVIRONMENTS = ("gym", "gymnasium", "d4rl")
#: Modules that compute nothing.
_PEOPLE: set[str] = set()


def _see(name: str, values: Any) -> None:
    """Look at what ``name`` is given; whether it carries a graph is nothing to what only tells people."""
    if _SEEN:
        _SEEN[-1](f"the module {name}", values, graphs=name.partition(".")[0] not in _PEOPLE)


def _here() -> Any:
    """The code and the instruction of whoever asks."""
    frame = sys._getframe(2)
    return frame.f_code, frame.f_lasti


class Nothing:
    """Attributes of an absent module, and what is made of them."""

    def __init__(self, name: str, arguments: tuple[Any, ...] = (), origin: Any = None) -> None:
        self.__dict__.update(_name=name, _arguments=arguments, _origin=origin)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(f"{self._name}.{name}", origin=_here())

    def __setattr__(self, name: str, value: Any) -> None:
        _see(f"{self._name}.{name}", value)
        self.__dict__[name] = value

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if len(arguments) == 1 and not named and (inspect.isfunction(arguments[0]) or inspect.isclass(arguments[0])):
            # A decorator.
            return arguments[0]
        _see(self._name, (arguments, named))
        return Nothing(self._name, arguments, _here())

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return ()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        wrapped = self._arguments[0] if self._arguments else ()
        return iter(wrapped if hasattr(type(wrapped), "__iter__") and not isinstance(wrapped, (str, bytes)) else ())

    def __repr__(self) -> str:
        return f"<{self._name} is not there>"


#: New enough for whoever asks.
_VERSION = "999.0"


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return _VERSION
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(f"{self.__name__}.{name}", origin=_here())


def is_absent(value: Any) -> bool:
    """Whether ``value`` stands for something that is not there."""
    return type(value) in (Nothing, _Module)


class _Finder:
    """Last in ``sys.meta_path``: asked for what no other finder has."""

    def __init__(self, names: set[str], write: Write) -> None:
        self._names = names
        self._write = write
        self._contents: dict[str, dict[str, Any]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top not in self._names:
            return None
        if name == top:
            why = "not installed; what it is asked for does nothing"
            if top in ENVIRONMENTS:
                from . import environments

                self._contents.update(environments.contents(top, self._write))
                why = "not installed; its environments are made up"
            self._write({"event": "standin", "what": f"the module {top}", "why": why, "shape": None})
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []
        vars(module).update(self._contents.get(module.__name__, {}))
        for name in self._contents:
            # The real ones import their parts themselves.
            if name.rpartition(".")[0] == module.__name__:
                importlib.import_module(name)


def install(
    names: Sequence[str],
    folders: Sequence[str],
    write: Write,
    see: Callable[..., None] | None = None,
    people: Sequence[str] = (),
) -> None:
    """Let ``folders`` of the tree be searched after all others, and ``names`` be stood in for.

    ``see`` is shown what these are given, ``people`` are those that only tell people.
    """
    _PEOPLE.update(people)
    if see is not None:
        _SEEN.append(see)
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    if names:
        sys.meta_path.append(_Finder(set(names), write))
