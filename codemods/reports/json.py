"""One JSON object for programs. Its shape is a promise: versioned, and it only grows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from codemods.findings import Finding, Skipped
from codemods.reports import Detail, Report

VERSION = 1


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as JSON; ``detail`` and ``colour`` change nothing."""
    content: dict[str, Any] = {
        "version": VERSION,
        "findings": [
            placed_object(report, reported.finding, reported.fixable, now=True) for reported in report.findings
        ],
        "skipped": _places(report.skipped),
        "summary": {
            "files": report.files,
            "findings": len(report.findings),
            "fixable": report.fixable,
            "skipped": len(report.skipped),
            "by_rule": report.by_rule,
        },
        "notes": list(report.notes),
    }
    if report.applied:
        content["fixed"] = [placed_object(report, finding, True) for finding in report.fixed]
        content["changed"] = list(report.changed)
        content["failures"] = [_placed(report, failure._asdict()) for failure in report.failures]
        content["unwritten"] = _places(report.unwritten)
        content["dropped"] = [_placed(report, dropped._asdict()) for dropped in report.dropped]
        content["summary"] |= {
            "fixed": len(report.fixed),
            "fixed_by_rule": report.fixed_by_rule,
            "changed": len(report.changed),
            "failures": len(report.failures),
            "unwritten": len(report.unwritten),
        }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def finding_object(finding: Finding, fixable: bool) -> dict[str, Any]:
    """Return a finding as every JSON of ours shows it; ``fixable``: whether ``apply`` would change it."""
    line, column, end_line, end_column = finding.span
    return {
        "rule": finding.rule,
        "path": finding.path,
        "line": line,
        "column": column + 1,
        "end_line": end_line,
        "end_column": end_column + 1,
        "promise": finding.promise.value,
        "fixable": fixable,
        "message": finding.message,
        "remedy": finding.remedy,
        "trail": [step._asdict() for step in finding.trail],
        "partners": [{"rule": rule, "path": path, "line": at} for rule, path, at in finding.partners],
    }


def _places(entries: Iterable[Skipped]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry._asdict().items() if value is not None} for entry in entries]


def placed_object(report: Report, finding: Finding, fixable: bool, *, now: bool = False) -> dict[str, Any]:
    """Return a finding as :func:`finding_object` does, in a notebook with ``cell`` and the lines in that cell."""
    shown = _placed(report, finding_object(finding, fixable), now=now)
    for key in ("trail", "partners"):
        shown[key] = [_placed(report, step, now=now) for step in shown[key]]
    return shown


def _placed(report: Report, entry: dict[str, Any], *, now: bool = False) -> dict[str, Any]:
    place = report.place(entry["path"], entry["line"], now=now)
    if place.cell is None:
        return entry
    moved = {**entry, "line": place.line, "cell": place.cell}
    if "end_line" in entry:
        moved["end_line"] = report.place(entry["path"], entry["end_line"], now=now).line
    return moved
