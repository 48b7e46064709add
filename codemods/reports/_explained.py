"""A finding explained where it stands: why here, what its rewrite changes and promises, and where to read on."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codemods.checking.check import check
from codemods.checking.reported import Reported
from codemods.manual.explain import CHECKS, PROMISES, explain, page, page_file, reason, source_of_fact
from codemods.reports import Report
from codemods.reports._frames import frame
from codemods.reports._lines import Lines
from codemods.reports._paint import BOLD, CYAN, GREEN, PROMISED, RED, Paint
from codemods.reports.json import placed_object
from codemods.reports.text import finding_head
from codemods.rewriting.apply import apply
from codemods.source.diffs import printable
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.terms.findings import Finding


class Explained(NamedTuple):
    """A finding, and the diff of what mends it alone; the diff is empty where nothing is rewritten."""

    reported: Reported
    diff: str


def explained(sources: Sequence[SourceFile], line: int, *, options: Options) -> tuple[Report, list[Explained]]:
    """Return what stands at ``line`` of the first of ``sources``: findings whose statement or trail holds the line.

    Findings whose own statement does go first; where there are any, those that only pass by are left out.
    """
    path = sources[0].path
    result = check(sources, options=options)
    report = Report.of_check(result)
    own = [one for one in result.findings if _holds(one.finding, path, line)]
    passing = [one for one in result.findings if any((s.path, s.line) == (path, line) for s in one.finding.trail)]
    return report, [Explained(one, _diff(sources, one, options)) for one in own or passing]


def _holds(finding: Finding, path: str, line: int) -> bool:
    return finding.path == path and finding.span.line <= line <= max(finding.span.line, finding.span.end_line)


def _diff(sources: Sequence[SourceFile], reported: Reported, options: Options) -> str:
    if not reported.fixable:
        return ""
    key = reported.finding.key
    made = apply(
        sources, options=options, dry_run=True, wanted=lambda found: any(finding.key == key for finding in found)
    )
    return made.diff().decode("utf-8", "replace")


def as_text(report: Report, found: Sequence[Explained], *, colour: bool = False) -> str:
    """Return all there is to say of ``found``, for people."""
    paint, lines = Paint(colour), Lines(report)
    return "\n\n".join("\n".join(_told(report, lines, one, paint)) for one in found) + "\n"


def _told(report: Report, lines: Lines, one: Explained, paint: Paint) -> Iterator[str]:
    finding, rule = one.reported.finding, explain(one.reported.finding.rule)
    yield f"{finding_head(report, finding, paint, now=True)} {printable(finding.message)}"
    yield from frame(report, lines, finding, paint)
    if finding.trail:
        yield ""
        yield paint(BOLD, "The way of the graph")
        for number, step in enumerate(finding.trail, 1):
            yield f"  {number}. {report.told(step.path, step.line, now=True)}: {printable(step.note)}"
    yield ""
    yield paint(BOLD, "Why it hurts")
    for paragraph in reason(rule):
        yield from wrapped(paragraph.removeprefix("Why it hurts: "))
    yield ""
    yield paint(BOLD, "What the rewrite does")
    if finding.remedy:
        yield f"  {paint(CYAN, 'help:')} {printable(finding.remedy)}"
    if one.reported.obstacle is not None:
        yield from wrapped(f"apply leaves it: {printable(one.reported.obstacle)}")
    for line in one.diff.splitlines()[2:]:
        style = {"+": GREEN, "-": RED}.get(line[:1])
        yield "  " + (paint(style, line) if style else printable(line))
    promise = f"{finding.promise.value}: the rewritten program {PROMISES[finding.promise]}."
    checked = f" What verify asks of it: {CHECKS[finding.promise]}." if finding.promise in CHECKS else ""
    first, *rest = wrapped(f"Promise: {promise}{checked}")
    yield paint(PROMISED[finding.promise], first)
    yield from rest
    yield ""
    yield paint(BOLD, "To read on")
    yield f"  The rule: codemod explain {rule.name}"
    yield f"  Its page: {page(rule) or f'{page_file(rule)} in the repository of codemod'}"
    if source := source_of_fact(rule):
        yield f"  Source: {source}"


def wrapped(text: str) -> list[str]:
    """Return ``text`` as indented lines that people can read."""
    lines = textwrap.wrap(text, width=98, break_long_words=False, break_on_hyphens=False)
    return [f"  {line}" for line in lines]


def as_json(report: Report, found: Sequence[Explained]) -> str:
    """Return the same as one JSON object, versioned like the reports."""
    listed: list[dict[str, Any]] = [
        {
            **placed_object(report.place, one.reported.finding, one.reported.fixable),
            "obstacle": one.reported.obstacle,
            "diff": one.diff,
            "promised": PROMISES[one.reported.finding.promise],
            "page": page(explain(one.reported.finding.rule)),
            "source": source_of_fact(explain(one.reported.finding.rule)),
        }
        for one in found
    ]
    return json.dumps({"version": 1, "findings": listed}, indent=1, ensure_ascii=False) + "\n"
