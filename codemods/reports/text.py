"""Lines for people: a finding each, then what could not be done, then the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codemods.checking.reported import Reported
from codemods.reports import Detail, Report
from codemods.source.diffs import printable
from codemods.terms.counting import plain_count_text
from codemods.terms.findings import Finding

_BOLD, _RED, _YELLOW, _DIM, _RESET = "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as text: without summary and notes if quiet, with trails and notes if verbose."""
    lines = list(_lines(report, detail, _Paint(colour)))
    return "".join(f"{line}\n" for line in lines)


class _Paint:
    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, style: str, text: str) -> str:
        text = printable(text)
        return f"{style}{text}{_RESET}" if self._colour else text


def _lines(report: Report, detail: Detail, paint: _Paint) -> Iterator[str]:
    if report.applied and detail >= Detail.NORMAL:
        verb = "would fix" if report.dry_run else "fixed"
        for finding in report.fixed:
            yield _head(report, finding, paint) + f" {verb}: " + printable(finding.message)
            if detail >= Detail.VERBOSE:
                yield from _trail(report, finding, paint)
    if not report.applied or detail >= Detail.VERBOSE:
        for reported in report.findings:
            yield from _finding(report, reported, detail, paint)
    for one in report.unused:
        place = f"{report.told(one.path, one.comment.line)}:{one.comment.column + 1}:"
        yield f"{paint(_BOLD, place)} unused ignore: {printable(one.reason)}"
    if detail >= Detail.VERBOSE:
        for mark in report.gone:
            yield paint(_DIM, f"{mark.path}: {mark.rule}: gone from the baseline: {mark.statement}")
    for entry in report.skipped:
        yield paint(_YELLOW, f"{entry.place}: skipped: {entry.reason}")
    for failure in report.failures:
        place = report.told(failure.path, failure.line)
        yield paint(_RED, f"{place}: {failure.rule}: our edit was taken back: {failure.reason}")
    for dropped in report.dropped:
        place = report.told(dropped.path, dropped.line)
        yield paint(_YELLOW, f"{place}: {dropped.rule}: not made, {dropped.verdict}: {dropped.why}")
    for entry in report.unwritten:
        yield paint(_RED, f"{entry.place}: not saved: {entry.reason}")
    if detail >= Detail.VERBOSE:
        for note in report.notes:
            yield paint(_DIM, f"note: {note}")
    if detail >= Detail.NORMAL:
        yield from _summary(report)


def _finding(report: Report, reported: Reported, detail: Detail, paint: _Paint) -> Iterator[str]:
    finding = reported.finding
    yield _head(report, finding, paint, now=True) + " " + printable(finding.message)
    if detail >= Detail.VERBOSE:
        yield from _trail(report, finding, paint, now=True)
        if finding.remedy:
            yield f"    remedy: {printable(finding.remedy)}"
        if reported.obstacle is not None:
            yield f"    apply leaves it: {printable(reported.obstacle)}"


def _head(report: Report, finding: Finding, paint: _Paint, *, now: bool = False) -> str:
    line = report.place(finding.path, finding.span.line, now=now)
    place = f"{finding.path}:{line}:{finding.span.column + 1}:"
    return f"{paint(_BOLD, place)} {finding.rule} [{finding.promise.value}]"


def _trail(report: Report, finding: Finding, paint: _Paint, *, now: bool = False) -> Iterator[str]:
    for step in finding.trail:
        place = report.place(step.path, step.line, now=now)
        yield "    " + paint(_DIM, f"{step.path}:{place}: {step.note}")


def _summary(report: Report) -> Iterator[str]:
    parts = [plain_count_text(report.files, "file")]
    if report.applied:
        verb = "would be fixed" if report.dry_run else "fixed"
        files = plain_count_text(len(report.changed), "file")
        parts.append(f"{plain_count_text(len(report.fixed), 'finding')} {verb} in {files}")
        parts.append(f"{len(report.findings)} left")
    else:
        parts.append(plain_count_text(len(report.findings), "finding"))
        parts.append(f"{report.fixable} fixable")
    likely = sum(one.finding.likely is not None for one in report.findings)
    if likely:
        parts.append(f"{likely} likely (apply --verify shows which hold)")
    if report.elsewhere:
        parts.append(f"{report.elsewhere} on lines that did not change")
    if report.frozen:
        parts.append(f"{report.frozen} in the baseline")
    if report.gone:
        parts.append(f"{len(report.gone)} gone from it (--update-baseline drops them)")
    if report.unused:
        parts.append(plain_count_text(len(report.unused), "unused ignore"))
    if report.postponed:
        parts.append(f"{len(report.postponed)} for the next run")
    if report.skipped:
        parts.append(f"{len(report.skipped)} skipped")
    if report.failures:
        parts.append(f"{plain_count_text(len(report.failures), 'edit')} taken back")
    if report.dropped:
        parts.append(f"{len(report.dropped)} not made")
    if report.unwritten:
        parts.append(f"{len(report.unwritten)} not saved")
    yield ", ".join(parts)
    yield from _table(report.fixed_by_rule, " fixed" if report.applied else "")
    yield from _table(report.by_rule, " left" if report.applied else "")


def _table(counts: Mapping[str, int], suffix: str) -> Iterator[str]:
    width = max(map(len, counts), default=0)
    for rule, count in counts.items():
        yield f"  {rule:<{width}}  {count}{suffix}"
