"""Charts of the fleet page as SVG: drawn by hand, coloured by the page around them, and the same every time.

Bars and points need no library; what they show stands beside them as text too, so that nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from codemods.batch.fleet.numbers import grouped

#: Of every drawing, in pixels.
WIDTH = 1080
_CHARACTER = 7.3  # pixels, about, of the page's font at 13 px
_ROW = 26


class Part(NamedTuple):
    """A stretch of a bar: how long, its name, and the class that colours it."""

    value: float
    label: str
    tone: str


class Bar(NamedTuple):
    """A bar: what it stands for, and its stretches."""

    label: str
    parts: tuple[Part, ...]


class Pair(NamedTuple):
    """A quantity before and after, and what it is of."""

    label: str
    before: float
    after: float
    note: str = ""


def bars(
    rows: Sequence[Bar], title: str, written: Callable[[float], str] = lambda value: grouped(int(value))
) -> Markup:
    """A bar a row, names to the left and numbers to the right, as ``written`` tells them."""
    left = _label_width([row.label for row in rows])
    most = max((sum(part.value for part in row.parts) for row in rows), default=0) or 1
    room = WIDTH - left - 70
    shapes = []
    for index, row in enumerate(rows):
        y = index * _ROW
        shapes.append(_name(left, y + 17, row.label))
        x = left
        for part in row.parts:
            width = room * part.value / most
            if part.value:
                shape = '<rect x="{:.1f}" y="{}" width="{:.1f}" height="18" class="{}"><title>{}: {} {}</title></rect>'
                told = (x, y + 4, max(width - 1, 1), part.tone, row.label, written(part.value), part.label)
                shapes.append(Markup(shape).format(*told))
            x += width
        shapes.append(words(x + 6, y + 17, "value", written(sum(part.value for part in row.parts))))
    return drawing(len(rows) * _ROW + 4, shapes, title)


def pairs(rows: Sequence[Pair], title: str, written: Callable[[float], str], base: int = 10) -> Markup:
    """Before and after as two points of a line a row, on a logarithmic scale: what fell is a line to the left.

    ``base`` is that of the numbers that are told at the bottom: 10, or a power of two for sizes.
    """
    left = _label_width([row.label for row in rows])
    values = [max(value, 0.0) for row in rows for value in (row.before, row.after)]
    low = min((value for value in values if value > 0), default=1.0)
    first = math.floor(math.log(low, base) + 1e-9)
    last = max(first + 1, math.ceil(math.log(max([*values, 1e-9]), base) - 1e-9))
    low, high = float(base) ** first, float(base) ** last
    room = WIDTH - left - 120

    def place(value: float) -> float:
        # Nothing at all stands at the left edge: a logarithm has no zero.
        inside = max(value, low)
        return left + room * math.log(inside / low) / math.log(high / low)

    height = len(rows) * _ROW + 30
    shapes = []
    for power in range(first, last + 1):
        x = place(float(base) ** power)
        shapes.append(Markup('<line x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}" class="grid"/>').format(x, height - 22))
        shapes.append(words(x, height - 6, "tick", written(float(base) ** power)))
    for index, row in enumerate(rows):
        y = index * _ROW + 13
        before, after = place(row.before), place(row.after)
        shapes.append(_name(left, y + 4, row.label))
        shapes.append(
            Markup(
                '<g><title>{}: {} before, {} after</title><line x1="{:.1f}" x2="{:.1f}" y1="{y}" y2="{y}" class="way"/>'
                '<circle cx="{:.1f}" cy="{y}" r="5" class="before"/>'
                '<circle cx="{:.1f}" cy="{y}" r="5" class="after"/></g>'
            ).format(row.label, written(row.before), written(row.after), before, after, before, after, y=y)
        )
        shapes.append(words(max(before, after) + 12, y + 4, "value", row.note))
    return drawing(height, shapes, title)


def words(x: float, y: float, kind: str, text: str) -> Markup:
    """A text of the drawing; the page's style sheet says how a ``kind`` looks."""
    return Markup('<text x="{:.1f}" y="{}" class="{}">{}</text>').format(x, y, kind, text)


def _name(left: float, y: float, label: str) -> Markup:
    """What a row is about, to the left of it."""
    return Markup('<text x="{:.0f}" y="{}" class="name">{}</text>').format(left - 10, y, _cut(label))


def drawing(height: float, shapes: Sequence[Markup], title: str) -> Markup:
    """Put ``shapes`` together, with a title for those who cannot see them."""
    return Markup('<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, height, title, Markup("").join(shapes)
    )


def _label_width(labels: Sequence[str]) -> float:
    return min(340.0, max((len(_cut(label)) for label in labels), default=4) * _CHARACTER + 14)


def _cut(label: str) -> str:
    return label if len(label) <= 44 else label[:43] + "…"
