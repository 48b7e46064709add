"""What one run shows of the mistakes that this project is about: errors in the graph, growth, forwards for nothing.

Growth is judged by the age census alone: nodes of many old steps that are still alive. A slope is no verdict (a cache
that fills, an optimizer's history, sequences of varying length have one), so the series of live nodes only illustrates,
except where a run was killed before there could be a census.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from verify.observer import FEWEST
from verify.records import Forwards, Holder, Trouble
from verify.results import Outcome, Run

#: Errors that the graph itself raises, or that its growth ends in.
GRAPH_ERRORS = frozenset({"freed", "inplace", "memory"})


@dataclass(frozen=True)
class Symptoms:
    """What a run shows. ``error`` is a graph error, ``other`` one for another reason; at most one of them is set.

    ``leak`` is None where nothing can be said (too few steps, or the run was killed before the census). ``live`` holds
    the graph nodes alive at each optimizer step (at each backward, where no optimizer stepped), ``slope`` how many a
    step adds over the last two thirds.
    """

    error: Trouble | None
    other: Trouble | None
    leak: bool | None
    live: tuple[int, ...]
    slope: float
    holders: tuple[Holder, ...]
    wasted: tuple[Forwards, ...]

    @property
    def faulty(self) -> bool:
        """Whether the run shows a mistake with the graph that a ``repair`` repairs."""
        return self.error is not None or bool(self.leak)

    @property
    def growth(self) -> str:
        """The figure behind ``leak``, as a short phrase."""
        if self.leak:
            held = f" (held by {self.holders[0].name})" if self.holders else ""
            return f"the graph grows by {self.slope:.0f} nodes a step{held}"
        if self.leak is None:
            return "too short a run to tell whether the graph grows"
        return f"the graph stays flat ({self.live[-1] if self.live else 0} nodes alive at the last step)"


def symptoms(run: Run) -> Symptoms:
    """Return what ``run`` shows."""
    record = run.record
    trouble = run.error
    if trouble is None and run.outcome is Outcome.MEMORY:
        trouble = Trouble("MemoryError", "the run reached its memory limit", "memory")
    graph = trouble is not None and trouble.kind in GRAPH_ERRORS
    live = live_nodes(run)
    leak: bool | None
    if record.census is not None:
        leak = record.census.leak if record.census.boundaries >= FEWEST or record.census.leak else None
    else:
        leak = True if _climbs(live) else None
    return Symptoms(
        error=trouble if graph else None,
        other=None if graph else trouble,
        leak=leak,
        live=live,
        slope=_rise(live) if leak else slope_of(live),
        holders=record.census.holders if record.census else (),
        wasted=tuple(site for site in record.forwards if site.wasted),
    )


def live_nodes(run: Run) -> tuple[int, ...]:
    """Return how many graph nodes were alive at each optimizer step, or at each backward of a run without optimizer."""
    record = run.record
    return tuple(step.live for step in record.steps) or tuple(b.live for b in record.backwards)


def slope_of(series: Sequence[float]) -> float:
    """Return how much each entry adds to the one before it, over the last two thirds; 0 for fewer than three."""
    tail = series[len(series) // 3 :]
    if len(tail) < 3:
        return 0.0
    return statistics.linear_regression(range(len(tail)), tail).slope


def _rise(live: Sequence[int]) -> float:
    """Return how many nodes a step of a growing run adds.

    The median of the differences: a total that is cleared every epoch falls back each time, which would hide in a
    straight line that it grew in between.
    """
    tail = live[len(live) // 3 :]
    return statistics.median(later - earlier for earlier, later in pairwise(tail)) if len(tail) > 1 else 0.0


def _climbs(live: Sequence[int]) -> bool:
    """Whether a run without a census grew beyond doubt: at nearly every step, and to twice what it was."""
    tail = live[len(live) // 3 :]
    if len(tail) < FEWEST:
        return False
    rises = sum(later > earlier for earlier, later in pairwise(tail))
    return rises >= 0.8 * (len(tail) - 1) and tail[-1] >= 2 * max(1, tail[0])
