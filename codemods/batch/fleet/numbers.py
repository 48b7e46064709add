"""How numbers are written in fleet reports."""

from __future__ import annotations


def grouped(number: int) -> str:
    """``12,345``."""
    return f"{number:,}"


def size(count: float | None) -> str:
    """A number of bytes: ``1.5 MiB``; a dash for what was not measured."""
    if count is None:
        return "–"
    sign, count = ("−" if round(count) < 0 else ""), abs(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{sign}{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{sign}{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def span(seconds: float | None) -> str:
    """A short time: ``820 µs``, ``1.2 ms``, ``3.4 s``, ``12 min``; a dash for what was not measured."""
    if seconds is None:
        return "–"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def share(part: float, whole: float) -> str:
    """``12 %``."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


def change(factor: float) -> str:
    """A factor as a change in percent: 0.88 is 12 less."""
    return f"{100 * (factor - 1):+.0f} %".replace("-", "−")
