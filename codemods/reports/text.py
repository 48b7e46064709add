"""Lines for people: a finding each, then what could not be done, then the summary.

On a terminal ``check`` shows ``full`` in its place, with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from codemods.checking.reported import Reported
from codemods.reports import Detail, Report
from codemods.reports._next import next_steps
from codemods.reports._paint import BOLD, DIM, PROMISED, RED, SEVERITY, YELLOW, Paint
from codemods.source.diffs import printable
from codemods.terms.counting import noun_text, plain_count_text
from codemods.terms.findings import Finding


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as text: without summary and notes if quiet, with trails and notes if verbose."""
    paint = Paint(colour)
    return whole(report, detail, paint, lambda one: _finding(report, one, detail, paint))


def whole(
    report: Report, detail: Detail, paint: Paint, told: Callable[[Reported], Iterable[str]], first: Iterable[str] = ()
) -> str:
    """Return a report that begins with the lines ``first``; ``told`` makes lines of each finding that stands."""
    lines = [
        *first,
        *_others(report, detail, paint, told),
        *(summary(report, paint) if detail >= Detail.NORMAL else ()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _others(report: Report, detail: Detail, paint: Paint, told: Callable[[Reported], Iterable[str]]) -> Iterator[str]:
    if report.applied and detail >= Detail.NORMAL:
        verb = "would fix" if report.dry_run else "fixed"
        for finding in report.fixed:
            yield finding_head(report, finding, paint) + f" {verb}: " + printable(finding.message)
            if detail >= Detail.VERBOSE:
                yield from _trail(report, finding, paint)
    if not report.applied or detail >= Detail.VERBOSE:
        for reported in report.findings:
            yield from told(reported)
    for one in report.unused:
        place = f"{report.told(one.path, one.comment.line)}:{one.comment.column + 1}:"
        yield f"{paint(BOLD, place)} unused ignore: {printable(one.reason)}"
    if detail >= Detail.VERBOSE:
        for mark in report.gone:
            yield paint(DIM, f"{mark.path}: {mark.rule}: gone from the baseline: {mark.statement}")
    for entry in report.skipped:
        yield paint(YELLOW, f"{entry.place}: skipped: {entry.reason}")
    for failure in report.failures:
        place = report.told(failure.path, failure.line)
        yield paint(RED, f"{place}: {failure.rule}: our edit was taken back: {failure.reason}")
    for dropped in report.dropped:
        place = report.told(dropped.path, dropped.line)
        yield paint(YELLOW, f"{place}: {dropped.rule}: not made, {dropped.verdict}: {dropped.why}")
    for entry in report.unwritten:
        yield paint(RED, f"{entry.place}: not saved: {entry.reason}")
    if detail >= Detail.VERBOSE:
        for note in report.notes:
            yield paint(DIM, f"note: {note}")


def _finding(report: Report, reported: Reported, detail: Detail, paint: Paint) -> Iterator[str]:
    finding = reported.finding
    yield finding_head(report, finding, paint, now=True) + " " + printable(finding.message)
    if detail >= Detail.VERBOSE:
        yield from _trail(report, finding, paint, now=True)
        if finding.remedy:
            yield f"    remedy: {printable(finding.remedy)}"
        if reported.obstacle is not None:
            yield f"    apply leaves it: {printable(reported.obstacle)}"


def finding_head(report: Report, finding: Finding, paint: Paint, *, now: bool = False) -> str:
    """Return place, rule and promise of a finding."""
    line = report.place(finding.path, finding.span.line, now=now)
    place = f"{finding.path}:{line}:{finding.span.column + 1}:"
    promise = paint(PROMISED[finding.promise], f"[{finding.promise.value}]")
    return f"{paint(BOLD, place)} {paint(SEVERITY[finding.promise], finding.rule)} {promise}"


def _trail(report: Report, finding: Finding, paint: Paint, *, now: bool = False) -> Iterator[str]:
    for step in finding.trail:
        place = report.place(step.path, step.line, now=now)
        yield "    " + paint(DIM, f"{step.path}:{place}: {step.note}")


def summary(report: Report, paint: Paint) -> Iterator[str]:
    """Return the end of a report: the counts of files and findings, a line a rule, and what to type next."""
    parts = [plain_count_text(report.files, "file")]
    if report.applied:
        verb = "would be fixed" if report.dry_run else "fixed"
        files = plain_count_text(len(report.changed), "file")
        parts.append(f"{plain_count_text(len(report.fixed), 'finding')} {verb} in {files}")
        parts.append(f"{len(report.findings)} left")
    else:
        parts.append(plain_count_text(len(report.findings), "finding"))
        parts.append(f"{report.fixable} fixable")
    others = (
        (sum(one.finding.likely is not None for one in report.findings), "likely (apply --verify shows which hold)"),
        (report.elsewhere, "on lines that did not change"),
        (report.frozen, "in the baseline"),
        (len(report.gone), "gone from it (--update-baseline drops them)"),
        (len(report.unused), noun_text(len(report.unused), "unused ignore")),
        (len(report.postponed), "for the next run"),
        (len(report.skipped), "skipped"),
        (len(report.failures), "edit taken back" if len(report.failures) == 1 else "edits taken back"),
        (len(report.dropped), "not made"),
        (len(report.unwritten), "not saved"),
    )
    yield ", ".join([*parts, *(f"{count} {what}" for count, what in others if count)])
    yield from _table(
        report.fixed_by_rule, (" would be fixed" if report.dry_run else " fixed") if report.applied else ""
    )
    yield from _table(report.by_rule, " left" if report.applied else "")
    yield from next_steps(report, paint)


def _table(counts: Mapping[str, int], suffix: str) -> Iterator[str]:
    width = max(map(len, counts), default=0)
    for rule, count in counts.items():
        yield f"  {rule:<{width}}  {count}{suffix}"
