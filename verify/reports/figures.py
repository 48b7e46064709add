"""The figures behind a report: numbers of a run, and how numbers are written.

Whether a graph grows, and by how much, is :mod:`verify.judging.faults`' to say; here is what is only shown. Every form
of report takes its figures from here, so that the terminal, the page and the JSON agree.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from verify.judging.faults import caught_errors, slope_of, symptoms
from verify.measured.records import Backward, Forwards, Holder, Record, Step
from verify.measured.results import Outcome, Run
from verify.measured.values import Site

#: Of fewer times no spread can be told, and so none is told at all.
_TIMES = 4
STEP, BACKWARD = "step", "backward"


class LossSeries(NamedTuple):
    """The losses of one ``backward`` call site, call by call; None where an output had several elements or none."""

    site: Site | None
    values: tuple[float | None, ...]

    @property
    def first(self) -> float | None:
        """The first loss that is a number, nan and the infinities included."""
        return next((value for value in self.values if value is not None), None)

    @property
    def last(self) -> float | None:
        """The last loss that is a number, nan and the infinities included."""
        return next((value for value in reversed(self.values) if value is not None), None)


@dataclass(frozen=True)
class Figures:
    """What one run comes to.

    ``backwards`` were called, ``raised`` of them raised. ``steps`` counts optimizer steps by optimizer. ``losses`` has
    a series for each call site of ``backward``, that with most calls first. ``leak``, ``live``, ``slope`` (nodes a
    step), ``holders`` and ``wasted`` are those of :class:`verify.judging.faults.Symptoms`; ``live`` and ``bytes`` have
    an entry a ``unit``: an optimizer step, or a backward where nothing stepped. ``peak`` is the largest amount of
    memory (heap, or that of the card) in bytes and ``growth`` what each step adds, None where it was not measured;
    ``resident`` is the peak of the process tree. ``seconds`` is the median time of a step of the busiest optimizer, and
    ``spread`` the quartiles around it, None of both for fewer than four steps. ``caught`` counts exceptions that came
    out of a backward and did not end the run, by type.
    """

    backwards: int
    raised: int
    steps: dict[str, int]
    losses: tuple[LossSeries, ...]
    unit: str
    live: tuple[int, ...]
    leak: bool | None
    slope: float
    holders: tuple[Holder, ...]
    wasted: tuple[Forwards, ...]
    bytes: tuple[int, ...]
    peak: int | None
    growth: float | None
    resident: int
    seconds: float | None
    spread: tuple[float, float] | None
    device: str
    caught: dict[str, int]

    @property
    def stepped(self) -> int:
        """Optimizer steps of all optimizers together."""
        return sum(self.steps.values())


def figures(run: Run) -> Figures:
    """Return the figures of ``run``: those of the process that trains."""
    record = run.record
    seen = symptoms(run)
    points: Sequence[Step | Backward] = record.steps or record.backwards
    memory = tuple(point.bytes for point in points)
    times = _times(record)
    peaks = [step.peak for step in record.steps] + [backward.peak for backward in record.backwards]
    return Figures(
        backwards=len(record.backwards),
        raised=sum(backward.error is not None for backward in record.backwards),
        steps=_steps(record.steps),
        losses=_losses(record.backwards),
        unit=STEP if record.steps else BACKWARD,
        live=seen.live,
        leak=seen.leak,
        slope=seen.slope,
        holders=seen.holders,
        wasted=seen.wasted,
        bytes=memory if any(memory) else (),
        peak=max(peaks, default=0) or None,
        growth=slope_of(memory) if any(memory) and len(memory) >= 6 else None,
        resident=run.peak,
        seconds=statistics.median(times) if len(times) >= _TIMES else None,
        spread=_quartiles(times) if len(times) >= _TIMES else None,
        device=str(record.about.get("device") or "cpu"),
        caught=_caught(run),
    )


def ended_well(run: Run) -> bool:
    """Whether the run came to its end, or to that of its steps."""
    return run.outcome is Outcome.OK


def _steps(steps: Iterable[Step]) -> dict[str, int]:
    named = Counter((step.optimizer, step.name) for step in steps)
    names = Counter(name for _, name in named)
    return {
        name if names[name] == 1 else f"{name} {optimizer + 1}": count
        for (optimizer, name), count in sorted(named.items())
    }


def _losses(backwards: Iterable[Backward]) -> tuple[LossSeries, ...]:
    sites: dict[tuple[bool, Site | None], list[float | None]] = {}
    for backward in backwards:
        numbers = [loss.value for loss in backward.losses if loss.value is not None]
        sites.setdefault((backward.grad, backward.site), []).append(sum(numbers) if numbers else None)
    # A gradient taken with autograd.grad is seldom one of the loss.
    order = sorted(sites.items(), key=lambda entry: (entry[0][0], -len(entry[1])))
    return tuple(LossSeries(site, tuple(values)) for (_, site), values in order)


def _caught(run: Run) -> dict[str, int]:
    """Count what came out of a backward, by type, without the exception that went on and ended the run."""
    return dict(Counter(caught.error.type for caught in caught_errors(run.record)))


def _quartiles(times: Sequence[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(times, method="inclusive")
    return low, high


def _times(record: Record) -> list[float]:
    """How long each step took: of the busiest optimizer, or of backwards where nothing stepped."""
    if record.steps:
        busiest = Counter(step.optimizer for step in record.steps).most_common(1)[0][0]
        times = [step.time for step in record.steps if step.optimizer == busiest]
    else:
        times = [backward.time for backward in record.backwards if backward.error is None]
    return [later - earlier for earlier, later in pairwise(times)]


def seconds_text(seconds: float) -> str:
    """Return a time as people read it (``12.3 ms``)."""
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1000:.3g} ms" if seconds >= 0.001 else f"{seconds * 1e6:.3g} µs"


def number_text(value: float | None) -> str:
    """Return a loss with five digits, ``nan`` and ``inf`` as they are, a dash for None."""
    if value is None:
        return "–"
    return f"{value:.5g}" if math.isfinite(value) else str(value)
