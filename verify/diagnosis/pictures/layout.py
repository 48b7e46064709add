"""Where boxes lie and how lines run between them: layers from top to bottom, few crossings, straight long lines.

For graphs of up to some fifty boxes; larger ones are Graphviz's (:mod:`verify.diagnosis.pictures.graphviz`).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

GAP = 28.0
ROW = 46.0
_SWEEPS = 12
#: Places settle slowly along chains.
_SETTLES = 120
#: How much room a line takes that passes a layer.
_LANE = 10.0
#: How much straighter a line is held where it passes a layer than where it meets a box.
_STRAIGHT = 3.0
#: The pull of a box without neighbours.
_LOOSE = 0.01

Point = tuple[float, float]


@dataclass(frozen=True)
class Placed:
    """The upper left corners of boxes, and the control points of edges: one, and three for each piece of a curve."""

    corners: list[Point]
    curves: list[list[Point]]
    width: float
    height: float


def place(sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Placed:
    """Return where boxes of ``sizes`` lie. An edge runs to a later box; one that does not is drawn upward."""
    downward = [(min(edge), max(edge)) for edge in edges]
    net = _Net(sizes, _ranks(len(sizes), [edge for edge in downward if edge[0] != edge[1]]), downward)
    net.order()
    net.spread()
    return net.placed(edges)


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: below all that leads to it; what nothing leads to lies close to what it leads to."""
    ranks = [0] * count
    for a, b in sorted(edges):
        ranks[b] = max(ranks[b], ranks[a] + 1)
    later: dict[int, list[int]] = {}
    for a, b in edges:
        later.setdefault(a, []).append(b)
    leading = {b for _, b in edges}
    for box in reversed(range(count)):
        if box not in leading and box in later:
            ranks[box] = min(ranks[b] for b in later[box]) - 1
    return ranks


class _Net:
    """Boxes and the places at which lines pass layers, the first ones first: ``above`` and ``below`` join them."""

    def __init__(self, sizes: Sequence[Point], ranks: Sequence[int], edges: Sequence[tuple[int, int]]) -> None:
        self._sizes = sizes
        self._ranks = list(ranks)
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self._lanes: list[list[int]] = []
        for a, b in edges:
            way = [a]
            for rank in range(ranks[a] + 1, ranks[b]):
                self._ranks.append(rank)
                self.above.append([])
                self.below.append([])
                way.append(len(self._ranks) - 1)
            way.append(b)
            if a != b:
                for upper, lower in itertools.pairwise(way):
                    self.below[upper].append(lower)
                    self.above[lower].append(upper)
            self._lanes.append(way)
        self._layers: list[list[int]] = [[] for _ in range(max(self._ranks, default=0) + 1)]
        for item, rank in enumerate(self._ranks):
            self._layers[rank].append(item)
        self._x = [0.0] * len(self._ranks)

    def _width(self, item: int) -> float:
        return self._sizes[item][0] if item < len(self._sizes) else _LANE

    def order(self) -> None:
        """Find an order within the layers in which few lines cross."""
        best, fewest = [list(layer) for layer in self._layers], self._crossings()
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            rows = range(1, len(self._layers)) if down else range(len(self._layers) - 2, -1, -1)
            for row in rows:
                fixed = {item: i for i, item in enumerate(self._layers[row - 1 if down else row + 1])}
                self._sort(row, self.above if down else self.below, fixed)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self._layers], crossings
        self._layers = best

    def _sort(self, row: int, near: list[list[int]], fixed: dict[int, int]) -> None:
        """Sort a layer by the middle of each item's neighbours in the layer that is done."""
        wanted: dict[int, float] = {}
        for place, item in enumerate(self._layers[row]):
            places = [fixed[other] for other in near[item] if other in fixed]
            wanted[item] = sum(places) / len(places) if places else float(place)
        self._layers[row].sort(key=wanted.__getitem__)

    def _crossings(self) -> int:
        count = 0
        for layer, following in itertools.pairwise(self._layers):
            at = {item: i for i, item in enumerate(following)}
            seen: list[int] = []
            for item in layer:
                ends = sorted(at[other] for other in self.below[item] if other in at)
                count += sum(len(seen) - bisect.bisect_right(seen, end) for end in ends)
                for end in ends:
                    bisect.insort(seen, end)
        return count

    def spread(self) -> None:
        """Find the middles of all items: near their neighbours, in their order, without touching each other."""
        for layer in self._layers:
            at = 0.0
            for item in layer:
                self._x[item] = at + self._width(item) / 2
                at += self._width(item) + GAP
        for sweep in range(_SETTLES):
            for layer in self._layers if sweep % 2 == 0 else self._layers[::-1]:
                self._settle(layer)

    def _settle(self, layer: list[int]) -> None:
        """Put a layer where the pull of all that its items are joined to is least."""
        wanted, weights, offsets, at = [], [], [], 0.0
        for place, item in enumerate(layer):
            near = [(other, self._pull(item, other)) for other in [*self.above[item], *self.below[item]]]
            weight = sum(pull for _, pull in near)
            wanted.append(sum(pull * self._x[other] for other, pull in near) / weight if near else self._x[item])
            weights.append(weight or _LOOSE)
            if place:
                at += (self._width(layer[place - 1]) + self._width(item)) / 2 + GAP
            offsets.append(at)
        settled = _rising([want - offset for want, offset in zip(wanted, offsets, strict=True)], weights)
        for item, middle, offset in zip(layer, settled, offsets, strict=True):
            self._x[item] = middle + offset

    def _pull(self, item: int, other: int) -> float:
        """The same from both ends, or all would drift for ever."""
        return _STRAIGHT ** ((item >= len(self._sizes)) + (other >= len(self._sizes)))

    def placed(self, edges: Sequence[tuple[int, int]]) -> Placed:
        """Return it all as coordinates."""
        tops, bottoms, at = [], [], 0.0
        for layer in self._layers:
            height = max((self._sizes[item][1] for item in layer if item < len(self._sizes)), default=0.0)
            tops.append(at)
            bottoms.append(at + height)
            at += height + ROW
        left = min((self._x[item] - self._width(item) / 2 for item in range(len(self._x))), default=0.0)
        right = max((self._x[item] + self._width(item) / 2 for item in range(len(self._x))), default=0.0)
        corners = [
            (self._x[item] - left - size[0] / 2, tops[self._ranks[item]]) for item, size in enumerate(self._sizes)
        ]
        curves = []
        for (a, b), way in zip(edges, self._lanes, strict=True):
            if a == b:
                x, y = corners[a][0] + self._sizes[a][0], corners[a][1] + self._sizes[a][1] / 2
                curves.append([(x, y - 8), (x + 26, y - 22), (x + 26, y + 22), (x, y + 8)])
                right = max(right, x + left + 26)
                continue
            points: list[Point] = [(self._x[way[0]] - left, tops[self._ranks[way[0]]] + self._sizes[way[0]][1])]
            for item in way[1:-1]:
                points += [(self._x[item] - left, y) for y in (tops[self._ranks[item]], bottoms[self._ranks[item]])]
            points.append((self._x[way[-1]] - left, tops[self._ranks[way[-1]]]))
            curve = _curve(points)
            curves.append(curve if a < b else curve[::-1])
        return Placed(corners, curves, right - left, max(at - ROW, 0.0))


def _rising(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The rising numbers nearest to ``wanted``, by weighted squares."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(wanted, weights, strict=True):
        count = 1
        while blocks and blocks[-1][0] > value:
            other, heavy, many = blocks.pop()
            value = (value * weight + other * heavy) / (weight + heavy)
            weight += heavy
            count += many
        blocks.append((value, weight, count))
    return [value for value, _, count in blocks for _ in range(count)]


def _curve(points: Sequence[Point]) -> list[Point]:
    """A curve through ``points`` that leaves and enters each of them from above to below."""
    found = [points[0]]
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        middle = (y + to_y) / 2
        found += [(x, middle), (to_x, middle), (to_x, to_y)]
    return found
