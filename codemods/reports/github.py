"""Annotations: lines that a GitHub runner takes for commands and shows beside the code of a pull request.

Their form and escaping: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions and
``command.ts`` of actions/toolkit. A step shows ten errors, ten warnings and ten notices; its log has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from codemods.reports import Detail, Report
from codemods.reports._listed import LEVELS, found, from_root, in_cell, root
from codemods.terms.findings import Finding, Skipped

# The log shows a step's commands in this order; of each kind the first ten become annotations.
_KINDS = {promise: "notice" if level == "note" else level for promise, level in LEVELS.items()}
_SHOWN = 10


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a command a finding, what matters most first; without the notices on skipped files if quiet."""
    return "".join(f"{line}\n" for line in _lines(report, detail))


def _lines(report: Report, detail: Detail) -> Iterator[str]:
    listed = sorted((one.finding for one in found(report)), key=lambda finding: list(_KINDS).index(finding.promise))
    for finding in listed:
        yield _annotation(report, finding)
    for entry in report.unwritten:
        yield _entry("error", "not saved", entry)
    for failure in report.failures:
        at = report.place(failure.path, failure.line)
        entry = Skipped(failure.path, at.line, failure.reason, at.cell)
        yield _entry("warning", f"{failure.rule}: our edit was taken back", entry)
    for dropped in report.dropped:
        at = report.place(dropped.path, dropped.line)
        entry = Skipped(dropped.path, at.line, dropped.why, at.cell)
        yield _entry("notice", f"{dropped.rule}: not made, {dropped.verdict}", entry)
    if detail >= Detail.NORMAL:
        for entry in report.skipped:
            yield _entry("notice", "skipped", entry)
        kinds = [_KINDS[finding.promise] for finding in listed]
        if any(kinds.count(kind) > _SHOWN for kind in set(kinds)):
            # Not a command: it stands in the log, where the rest can be found.
            yield f"codemod: {len(listed)} findings; only {_SHOWN} errors, warnings and notices each become annotations"


def _annotation(report: Report, finding: Finding) -> str:
    line, column, end_line, end_column = finding.span
    told = finding.message + (f"\nRemedy: {finding.remedy}" if finding.remedy else "")
    title = f"{finding.rule} ({finding.promise.value})"
    if cell := in_cell(report.place(finding.path, line, now=True)):
        return _command(_KINDS[finding.promise], cell.capitalize() + told, title, finding.path, 0)
    # Columns may only be given where the first and the last line are one.
    columns = {"col": column + 1, "endColumn": end_column + 1} if line == end_line else {}
    return _command(_KINDS[finding.promise], told, title, finding.path, line, endLine=end_line, **columns)


def _entry(kind: str, what: str, entry: Skipped) -> str:
    line = entry.line if entry.cell is None else 0
    return _command(kind, f"{in_cell(entry).capitalize()}{what}: {entry.reason}", "codemod", entry.path, line)


def _command(kind: str, message: str, title: str, path: str, line: int, **more: int) -> str:
    named = {"file": from_root(path, root()) or path}
    if line:
        named |= {"line": str(line), **{name: str(value) for name, value in more.items()}}
    named["title"] = title
    properties = ",".join(f"{name}={_property(value)}" for name, value in named.items())
    return f"::{kind} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
