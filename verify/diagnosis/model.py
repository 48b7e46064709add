"""What a diagnosis has to say, as data; its reports are renderings of a :class:`Diagnosis` and know nothing else."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from verify.diagnosis.folded import Graph
from verify.measured.values import Site


class Kind(enum.Enum):
    """The faults that are known."""

    SECOND_BACKWARD = "second-backward"
    CHANGED_IN_PLACE = "changed-in-place"
    GROWING_GRAPH = "growing-graph"
    GROWING_TENSORS = "growing-tensors"
    GROWING_CONTAINER = "growing-container"
    GROWING_CACHE = "growing-cache"
    OUT_OF_MEMORY = "out-of-memory"
    LOSS_CUT_OFF = "loss-cut-off"
    NO_GRADIENT = "no-gradient"
    NOT_IN_OPTIMIZER = "not-in-optimizer"
    NEVER_CLEARED = "gradients-never-cleared"
    UNUSED_FORWARDS = "unused-forwards"
    SLOWER_STEPS = "slower-steps"
    OTHER_DEVICE = "device-mismatch"


#: Those that take many steps to show.
GROWTH = frozenset({Kind.GROWING_GRAPH, Kind.GROWING_TENSORS, Kind.GROWING_CONTAINER})
#: Those with which a program trains on to its end, so that others may show there.
BEARABLE = frozenset(
    {
        Kind.NO_GRADIENT,
        Kind.NOT_IN_OPTIMIZER,
        Kind.NEVER_CLEARED,
        Kind.UNUSED_FORWARDS,
        Kind.SLOWER_STEPS,
        Kind.GROWING_CACHE,
    }
)


@dataclass(frozen=True)
class Clue:
    """One station of a fault.

    ``role`` is a word for people (``cause``, ``carrier``, ``consumer``, ``freed by``); ``site`` the line and ``source``
    its text; ``name`` a path from a variable as one would type it, in ``function``; ``also``: other such paths to it;
    ``text`` what there is to say.
    """

    role: str
    site: Site | None = None
    source: str = ""
    name: str = ""
    function: str = ""
    text: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: what, where it shows, the stations that lead there, what would mend it, figures.

    ``graph`` is the graph at the fault, where the fault is one of graphs.
    """

    kind: Kind
    headline: str
    site: Site | None
    clues: tuple[Clue, ...] = ()
    remedy: str = ""
    figures: Mapping[str, float | int | str] = field(default_factory=dict)
    graph: Graph | None = None

    def clue(self, role: str) -> Clue | None:
        """The first clue of that role."""
        return next((clue for clue in self.clues if clue.role == role), None)


@dataclass(frozen=True)
class DoctorRun:
    """One run that was made: what for, how it ended, seconds."""

    name: str
    ending: str
    seconds: float


@dataclass(frozen=True)
class Measures:
    """What a run comes to, for two versions of a program to be set side by side.

    Of ``meant`` parameters (those of optimizers; where none steps, those that a backward came to) ``learning`` still
    got gradients in the second half; ``idle`` are names of the others. ``starved``: those that a backward comes to, but
    never for the steps of an optimizer that holds them too, which it names. ``seconds`` a step; ``saved`` bytes of what
    the largest graph keeps, ``nodes`` of the last one; None where nothing tells. ``losses`` of all backwards; ``first``
    is that of the first one, also where torch refused to walk it.
    """

    meant: int = 0
    learning: int = 0
    idle: tuple[str, ...] = ()
    starved: tuple[str, ...] = ()
    seconds: float | None = None
    saved: int | None = None
    nodes: int | None = None
    losses: tuple[float, ...] = ()
    first: float | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All that the runs show.

    ``watched`` and ``unwatched`` say what was looked for and what could not be; ``reason`` is set where the program
    could not be run to any purpose, with ``advice``; ``traceback`` that of an error which is none of ours to explain.
    """

    command: str
    root: str
    faults: tuple[Fault, ...]
    remarks: tuple[str, ...]
    watched: tuple[str, ...]
    unwatched: tuple[str, ...]
    steps: int
    backwards: int
    runs: tuple[DoctorRun, ...]
    reason: str = ""
    advice: tuple[str, ...] = ()
    traceback: str = ""
    measures: Measures = field(default_factory=Measures)
    graph: Graph | None = None
    """The graph of an ordinary step, where it was asked for and no fault has one."""
    loaded: tuple[str, ...] = ()
    """The Python files of the tree that the first run loaded."""
    capped: bool = False
    """Whether epochs were cut short, so that what grows within one may not show."""
    stop: Site | None = None
    """The line of an error that is none of ours to explain."""
    limits: tuple[str, ...] = ()
    """What the program had in place of what it lacks, and what that cannot show."""

    @property
    def status(self) -> int:
        """The exit status: 0 nothing wrong, 1 a fault is named, 3 the program could not be run."""
        if self.faults:
            return 1
        return 3 if self.reason else 0
