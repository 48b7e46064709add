"""What there is to draw: for each entry, what graph nodes, memory and loss did over the steps of both programs."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from verify.measured.results import Entry, Outcome, Run
from verify.reports.figures import STEP, Figures, ended_well, figures


class Quantity(enum.Enum):
    """What a chart measures, which decides how its axis is written."""

    NODES = "graph nodes"
    BYTES = "bytes"
    LOSS = "loss"


@dataclass(frozen=True)
class Curve:
    """One program's series: ``values`` at ``places``, which count from 1.

    ``end`` is empty where the run ended well, else what it did after the last point (``raised``). ``name`` is
    ``original`` or ``rewritten``.
    """

    name: str
    places: tuple[int, ...]
    values: tuple[float, ...]
    end: str


@dataclass(frozen=True)
class Chart:
    """One quantity over the steps; ``title`` says what of it, ``axis`` what the places count."""

    quantity: Quantity
    title: str
    axis: str
    curves: tuple[Curve, ...]


def charts(entry: Entry) -> tuple[Chart, ...]:
    """Return the charts of ``entry`` that have anything to show: nodes, memory, loss, in this order."""
    runs = [run for run in (entry.original, entry.rewritten) if run is not None]
    pairs = list(zip(("original", "rewritten"), runs, (figures(run) for run in runs), strict=False))
    unit = STEP if any(numbers.unit == STEP for _, _, numbers in pairs) else "backward"
    axis = "optimizer step" if unit == STEP else "call of backward"
    where = "heap" if all(numbers.device == "cpu" for _, _, numbers in pairs) else "memory on the card"
    # Backwards cannot stand on an axis of steps: the run that made no step has no line there.
    timed = [(name, run, numbers) for name, run, numbers in pairs if numbers.unit == unit]
    nodes = tuple(_curve(name, run, numbers.live) for name, run, numbers in timed)
    memory = tuple(_curve(name, run, numbers.bytes) for name, run, numbers in timed)
    loss = tuple(_loss(name, run, numbers) for name, run, numbers in pairs)
    sites = {str(numbers.losses[0].site) for _, _, numbers in pairs if len(numbers.losses) > 1}
    of = f" of {min(sites)}" if sites else ""
    found = (
        Chart(Quantity.NODES, "live graph nodes", axis, nodes),
        Chart(Quantity.BYTES, where, axis, memory),
        Chart(Quantity.LOSS, f"loss{of}", "call of backward", loss),
    )
    # A single point is a figure, and stands in the table.
    return tuple(chart for chart in found if any(len(curve.values) > 1 for curve in chart.curves))


def _curve(name: str, run: Run, values: tuple[int, ...]) -> Curve:
    return Curve(name, tuple(range(1, len(values) + 1)), tuple(float(value) for value in values), _end(run))


def _loss(name: str, run: Run, numbers: Figures) -> Curve:
    values = numbers.losses[0].values if numbers.losses else ()
    points = [(place, value) for place, value in enumerate(values, 1) if value is not None]
    return Curve(name, tuple(place for place, _ in points), tuple(value for _, value in points), _end(run))


def _end(run: Run) -> str:
    return "" if ended_well(run) or run.outcome is Outcome.NOT_STARTED else run.outcome.value
