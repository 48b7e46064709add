"""How far tensors of two runs are apart, from the sums of all values that the probe keeps (probe/values/digests.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from statistics import median
from typing import NamedTuple

from verify.measured.records import Step
from verify.measured.values import Values

#: The distance from 1 to the next number, by type; what is rounded differs by a few of these.
_EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
#: Gradients that are this small beside the largest of the same module are what is left of numbers that cancel each
#: other out (a bias before a BatchNorm): noise, which Adam turns into steps like any other.
_NOISE = 1e-5
_ULPS = 4

Row = tuple[float, ...]


class Apart(NamedTuple):
    """Two lists of tensors that differ: the tensor with the largest relative distance, and that distance.

    ``relative`` is the distance divided by the size of what is compared, ``distance`` the largest absolute distance.
    """

    place: int
    relative: float
    distance: float


def same(one: float, other: float) -> bool:
    """Whether two numbers are the same, NaN included."""
    return one == other or (math.isnan(one) and math.isnan(other))


def ratio(one: float, other: float) -> float:
    """How far two numbers are apart beside the larger one: 0 where they are the same, else infinite where one is not
    finite."""
    if same(one, other):
        return 0.0
    gap = abs(one - other)
    return gap / max(abs(one), abs(other)) if math.isfinite(gap) else math.inf


def length(row: Row) -> float:
    """The estimated length of the tensor whose sums are in ``row``."""
    return math.sqrt(math.fsum(value * value for value in row)) if all(map(math.isfinite, row)) else math.nan


def distance(one: Row, other: Row) -> float:
    """The length of the difference; NaN where only one of the two is finite."""
    total = 0.0
    for left, right in zip(one, other, strict=True):
        if not same(left, right):
            total += (left - right) ** 2 if abs(left - right) < 1e150 else math.inf
    return math.sqrt(total) if math.isfinite(total) else math.nan


def epsilon(kind: str) -> float:
    """The rounding error of a dtype of torch; 0 for whole numbers."""
    return _EPSILON.get(kind, 0.0)


def apart(one: Values, other: Values, types: Sequence[str] = ()) -> Apart:
    """The distance of ``one`` and ``other``, each tensor relative to its own size."""
    mine, theirs = one.rows(), other.rows()
    worst = Apart(-1, 0.0, 0.0)
    if len(mine) != len(theirs) or not mine or one.count != other.count:
        return Apart(-1, math.inf, math.nan)
    for place, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        gap = distance(left, right)
        slack = _ULPS * epsilon(types[place] if place < len(types) else "")
        worst = _worse(worst, place, gap, _ratio(gap, max(length(left), length(right)), slack))
    return worst


class Training:
    """The steps of one optimizer in two runs, in order.

    A parameter is compared relative to how far it has moved since the start, a gradient relative to its own size, or to
    its median in the run where it is smaller now.
    """

    def __init__(self, mine: Sequence[Step], theirs: Sequence[Step]) -> None:
        first = mine[0] if mine else None
        tensors = first.tensors if first is not None else None
        self.names = tensors.names if tensors is not None else ()
        self._types = tensors.types if tensors is not None else ()
        self._start = tensors.initial.rows() if tensors is not None and tensors.initial is not None else []
        self._steps = mine, theirs
        #: How far parameters were apart that learn nothing but noise.
        self.noise = 0.0

    @cached_property
    def _sizes(self) -> list[float]:
        return _sizes([step.grads for step in self._steps[0]])

    @cached_property
    def _largest(self) -> list[float]:
        """For each tensor the largest gradient in its module: gradients that cancel out there leave noise of that
        size."""
        both = [self._sizes, _sizes([step.grads for step in self._steps[1]])]
        groups: dict[str, float] = {}
        for sizes in both:
            for place, size in enumerate(sizes):
                if math.isfinite(size):
                    groups[self._module(place)] = max(size, groups.get(self._module(place), 0.0))
        return [groups.get(self._module(place), 0.0) for place in range(max(map(len, both)))]

    def _module(self, place: int) -> str:
        return self.name(place).rpartition(".")[0]

    def _noise(self, place: int, share: float) -> float:
        return share * (self._largest[place] if place < len(self._largest) else 0.0)

    @cached_property
    def _idle(self) -> frozenset[int]:
        """Tensors whose gradients were only noise in all steps of both runs."""
        most: dict[int, float] = {}
        for step in (*self._steps[0], *self._steps[1]):
            for place, row in enumerate(step.grads.rows() if step.grads is not None else ()):
                size = length(row)
                most[place] = max(most.get(place, 0.0), size if math.isfinite(size) else math.inf)
        return frozenset(place for place, size in most.items() if size <= self._noise(place, _NOISE))

    def name(self, place: int) -> str:
        """The name of a tensor for users."""
        return self.names[place] if 0 <= place < len(self.names) else ""

    def gradients(self, one: Values, other: Values) -> Apart:
        """How far the gradients of a step are apart."""
        mine, theirs = one.rows(), other.rows()
        if len(mine) != len(theirs):
            return Apart(-1, math.inf, math.nan)
        worst = Apart(-1, 0.0, 0.0)
        for place, (left, right) in enumerate(zip(mine, theirs, strict=True)):
            sizes = length(left), length(right)
            gap = distance(left, right)
            usual = self._sizes[place] if place < len(self._sizes) else 0.0
            # Where one of them is 0 it may be that nothing arrives there any more.
            noise = self._noise(place, self._slack(place) if 0.0 in sizes else _NOISE)
            relative = 0.0 if gap <= noise else _ratio(gap, max(*sizes, usual), self._slack(place))
            worst = _worse(worst, place, gap, relative)
        return worst

    def parameters(self, one: Values, other: Values) -> Apart:
        """How far the parameters after a step are apart."""
        mine, theirs, start = one.rows(), other.rows(), self._start
        if not len(mine) == len(theirs) == len(start):
            return apart(one, other, self._types)
        worst = Apart(-1, 0.0, 0.0)
        for place, (left, right, first) in enumerate(zip(mine, theirs, start, strict=True)):
            gap = distance(left, right)
            moved = distance(left, first), distance(right, first)
            rounding = self._slack(place) * max(length(left), length(right))
            relative = 0.0 if gap <= rounding else _ratio(gap, max(moved), 0.0)
            if relative and place in self._idle and 0.0 not in moved and math.isfinite(gap):
                self.noise = max(self.noise, gap)
                continue
            worst = _worse(worst, place, gap, relative)
        return worst

    def roundings(self, one: Values, other: Values) -> float:
        """How far gradients are apart beside the largest of their module, in distances from 1 to the next number."""
        rows = list(zip(one.rows(), other.rows(), strict=False))
        sizes = [max(length(left), length(right)) for left, right in rows]
        largest: dict[str, float] = {}
        for place, size in enumerate(sizes):
            largest[self._module(place)] = max(size, largest.get(self._module(place), 0.0))
        found = (
            distance(left, right) / (largest[self._module(place)] * self._slack(place) / _ULPS)
            for place, (left, right) in enumerate(rows)
            if largest[self._module(place)] and self._slack(place)
        )
        return max(found, default=0.0)

    def _slack(self, place: int) -> float:
        return _ULPS * epsilon(self._types[place] if place < len(self._types) else "float32")


def _ratio(gap: float, size: float, slack: float) -> float:
    if gap == 0.0:
        return 0.0
    if math.isnan(gap) or math.isnan(size) or size == 0.0:
        return math.inf
    return gap / size if gap > slack * size else 0.0


def _worse(worst: Apart, place: int, gap: float, relative: float) -> Apart:
    largest = math.nan if math.isnan(gap) or math.isnan(worst.distance) else max(worst.distance, gap)
    if relative > worst.relative or (worst.place < 0 and gap != 0.0):
        return Apart(place, relative, largest)
    return worst._replace(distance=largest)


def _sizes(steps: Sequence[Values | None]) -> list[float]:
    """The usual size of each gradient: the median over the steps that have one."""
    rows = [values.rows() for values in steps if values is not None and values.sums]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return []
    columns = ([size for size in map(length, column) if math.isfinite(size)] for column in zip(*rows, strict=True))
    return [median(column) if column else 0.0 for column in columns]
