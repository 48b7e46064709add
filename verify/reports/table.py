"""The table of an entry: a row a question, a column a run, in words; how it is drawn is the forms' to choose."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import NamedTuple

from codemods.terms.counting import bytes_text, count_text
from verify.measured.records import BY_SHAPES
from verify.measured.results import Comparison, Difference, Entry, Outcome, Run
from verify.reports.figures import STEP, Figures, ended_well, figures, number_text, seconds_text

#: At most so many call sites of ``backward`` and of wasted forwards are told in a cell.
SITES = 3


class Mood(enum.Enum):
    """What a cell means to the reader."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    #: Nothing to see: not measured, or none of it.
    FAINT = "faint"


class Cell(NamedTuple):
    """A text of one or more lines and what it means."""

    text: str
    mood: Mood = Mood.PLAIN


class Row(NamedTuple):
    """A question and the answer of each column."""

    label: str
    cells: tuple[Cell, ...]


class Table(NamedTuple):
    """The names of the columns, and the rows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


_NONE = Cell("–", Mood.FAINT)


def table(entry: Entry) -> Table:
    """Return the table of ``entry``: the original, the original again where that differed, the rewritten program.

    Rows that have nothing to say in any column are left out.
    """
    held: dict[str, Comparison | None] = {"rewritten": entry.comparison}
    runs = [("original", entry.original)]
    if entry.again is not None and _differs(entry, entry.again):
        runs.append(("original again", entry.again))
        held["original again"] = entry.repeatable
    elif entry.again is not None:
        held["original"] = entry.repeatable
    if entry.rewritten is not None:
        runs.append(("rewritten", entry.rewritten))
    made = [(name, run, figures(run)) for name, run in runs]
    rows = [Row(label, tuple(cell(run, numbers) for _, run, numbers in made)) for label, cell in _ROWS]
    rows.append(Row("same as the original", tuple(_agreement(name, held.get(name)) for name, _, _ in made)))
    rows.append(Row("first difference", tuple(_first(held.get(name)) for name, _, _ in made)))
    return Table(
        tuple(name for name, _, _ in made), tuple(row for row in rows if any(cell != _NONE for cell in row.cells))
    )


def _differs(entry: Entry, again: Run) -> bool:
    if entry.deterministic is None:
        return again.outcome is not entry.original.outcome
    return not entry.deterministic


def _outcome(run: Run, numbers: Figures) -> Cell:
    trouble, site = run.error, run.failed.error_site
    caught = "".join(f"\ncaught {count:,} × {name}" for name, count in numbers.caught.items())
    if ended_well(run):
        return Cell(f"ok, {_end(run, numbers)}{caught}", Mood.BAD if caught else Mood.GOOD)
    text = run.outcome.value
    if run.outcome is Outcome.RAISED and trouble is not None:
        text = f"raised {trouble.type}" + (f"\n{site} in {site.function}" if site else "")
    elif run.outcome is Outcome.TIMEOUT:
        text += f" after {seconds_text(run.wall)}"
    elif run.outcome is Outcome.MEMORY and site:
        text += f"\n{site} in {site.function}"
    elif run.outcome is Outcome.KILLED and run.status is not None:
        text += f", status {run.status}"
    return Cell(text + caught, Mood.BAD)


def _end(run: Run, numbers: Figures) -> str:
    match run.record.end:
        case "steps":
            return f"stopped after {count_text(max(numbers.steps.values(), default=0), 'step')}"
        case "backwards":
            return f"stopped after {count_text(numbers.backwards, 'backward')}"
        case "exit" if run.record.status:
            return f"exit status {run.record.status}"
        case _:
            return "ran to its end"


def _backwards(run: Run, numbers: Figures) -> Cell:
    if not numbers.backwards:
        return Cell("none", Mood.FAINT)
    if numbers.raised:
        return Cell(f"{numbers.backwards:,}, {numbers.raised:,} raised", Mood.BAD)
    return Cell(f"{numbers.backwards:,}")


def _steps(run: Run, numbers: Figures) -> Cell:
    if not numbers.steps:
        return Cell("none", Mood.FAINT)
    return Cell("\n".join(f"{count:,} {name}" for name, count in numbers.steps.items()))


def _losses(run: Run, numbers: Figures) -> Cell:
    told = [series for series in numbers.losses if series.first is not None]
    lines = []
    for series in told[:SITES]:
        first, last = number_text(series.first), number_text(series.last)
        where = f"{series.site}: " if len(told) > 1 and series.site else ""
        lines.append(where + (f"{first} → {last}" if len(series.values) > 1 else first))
    if len(told) > SITES:
        lines.append(f"and {len(told) - SITES} more sites")
    return Cell("\n".join(lines)) if lines else _NONE


def _live(run: Run, numbers: Figures) -> Cell:
    live = numbers.live
    if not live:
        return _NONE
    if numbers.leak:
        held = "".join(f"\nheld by {holder.name} in {holder.function}" for holder in numbers.holders[:SITES])
        unit = "step" if numbers.unit == STEP else "backward"
        return Cell(f"growing, {numbers.slope:+,.0f} a {unit}\n{live[0]:,} → {live[-1]:,}{held}", Mood.BAD)
    low, high = min(live), max(live)
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    if numbers.leak is None:
        return Cell(f"{span}, too few steps to tell a trend", Mood.FAINT)
    return Cell(f"flat, {span}", Mood.GOOD)


def _wasted(run: Run, numbers: Figures) -> Cell:
    if not run.record.forwards:
        return _NONE
    if not numbers.wasted:
        return Cell("none", Mood.GOOD)
    lines = []
    for site in numbers.wasted[:SITES]:
        where = f"{site.site}: " if site.site else ""
        lines.append(f"{where}{count_text(site.calls, 'call')}, none used, {site.peak:,} alive at once")
    if len(numbers.wasted) > SITES:
        lines.append(f"and {len(numbers.wasted) - SITES} more sites")
    return Cell("\n".join(lines), Mood.BAD)


#: What the bytes are of, by the device of a run.
_WHERE = {"cpu": "heap", BY_SHAPES: "by shapes, estimated"}


def _peak(run: Run, numbers: Figures) -> Cell:
    where = _WHERE.get(numbers.device, "on the card")
    parts = [f"{bytes_text(numbers.peak)} {where}"] if numbers.peak else []
    parts += [f"{bytes_text(numbers.resident)} resident"] if numbers.resident else []
    return Cell("\n".join(parts)) if parts else _NONE


def _growth(run: Run, numbers: Figures) -> Cell:
    return _NONE if numbers.growth is None else Cell(bytes_text(numbers.growth, signed=True))


def _seconds(run: Run, numbers: Figures) -> Cell:
    if numbers.seconds is None or numbers.spread is None:
        return _NONE
    low, high = map(seconds_text, numbers.spread)
    return Cell(f"{seconds_text(numbers.seconds)} ({low} to {high})")


def _agreement(name: str, comparison: Comparison | None) -> Cell:
    if comparison is None or not (comparison.steps or comparison.backwards or comparison.first):
        return _NONE
    same = comparison.difference is Difference.IDENTICAL
    if name == "rewritten":
        return Cell(agreement(comparison), Mood.GOOD if same else Mood.PLAIN)
    if same:
        return Cell("deterministic: run twice, bit for bit the same", Mood.GOOD)
    return Cell(f"not deterministic: {_gaps(comparison) or 'run twice, it differs'}", Mood.BAD)


def _first(comparison: Comparison | None) -> Cell:
    return Cell(comparison.first) if comparison is not None and comparison.first else _NONE


def agreement(comparison: Comparison) -> str:
    """Return how far two runs agree, with the figures: ``bit for bit the same over 20 steps``."""
    over = count_text(comparison.steps, "step")
    if not comparison.steps:
        over = count_text(comparison.backwards, "backward")
    if comparison.difference is Difference.IDENTICAL:
        return f"bit for bit the same over {over}"
    word = "close" if comparison.difference is Difference.CLOSE else "different"
    text = f"{word} over {over}" + (f": {gaps}" if (gaps := _gaps(comparison)) else "")
    return text + (" (other random numbers)" if comparison.random_moved else "")


def _gaps(comparison: Comparison) -> str:
    """Return the largest differences: ``losses up to 0.31 apart, parameters up to 0.084 apart``; empty for none."""
    pairs = (("losses", comparison.losses), ("parameters", comparison.parameters))
    return ", ".join(f"{name} {_gap(gap)}" for name, gap in pairs if gap is not None)


def _gap(gap: float) -> str:
    if math.isnan(gap):
        return "finite on one side only"
    return f"up to {gap:.2g} apart" if gap else "equal"


_ROWS: tuple[tuple[str, Callable[[Run, Figures], Cell]], ...] = (
    ("outcome", _outcome),
    ("calls of backward", _backwards),
    ("optimizer steps", _steps),
    ("loss, first → last", _losses),
    ("live graph nodes", _live),
    ("wasted forwards", _wasted),
    ("memory, peak", _peak),
    ("memory, each step", _growth),
    ("time a step", _seconds),
)
