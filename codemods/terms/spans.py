"""Stretches of text."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of text: lines from 1, columns from 0 in characters, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
