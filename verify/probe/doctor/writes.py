"""Who changes tensors in place: a dispatch mode that notes the line of every write, in the second run."""

from __future__ import annotations

from types import FrameType
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from ..sites import Tree

_MOST = 200_000


class Writes(TorchDispatchMode):
    """Notes, by storage, the version that a write leads to, its line and its operation."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree
        self._count = 0
        self._found: dict[int, list[tuple[int, Any, str]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from sys import _getframe

        result = func(*args, **(kwargs or {}))
        if func._schema.is_mutable and self._count < _MOST:
            frame: FrameType = _getframe(1)
            for position in range(len(args)):
                argument, described = args[position], func._schema.arguments[position]
                if described.alias_info is not None and described.alias_info.is_write:
                    self._note(argument, frame, func.name())
        return result

    def _note(self, argument: Any, frame: FrameType, name: str) -> None:
        site = None
        for tensor in argument if isinstance(argument, (list, tuple)) else (argument,):
            if hasattr(tensor, "untyped_storage"):
                site = site or self._tree.site(frame)
                self._count += 1
                # In here the version is not raised yet.
                row = (tensor._version + 1, site, name)
                self._found.setdefault(int(tensor.untyped_storage()._cdata), []).append(row)

    def after(self, tensor: Any, version: int) -> tuple[Any, str] | None:
        """The line and the operation of the first write to the storage of ``tensor`` after it had ``version``."""
        rows = self._found.get(int(tensor.untyped_storage()._cdata), [])
        # An address can have been another storage's before: the last row of this version is ours.
        return next(((site, name) for number, site, name in reversed(rows) if number == version + 1), None)
