"""What a run says of its own knobs: calls that it left out or made itself, and where it stopped."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from verify.measured.values import Site, Trouble, Values


class KnobKind(str, enum.Enum):
    """What a knob of the run's own did."""

    LOOP = "loop"
    """It ended a loop."""
    BOUND = "bound"
    """It took a bound for met."""
    BATCH = "batch"
    """It made batches smaller."""


class Knob(NamedTuple):
    """A knob that did something, at a line as read; ``turns`` is what it allowed."""

    kind: KnobKind
    path: str
    line: int
    turns: int


class Observed(NamedTuple):
    """What the ``call``-th call of ``place`` was given, which was left out or had a stand-in. ``begun``: a line that is
    watched had run; ``whole``: all that it reads was read here."""

    place: str
    call: int
    begun: bool
    whole: bool
    values: Values
    form: tuple[str, ...]
    graphs: str

    @property
    def left_out(self) -> bool:
        """Whether it is a call of the program that was left out: such places are numbered."""
        return self.place[:1].isdigit()

    @property
    def called(self) -> str:
        """The place in words."""
        return self.place.partition(" ")[2] if self.left_out else self.place


class Stop(NamedTuple):
    """A frame of the tree in which a program stopped: ``span`` is line, column, end line, end column of what failed;
    ``hollow`` are names that stand for something absent, with the path and the span of what made it."""

    path: str
    span: tuple[int, int, int, int]
    hollow: tuple[tuple[str, tuple[Any, ...] | None], ...]


class Stopped(NamedTuple):
    """Where a program stopped, the innermost frame first, and ``why``; ``graph``: it may be an error of the graph or of
    the modelled code; ``missing``: something is not there, or a made-up value is no use; ``absent``: the former;
    ``walk``: a backward cannot go through the graph."""

    frames: tuple[Stop, ...]
    graph: bool
    missing: bool
    why: str
    absent: bool = False
    walk: bool = False


class Driven(NamedTuple):
    """The ``call``-th call at the end of the run of the function ``name`` of ``path``, with arguments from ``how``.

    ``reason`` says why it could not be called. ``told`` is how much of what it did was written down. ``recipe`` is what
    was made up for the call, None for nothing.
    """

    path: str
    name: str
    how: str
    call: int
    reason: str
    error: Trouble | None
    site: Site | None
    told: int
    recipe: dict[str, Any] | None = None

    @property
    def place(self) -> tuple[str, str]:
        """What tells the function from others."""
        return self.path, self.name

    @property
    def line(self) -> tuple[str, int] | None:
        """Where its error left the tree."""
        return None if self.site is None else (self.site.path, self.site.line)
