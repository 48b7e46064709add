"""Tables of functions, by the public names that they simulate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Handlers(dict[str, _Function]):
    """Functions by public names: ``HANDLERS.of("zip")`` above a function says that it simulates ``zip``.

    Whoever looks for what the engine does with ``zip`` searches for the name.
    """

    def of(self, *names: str) -> Callable[[_Function], _Function]:
        """A decorator that puts a function under each of the names. A name that is taken raises ``ValueError``."""

        def register(function: _Function) -> _Function:
            for name in names:
                if name in self:
                    raise ValueError(f"{name} has a handler: {self[name].__qualname__}")
                self[name] = function
            return function

        return register
