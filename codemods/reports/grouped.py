"""Findings by file: its name once, then a line for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from codemods.reports import Detail, Report
from codemods.reports._paint import BOLD, PROMISED, SEVERITY, Paint
from codemods.reports.text import whole
from codemods.source.diffs import printable


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as text, as ``text`` does, but for the findings, which stand below the name of their file."""
    paint = Paint(colour)
    groups = _groups(report, paint) if not report.applied or detail >= Detail.VERBOSE else ()
    return whole(report, detail, paint, lambda one: (), groups)


def _groups(report: Report, paint: Paint) -> Iterator[str]:
    for path, group in groupby(report.findings, key=lambda one: one.finding.path):
        findings = [one.finding for one in group]
        places = [
            f"{report.place(path, found.span.line, now=True)}:{found.span.column + 1}".replace("cell ", "")
            for found in findings
        ]
        width = max(map(len, places))
        yield paint(BOLD, f"{path}:")
        for place, found in zip(places, findings, strict=True):
            rule = paint(SEVERITY[found.promise], found.rule)
            promise = paint(PROMISED[found.promise], f"[{found.promise.value}]")
            yield f"  {place:<{width}}  {rule} {promise} {printable(found.message)}"
        yield ""
