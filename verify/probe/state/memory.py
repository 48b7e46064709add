"""Bytes in use now and at most: of the C heap where there is no CUDA, of CUDA's allocator once it is in use."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

#: Seconds that have to pass between two looks at the C heap, which go through all that is free in it.
_PAUSE = 0.001


class _Mallinfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33 and newer."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keep",
        )
    ]


def _heap() -> Callable[[], Any] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    mallinfo.restype = _Mallinfo
    mallinfo.argtypes = []
    return mallinfo


class Memory:
    """Bytes in use, and the most since the last step.

    On the CPU the peak is the most that was seen at any look, of which one is before every backward, where a step holds
    most; both are 0 where the C library cannot tell (macOS, musl, glibc before 2.33). Of steps that take less than a
    millisecond not each is looked at.
    """

    def __init__(self) -> None:
        import torch

        self._cuda: Any = torch.cuda
        self._mallinfo = _heap()
        self._peak = self._used = 0
        self._next = 0.0

    def look(self) -> tuple[int, int]:
        """(bytes, peak) now."""
        if self._cuda.is_initialized():
            cards = range(self._cuda.device_count())
            return (
                sum(self._cuda.memory_allocated(card) for card in cards),
                sum(self._cuda.max_memory_allocated(card) for card in cards),
            )
        if self._mallinfo is None:
            return 0, 0
        now = time.perf_counter()
        if now >= self._next:
            info = self._mallinfo()
            self._used = int(info.uordblks + info.hblkhd)
            self._next = now + _PAUSE
        self._peak = max(self._peak, self._used)
        return self._used, self._peak

    def reset(self) -> None:
        """Start a new peak."""
        self._peak = 0
        if self._cuda.is_initialized():
            for card in range(self._cuda.device_count()):
                self._cuda.reset_peak_memory_stats(card)
