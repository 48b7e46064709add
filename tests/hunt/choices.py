"""A stream of small decisions, recorded, so that a program can be made again, and made smaller."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Numbers from a seed, or from a ``record`` of earlier ones; what was drawn stands in ``made``.

    The smaller a number, the simpler what it stands for; past the end of a record everything is 0. So a record with
    parts left out, or with smaller numbers, gives a simpler program.
    """

    def __init__(self, seed: int = 0, record: Sequence[int] | None = None) -> None:
        self.made: list[int] = []
        self._random = random.Random(seed)
        self._record = record

    def below(self, bound: int) -> int:
        """A number from 0 to ``bound`` - 1."""
        if self._record is None:
            number = self._random.randrange(bound)
        else:
            place = len(self.made)
            number = min(self._record[place], bound - 1) if place < len(self._record) else 0
        self.made.append(number)
        return number

    def one(self, options: Sequence[T]) -> T:
        """One of ``options``, of which the first is the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases; False is the simpler answer."""
        return self.below(100) >= 100 - percent

    def subset(self, options: Sequence[T], most: int) -> list[T]:
        """Up to ``most`` of ``options``, in the order drawn, perhaps none and perhaps one twice."""
        return [self.one(options) for _ in range(self.below(most + 1))]
