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
        "findings": [finding_object(reported.finding, reported.fixable) for reported in report.findings],
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
        content["fixed"] = [finding_object(finding, True) for finding in report.fixed]
        content["changed"] = list(report.changed)
        content["failures"] = [failure._asdict() for failure in report.failures]
        content["unwritten"] = _places(report.unwritten)
        content["dropped"] = [dropped._asdict() for dropped in report.dropped]
        content["postponed"] = [finding_object(finding, True) for finding in report.postponed]
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
        "message": finding.message,
        "remedy": finding.remedy,
        "trail": [step._asdict() for step in finding.trail],
        "partners": [{"rule": rule, "path": path, "line": at} for rule, path, at in finding.partners],
    }


def _places(entries: Iterable[Skipped]) -> list[dict[str, Any]]:
    return [entry._asdict() for entry in entries]
