"""What cells hold at one moment, in two layers: those that many moments have in common, and those of this one."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterator
from typing import Any

Key = tuple[int, Hashable]
"""An identity, and the name under which it holds something."""

GONE = object()
"""What an own cell holds that was taken away of the shared ones."""


class Cells:
    """What the cells held at one moment: a mapping that cannot be changed."""

    __slots__ = ("_own", "_shared")

    def __init__(self, own: dict[Key, Any], shared: dict[Key, Any]) -> None:
        self._own = own
        self._shared = shared

    def get(self, key: Key, default: Any = None) -> Any:
        """The content of a cell."""
        value = self._own.get(key)
        if value is None:
            return self._shared.get(key, default)
        return default if value is GONE else value

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return iter(self.as_one())

    def items(self) -> ItemsView[Key, Any]:
        """The cells with what they hold, in the order in which they were made."""
        return self.as_one().items()

    def as_one(self) -> dict[Key, Any]:
        """The same in one layer."""
        found = self._shared | self._own
        for key in [key for key, value in self._own.items() if value is GONE]:
            del found[key]
        return found
