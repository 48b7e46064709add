"""Classes of values that nobody may change: what the type checker holds, and the run need not look after.

A frozen dataclass sets each of its fields past its own guard, which takes several times as long. Millions are made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


def dataclass(*, frozen: bool = False, eq: bool = True, slots: bool = False) -> Callable[[type[Any]], type[Any]]:
    """``dataclasses.dataclass`` without the guard of ``frozen``; what is compared by its fields has a hash of them."""
    return dataclasses.dataclass(eq=eq, slots=slots, unsafe_hash=frozen and eq)
