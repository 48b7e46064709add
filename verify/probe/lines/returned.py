"""Which functions are watched for what they return and hold then: by their names, from Python 3.11 on; before, none."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

from .sites import Tree

#: So many calls of a function are told.
_MOST = 32
_RETURNS = frozenset(dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap)


class Returned:
    """Watches the functions ``wanted``, [path relative to the tree, full name, names of variables]; ``tell`` gets path
    and name, the number of the call, the value, and those variables."""

    def __init__(self, wanted: Iterable[list[Any]], tree: Tree, tell: Callable[..., None]) -> None:
        self._names = {(path, name): names for path, name, names in wanted}
        self._left = dict.fromkeys(self._names, _MOST)
        self._tree = tree
        self._tell = tell

    @property
    def waiting(self) -> bool:
        """Whether there is a function of which more calls are to be told."""
        return bool(self._left)

    def wants(self, code: CodeType) -> bool:
        """Whether ``code`` is of a function of which more calls are to be told."""
        return bool(self._left) and self._key(code) in self._left

    def told(self, frame: FrameType, value: Any) -> bool:
        """``frame`` returns ``value``; whether more of its calls are wanted."""
        key = self._key(frame.f_code)
        left = self._left.get(key)
        if left is None:
            return False
        self._left[key] = left - 1
        if left == 1:
            del self._left[key]
        names = self._names[key]
        held = frame.f_locals if names else {}
        self._tell(list(key), _MOST - left + 1, value, [(name, held[name]) for name in names if name in held])
        return left > 1

    def _key(self, code: CodeType) -> tuple[str, str]:
        return self._tree.relative(code.co_filename) or "", getattr(code, "co_qualname", "")


def returns(frame: FrameType) -> bool:
    """Whether ``frame``, which is left, returns: not if it yields, or an error ends it."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _RETURNS
