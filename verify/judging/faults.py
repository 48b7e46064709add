"""What one run shows of the mistakes that this project looks for: graph errors, growth, forwards that nothing uses.

Only the age census decides about growth: nodes of many old steps that are still alive. A slope decides nothing (a cache
that fills, an optimizer's history and sequences of varying length have one): the series of live nodes illustrates,
except where a run was killed before there could be a census.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from verify.live.observer import FEWEST
from verify.measured.records import Caught, Forwards, Holder, Record
from verify.measured.results import Outcome, Run
from verify.measured.values import Trouble, TroubleKind

#: Errors that the graph itself raises, or that its growth ends in.
GRAPH_ERRORS = frozenset({TroubleKind.FREED, TroubleKind.INPLACE, TroubleKind.MEMORY})


@dataclass(frozen=True)
class Symptoms:
    """What a run shows. ``error`` is a graph error, ``other`` one for another reason; at most one of them is set.

    ``leak`` is None where nothing can be said (too few steps, or the run was killed before the census). ``live`` holds
    the graph nodes alive at each optimizer step (at each backward, where no optimizer stepped), ``slope`` how many a
    step adds over the last two thirds. ``caught`` are errors out of autograd and of modules that ended no process.
    """

    error: Trouble | None
    other: Trouble | None
    leak: bool | None
    live: tuple[int, ...]
    slope: float
    holders: tuple[Holder, ...]
    wasted: tuple[Forwards, ...]
    caught: tuple[Caught, ...] = ()

    @property
    def faulty(self) -> bool:
        """Whether the run shows a graph mistake of the kind that a ``repair`` removes."""
        return self.error is not None or bool(self.leak) or bool(self.caught_faults)

    @property
    def caught_faults(self) -> tuple[Caught, ...]:
        """Graph errors that the program caught and survived."""
        return tuple(caught for caught in self.caught if caught.error.kind in GRAPH_ERRORS)

    @property
    def growth(self) -> str:
        """The figure behind ``leak``, as a short phrase."""
        if self.leak:
            held = f" (held by {self.holders[0].name})" if self.holders else ""
            many = f" by {self.slope:.0f} nodes a step" if round(self.slope) > 0 else ""
            return f"the graph grows{many}{held}"
        if self.leak is None:
            return "too short a run to tell whether the graph grows"
        return f"the graph stays flat ({self.live[-1] if self.live else 0} nodes alive at the last step)"


def symptoms(run: Run) -> Symptoms:
    """Return what ``run`` shows."""
    record = run.record
    trouble = run.error
    if trouble is None and run.outcome is Outcome.MEMORY:
        trouble = Trouble("MemoryError", "the run reached its memory limit", TroubleKind.MEMORY)
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
        caught=tuple(caught for each in run.records for caught in caught_errors(each)),
    )


def caught_errors(record: Record) -> tuple[Caught, ...]:
    """Return the errors out of autograd and of modules that did not end the process."""
    caught = list(record.caught)
    if record.error is not None:
        # It may have come out of autograd, and then out of the module that asked.
        for forward in (False, True):
            ending = [
                index
                for index, each in enumerate(caught)
                if each.forward is forward and each.error[:2] == record.error[:2]
            ]
            for index in ending[-1:]:
                del caught[index]
    return tuple(caught)


def more_caught(before: Run, after: Run) -> tuple[Trouble, int, int] | None:
    """Return an error that ``after`` caught more often than ``before``, with both counts.

    Errors of autograd of a kind that ``before`` never survived count everywhere; others only within the steps that both
    made, because a batch that does not fit the model may come later.
    """
    mine, theirs = symptoms(before).caught, symptoms(after).caught
    known = Counter(_signature(caught.error) for caught in mine)
    steps = min(len(before.record.steps), len(after.record.steps))
    calls = min(len(before.record.backwards), len(after.record.backwards))

    def within(caught: Caught) -> bool:
        return caught.steps_before < steps if steps else caught.backwards <= calls

    for caught in theirs:
        kind = _signature(caught.error)
        old = sum(_signature(each.error) == kind and within(each) for each in mine)
        new = sum(
            _signature(each.error) == kind and (within(each) or (kind not in known and not each.forward))
            for each in theirs
        )
        if new > old:
            return caught.error, old, new
    return None


def _signature(error: Trouble) -> tuple[str, str]:
    """What two errors of one kind share: not the numbers and shapes in the message."""
    words = "" if error.kind in GRAPH_ERRORS else re.sub(r"\d+", "0", error.message.partition("\n")[0][:80])
    return error.type if words else error.kind, words


def died(run: Run) -> bool:
    """Whether the program failed by itself: by an error, a status, a signal, or for lack of memory."""
    return run.outcome in (Outcome.RAISED, Outcome.KILLED, Outcome.MEMORY) or symptoms(run).error is not None


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
