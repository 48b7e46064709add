"""What a chain of ties holds together."""

from __future__ import annotations

from codemods.uniting import united


def test_united() -> None:
    assert united(5, [(0, 2), (3,), (2, 4), ()]) == [(0, 2, 4), (1,), (3,)]
