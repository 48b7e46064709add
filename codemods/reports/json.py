"""One JSON object for programs. Its shape is a promise: versioned, and it only grows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from codemods.reports import Detail, Report
from codemods.terms.findings import Finding, ShownLine, Skipped

if TYPE_CHECKING:
    from codemods.checking.ignores import UnusedIgnore

VERSION = 1


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as JSON; ``detail`` and ``colour`` change nothing."""
    content: dict[str, Any] = {
        "version": VERSION,
        "findings": [placed_object(Now(report), reported.finding, reported.fixable) for reported in report.findings],
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
    if report.elsewhere:
        content["summary"]["elsewhere"] = report.elsewhere
    if report.frozen or report.gone:
        content["summary"] |= {"in_baseline": report.frozen, "gone_from_baseline": len(report.gone)}
        content["gone_from_baseline"] = [mark._asdict() for mark in report.gone]
    if report.unused:
        content["unused_ignores"] = [_placed(report, _unused(one)) for one in report.unused]
    if report.applied:
        content["fixed"] = [placed_object(report, finding, True) for finding in report.fixed]
        content["changed"] = list(report.changed)
        content["failures"] = [_placed(report, failure._asdict()) for failure in report.failures]
        content["unwritten"] = _places(report.unwritten)
        content["dropped"] = [_placed(report, dropped._asdict()) for dropped in report.dropped]
        content["postponed"] = [placed_object(report, finding, True) for finding in report.postponed]
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


def _places(entries: Iterable[Skipped]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry._asdict().items() if value is not None} for entry in entries]


class Placing(Protocol):
    """What knows where lines are for people: a report, or what ``verify`` found."""

    def place(self, path: str, line: int) -> ShownLine:
        """Where ``line`` of the file ``path`` is."""


def placed_object(places: Placing, finding: Finding, fixable: bool) -> dict[str, Any]:
    """Return a finding as :func:`finding_object` does, in a notebook with ``cell`` and the lines in that cell."""
    shown = _placed(places, finding_object(finding, fixable))
    for key in ("trail", "partners"):
        shown[key] = [_placed(places, step) for step in shown[key]]
    return shown


def _placed(places: Placing, entry: dict[str, Any]) -> dict[str, Any]:
    place = places.place(entry["path"], entry["line"])
    if place.cell is None:
        return entry
    moved = {**entry, "line": place.line, "cell": place.cell}
    if "end_line" in entry:
        moved["end_line"] = places.place(entry["path"], entry["end_line"]).line
    return moved


class Now(NamedTuple):
    """The places in the files as they are now."""

    report: Report

    def place(self, path: str, line: int) -> ShownLine:
        return self.report.place(path, line, now=True)
