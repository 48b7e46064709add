"""The graph at a fault, folded to lines, as data."""

from __future__ import annotations

from dataclasses import dataclass

from verify.measured.values import Site


@dataclass(frozen=True)
class Held:
    """Who holds tensors of a box: a path from a variable as one would type it, in ``function``, and how many."""

    name: str
    function: str
    tensors: int

    def __str__(self) -> str:
        inside = f" in {self.function}" if self.function not in ("", "<module>") else ""
        return f"{self.name}{inside}" + (f" ({self.tensors} tensors)" if self.tensors > 1 else "")


@dataclass(frozen=True)
class Box:
    """Neighbouring nodes of one line, and those of ``turns`` turns of a loop.

    ``site`` is None where no line of the tree was running, ``source`` its text. ``steps``: in how many different steps
    the nodes were made. ``freed``: the number of the backward that freed the newest of it, from 1 on. ``operations``:
    the most frequent, with their counts. ``roles`` are words of the clues: ``cause``, ``consumer``, ``saved by``.
    """

    site: Site | None
    source: str
    nodes: int
    turns: int
    steps: int
    operations: tuple[tuple[str, int], ...]
    freed: int | None = None
    held: tuple[Held, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edge:
    """What is made in box ``made`` is used in box ``used``, ``count`` times; ``again``: the faulty walk goes here."""

    made: int
    used: int
    count: int
    again: bool = False


@dataclass(frozen=True)
class Walk:
    """Backward number ``number``, from 1 on, begins in ``boxes``; ``faulty``: it is the one that the fault shows in."""

    number: int
    site: Site | None
    source: str
    boxes: tuple[int, ...]
    faulty: bool


@dataclass(frozen=True)
class Graph:
    """All boxes, those that were made first come first; ``left_out``: how many more there are.

    ``whole``: whether all that is behind them was looked at.
    """

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    walks: tuple[Walk, ...]
    nodes: int
    whole: bool = True
    left_out: int = 0
