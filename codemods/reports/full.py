"""Findings with their code, their trail and their remedy: what ``text`` is on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.checking.reported import Reported
from codemods.reports import Detail, Report
from codemods.reports._frames import frame
from codemods.reports._lines import Lines
from codemods.reports._paint import CYAN, DIM, Paint
from codemods.reports.text import finding_head, whole
from codemods.source.diffs import printable


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as text: without summary if quiet, with what is left after ``apply`` and notes if verbose."""
    lines, paint = Lines(report), Paint(colour)
    return whole(report, detail, paint, lambda one: told(report, lines, one, paint))


def told(report: Report, lines: Lines, reported: Reported, paint: Paint) -> Iterator[str]:
    """Return one finding as people read it best, and an empty line."""
    finding = reported.finding
    yield f"{finding_head(report, finding, paint, now=True)} {printable(finding.message)}"
    yield from frame(report, lines, finding, paint)
    if finding.remedy:
        yield f"   {paint(CYAN, 'help:')} {printable(finding.remedy)}"
    if reported.obstacle is not None:
        yield f"   {paint(DIM, 'note: apply leaves it: ' + reported.obstacle)}"
    yield ""
