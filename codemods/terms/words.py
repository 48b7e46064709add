"""Tables of names."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of ``text``: a set of names."""
    return frozenset(text.split())
