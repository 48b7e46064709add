"""What every event is made of: places in the tree, errors, and what was read of tensors."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from typing import NamedTuple

#: Numbers that are kept of a tensor, see probe/values/digests.py.
SUMS = 16


class Site(NamedTuple):
    """A line of the user's tree and the function that it stands in; of a notebook the line in its ``cell``."""

    path: str
    line: int
    function: str
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.cell is None else f"{self.path}:cell {self.cell}:{self.line}"


class TroubleKind(str, enum.Enum):
    """What an exception is about, as the probe tells it."""

    FREED = "freed"
    """A backward through a graph that is freed."""
    INPLACE = "inplace"
    """A saved tensor was changed in place."""
    MEMORY = "memory"
    MISSING = "missing"
    """A module, a file or a variable is not there."""
    OTHER = "other"


class Trouble(NamedTuple):
    """An exception: its type's name, its message and its kind."""

    type: str
    message: str
    kind: TroubleKind


@dataclass(frozen=True)
class Values:
    """What was read of a list of tensors: a digest of all bits, the number of values, the sums of each tensor.

    The sums are 64-bit floats, :data:`SUMS` a tensor; empty where none were taken. ``missing`` tensors were not there.
    """

    digest: str
    count: int
    sums: bytes = b""
    missing: int = 0

    def rows(self) -> list[tuple[float, ...]]:
        """The sums, an entry a tensor."""
        width = 8 * SUMS
        return [struct.unpack_from(f"<{SUMS}d", self.sums, at) for at in range(0, len(self.sums) - width + 1, width)]
