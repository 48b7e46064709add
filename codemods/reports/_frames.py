"""A finding with its code: the lines that matter in one frame, each with a word on what happens there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from codemods.reports import Report
from codemods.reports._lines import Lines
from codemods.reports._paint import BLUE, DIM, SEVERITY, Paint
from codemods.source.diffs import printable
from codemods.terms.findings import Finding, TrailStep

#: Lines of context on either side of the finding.
CONTEXT = 2
#: Of a block so many lines are underlined, and of a line so many characters shown.
TALLEST = 6
WIDEST = 160


def frame(report: Report, lines: Lines, finding: Finding, paint: Paint) -> Iterator[str]:
    """Return the code of ``finding`` and of its trail, its own file first; none where the code is not at hand."""
    by_path: dict[str, list[TrailStep]] = defaultdict(list, {finding.path: []})
    for step in finding.trail:
        by_path[step.path].append(step)
    shown = {path: _Frame(report, lines, path, finding, steps) for path, steps in by_path.items()}
    shown = {path: one for path, one in shown.items() if one.rows}
    width = max((one.width for one in shown.values()), default=0)
    for path, one in shown.items():
        yield paint(BLUE, " " * width + " |" if path == finding.path else " " * width + " ::: " + one.place)
        yield from one.drawn(width, paint)
    if shown:
        yield paint(BLUE, " " * width + " |")


class _Frame:
    """The lines of one file that matter to a finding: ``rows`` are their numbers, from 1."""

    def __init__(self, report: Report, lines: Lines, path: str, finding: Finding, steps: Sequence[TrailStep]) -> None:
        self._text = lines.shown(path, now=True)
        self._finding = finding if path == finding.path else None
        self._promise = finding.promise
        self._numbers = lines.number(path, now=True)
        self._notes = _notes(steps)
        first, last = _extent(finding)
        own = range(first - CONTEXT, last + CONTEXT + 1) if self._finding else range(0)
        # Of a notebook the lines of the cell: what is between two of them stands in neither.
        cell = lines.cell(path, first, now=True) if self._finding else None
        wanted = {*(own if cell is None else range(max(own.start, cell.start), min(own.stop, cell.stop))), *self._notes}
        self.rows = [number for number in sorted(wanted) if 0 < number <= len(self._text)]
        self.place = report.told(path, min(self._notes, default=0) or 1, now=True)

    @property
    def width(self) -> int:
        """How many characters the numbers need."""
        return max(len(str(self._numbers(row))) for row in self.rows)

    def drawn(self, width: int, paint: Paint) -> Iterator[str]:
        before = self.rows[0] - 1
        for row in self.rows:
            if row > before + 1:
                yield paint(BLUE, "...")
            before = row
            text = printable(self._text[row - 1].rstrip("\r\n").expandtabs(4))
            cut = text if len(text) <= WIDEST else text[:WIDEST] + "…"
            yield paint(BLUE, f"{self._numbers(row):>{width}} |") + f" {cut}".rstrip()
            yield from self._marks(row, text, width, paint)

    def _marks(self, row: int, text: str, width: int, paint: Paint) -> Iterator[str]:
        margin = paint(BLUE, " " * width + " |")
        note = printable("; ".join(self._notes.get(row, ())))
        first, last = _extent(self._finding) if self._finding else (1, 0)
        if self._finding and first <= row <= last:
            start, end = self._columns(row, text)
            mark = f"{'^' * max(1, end - start)} {note}".rstrip()
            yield f"{margin} {' ' * start}{paint(SEVERITY[self._promise], mark)}"
        elif note:
            start = len(text) - len(text.lstrip())
            mark = f"{'-' * max(1, min(len(text.rstrip()), WIDEST) - start)} {note}"
            yield f"{margin} {' ' * start}{paint(DIM, mark)}"

    def _columns(self, row: int, text: str) -> tuple[int, int]:
        """Where to underline in ``row``, of which ``text`` is what is shown: the span, without what indents it."""
        assert self._finding is not None
        span, line = self._finding.span, self._text[row - 1]

        def shown(column: int) -> int:
            return len(printable(line[:column].expandtabs(4)))

        start = shown(span.column) if row == span.line else len(text) - len(text.lstrip())
        end = shown(span.end_column) if row == span.end_line else len(text.rstrip())
        return min(start, WIDEST), min(end, WIDEST)


def _extent(finding: Finding) -> tuple[int, int]:
    """The lines of a finding that are underlined, the first of them alone where there are many."""
    first, last = finding.span.line, max(finding.span.line, finding.span.end_line)
    return first, last if last - first < TALLEST else first


def _notes(steps: Sequence[TrailStep]) -> Mapping[int, list[str]]:
    notes: dict[int, list[str]] = defaultdict(list)
    for step in steps:
        if step.note not in notes[step.line]:
            notes[step.line].append(step.note)
    return notes
