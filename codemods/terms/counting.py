"""How numbers of things are told."""

from __future__ import annotations

from collections.abc import Sequence


def count_text(number: int, noun: str) -> str:
    """Return ``1 step``, ``1,240 steps``."""
    return f"{number:,} {noun_text(number, noun)}"


def plain_count_text(number: int, noun: str) -> str:
    """Return ``1 step``, ``1240 steps``."""
    return f"{number} {noun_text(number, noun)}"


def noun_text(number: int, noun: str) -> str:
    """Return ``noun`` as it stands behind ``number``: ``step`` or ``steps``, ``branches``, ``repositories``."""
    if number == 1:
        return noun
    if noun.endswith("ory"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith("ch") else "s")


def listed(names: Sequence[str], most: int, *, between: str = ", ") -> str:
    """Return the first ``most`` of ``names``, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def bytes_text(size: float, *, signed: bool = False) -> str:
    """Return a size in bytes as people read it (``61.2 KiB``); ``signed`` puts a plus before what grows."""
    sign = "-" if size < 0 else "+" if signed and round(size) > 0 else ""
    amount, unit = abs(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1000:
            break
        amount, unit = amount / 1024, larger
    digits = 0 if unit == "B" or amount >= 100 else 1 if amount >= 10 else 2
    return f"{sign}{amount:.{digits}f} {unit}"
