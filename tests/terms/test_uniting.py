"""What a chain of ties holds together."""

from __future__ import annotations

from codemods.terms.clusters import connected_groups


def test_united() -> None:
    assert connected_groups(5, [(0, 2), (3,), (2, 4), ()]) == [(0, 2, 4), (1,), (3,)]
