"""Stretches of text."""

from __future__ import annotations

from typing import NamedTuple

Position = tuple[int, int]
"""A line and a column."""


class Span(NamedTuple):
    """A stretch of text: lines from 1, columns from 0 in characters, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def start(self) -> Position:
        return self.line, self.column

    @property
    def end(self) -> Position:
        return self.end_line, self.end_column

    def to(self, last: Span) -> Span:
        """From where this begins to where ``last`` ends."""
        return Span(*self.start, *last.end)

    def lies_in(self, outer: Span) -> bool:
        """Whether ``outer`` holds all of it."""
        return outer.start <= self.start and self.end <= outer.end
