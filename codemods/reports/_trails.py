"""The life of a graph as stations: what happens at each, and where two of them can be joined by an arrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from codemods.terms.findings import TrailStep

# The words that the notes of rules use, and what each says of the graph.
_WORDS = {
    "produced": "produced|built",
    "carried": "carried|handed on|taken into",
    "kept": "kept|retained",
    "freed": "freed|cleared|ends",
    "used again": "used again|walked again|walked|read",
    "changed": "changed",
}
_KIND = re.compile("|".join(rf"(?P<{name.replace(' ', '_')}>\b(?:{words})\b)" for name, words in _WORDS.items()))


class Station(NamedTuple):
    """A step of a trail with its ``label`` (``1``, or ``b1`` for the second trail of an excerpt) and its ``kind``."""

    label: str
    kind: str
    step: TrailStep


class Arc(NamedTuple):
    """An arrow from line ``start`` to line ``end`` of one file, in the margin's lane ``lane``."""

    start: int
    end: int
    lane: int

    @property
    def upward(self) -> bool:
        """Whether it runs against the order of the text, as from one turn of a loop into the next."""
        return self.end < self.start


def kind_of(note: str) -> str:
    """Return what a note says of the graph: ``produced``, ``carried``, ``kept``, ``freed``, ``used again``, ``changed``
    or, where it says none of that, ``here``."""
    match = _KIND.search(note)
    return "here" if match is None or match.lastgroup is None else match.lastgroup.replace("_", " ")


def stations(trail: Sequence[TrailStep], prefix: str = "") -> list[Station]:
    """Return the stations of ``trail``, numbered from 1 after ``prefix``."""
    return [Station(f"{prefix}{number}", kind_of(step.note), step) for number, step in enumerate(trail, 1)]


def arcs(trails: Iterable[Sequence[Station]], path: str, lines: range) -> list[Arc]:
    """Return the arrows between stations that follow each other in a trail and stand among ``lines`` of ``path``.

    There is none between two places where graphs are produced: neither comes of the other.
    """
    pairs = [
        (one.step.line, other.step.line)
        for trail in trails
        for one, other in pairwise(trail)
        if one.step.path == other.step.path == path
        and one.step.line in lines
        and other.step.line in lines
        and not one.kind == other.kind == "produced"
    ]
    drawn: list[Arc] = []
    for start, end in dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]):
        low, high = sorted((start, end))
        taken = {arc.lane for arc in drawn if min(arc.start, arc.end) < high and low < max(arc.start, arc.end)}
        drawn.append(Arc(start, end, next(lane for lane in range(len(drawn) + 1) if lane not in taken)))
    return drawn
