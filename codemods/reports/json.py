"""One JSON object for programs. Its shape is a promise: versioned, and it only grows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from codemods.reports import Detail, Report
from codemods.terms.findings import Finding, ShownLine, Skipped

if TYPE_CHECKING:
    from codemods.checking.ignores import UnusedIgnore

VERSION = 1

#: Where a line of a file, by its path, is for people.
Place = Callable[[str, int], ShownLine]


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as JSON; ``detail`` and ``colour`` change nothing."""
    content: dict[str, Any] = {
        "version": VERSION,
        "findings": [placed_object(report.place_now, one.finding, one.fixable) for one in report.findings],
        "skipped": places(report.skipped),
        "summary": {
            "files": report.files,
            "findings": len(report.findings),
            "fixable": report.fixable,
            "skipped": len(report.skipped),
            "by_rule": report.by_rule,
        },
        "notes": list(report.notes),
    }
    if report.elsewhere:
        content["summary"]["elsewhere"] = report.elsewhere
    if report.frozen or report.gone:
        content["summary"] |= {"in_baseline": report.frozen, "gone_from_baseline": len(report.gone)}
        content["gone_from_baseline"] = [mark._asdict() for mark in report.gone]
    if report.unused:
        content["unused_ignores"] = [_placed(report.place, _unused(one)) for one in report.unused]
    if report.applied:
        content["fixed"] = [placed_object(report.place, finding, True) for finding in report.fixed]
        content["changed"] = list(report.changed)
        content["failures"] = [_placed(report.place, failure._asdict()) for failure in report.failures]
        content["unwritten"] = places(report.unwritten)
        content["dropped"] = [_placed(report.place, dropped._asdict()) for dropped in report.dropped]
        content["postponed"] = [placed_object(report.place, finding, True) for finding in report.postponed]
        # For reading; for `git apply` there is the diff itself, in the encodings of the files.
        content["diff"] = report.diff.decode("utf-8", "replace")
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
        "likely": finding.likely and finding.likely.value,
        "message": finding.message,
        "remedy": finding.remedy,
        "trail": [step._asdict() for step in finding.trail],
        "partners": [{"rule": rule, "path": path, "line": at} for rule, path, at in finding.partners],
    }


def _unused(one: UnusedIgnore) -> dict[str, Any]:
    return {
        "path": one.path,
        "line": one.comment.line,
        "column": one.comment.column + 1,
        "rules": None if one.rules is None else list(one.rules),
        "reason": one.reason,
    }


def places(entries: Iterable[Skipped]) -> list[dict[str, Any]]:
    """Return files that could not be read, or saved."""
    return [{key: value for key, value in entry._asdict().items() if value is not None} for entry in entries]


def placed_object(place: Place, finding: Finding, fixable: bool) -> dict[str, Any]:
    """Return a finding as :func:`finding_object` does, in a notebook with ``cell`` and the lines in that cell."""
    shown = _placed(place, finding_object(finding, fixable))
    for key in ("trail", "partners"):
        shown[key] = [_placed(place, step) for step in shown[key]]
    return shown


def _placed(place: Place, entry: dict[str, Any]) -> dict[str, Any]:
    at = place(entry["path"], entry["line"])
    if at.cell is None:
        return entry
    moved = {**entry, "line": at.line, "cell": at.cell}
    if "end_line" in entry:
        moved["end_line"] = place(entry["path"], entry["end_line"]).line
    return moved
