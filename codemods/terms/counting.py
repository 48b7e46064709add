"""How numbers of things are told."""

from __future__ import annotations


def count_text(number: int, noun: str) -> str:
    """Return ``1 step``, ``1,240 steps``."""
    return f"{number:,} {noun}{_plural(number)}"


def plain_count_text(number: int, noun: str) -> str:
    """Return ``1 step``, ``1240 steps``."""
    return f"{number} {noun}{_plural(number)}"


def _plural(number: int) -> str:
    return "" if number == 1 else "s"
