"""Who changes tensors in place: a dispatch mode that notes the line of every write, in the second run."""

from __future__ import annotations

import typing
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..lines.sites import Tree
from ..values import tensors

_MOST = 200_000
#: Lines that are told of, from the write outward.
_OUTWARD = 6


class Written(typing.NamedTuple):
    """A write: the version that it leads to, its line, its operation, what the line calls the tensor, and the lines
    outside of it from which it was called."""

    version: int
    site: Any
    operation: str
    name: str
    through: list[Any]


class Writes(TorchDispatchMode):
    """Notes, by storage, the version that a write leads to, its line and its operation."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree
        self._count = 0
        self._found: dict[int, list[Written]] = {}

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
        frames: list[FrameType] = []
        for tensor in argument if isinstance(argument, (list, tuple)) else (argument,):
            if hasattr(tensor, "untyped_storage"):
                frames = frames or self._tree.frames(frame)
                sites = [self._tree.site(each) for each in frames[:_OUTWARD]]
                self._count += 1
                key = int(tensor.untyped_storage()._cdata)
                # In here the version is not raised yet.
                row = Written(tensor._version + 1, sites[0] if sites else None, name, _called(key, frames), sites[1:])
                self._found.setdefault(key, []).append(row)

    def after(self, tensor: Any, version: int) -> Written | None:
        """The first write to the storage of ``tensor`` after it had ``version``."""
        rows = self._found.get(int(tensor.untyped_storage()._cdata), [])
        # An address can have been another storage's before: the last row of this version is ours.
        return next((row for row in reversed(rows) if row.version == version + 1), None)


def _called(storage: int, frames: list[FrameType]) -> str:
    """The variable of the innermost of ``frames`` that has this storage; it may be gone when the error comes."""
    for name, value in list(frames[0].f_locals.items()) if frames else []:
        if isinstance(value, torch.Tensor) and tensors.storage(value) == storage:
            return name
    return ""
