"""What a page says of one rule: why, where, and the diff of its own hunks."""

from __future__ import annotations

import html
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence

from codemods.manual.explain import PROMISES, explanation, reason, source_of_fact
from codemods.reports import Report
from codemods.reports._fitting import Fold, Section
from codemods.reports._gfm import code, fenced, inline
from codemods.reports._listed import in_repository
from codemods.rewriting.changes import Change, Hunk, patched
from codemods.source.diffs import printable, unified_text
from codemods.terms.counting import count_text
from codemods.terms.findings import Finding

#: So many places stand in one item of a list; a list can be cut between items.
TOGETHER = 40


def sections_of(report: Report) -> list[Section]:
    """Return a section for each rule that rewrote something; a hunk of several rules stands in the first only."""
    shown: set[int] = set()
    return [_section(report, rule, findings, shown) for rule, findings in by_rule(report.fixed).items()]


def _section(report: Report, rule: str, findings: Sequence[Finding], shown: set[int]) -> Section:
    told = explanation(rule)
    head = [f"### {code(rule)}", ""]
    if told is not None:
        for paragraph in reason(told):
            head += [inline(paragraph), ""]
        if source := source_of_fact(told):
            head += [f"[Why this is so]({source})", ""]
    kinds = sorted({finding.promise for finding in findings}, key=lambda promise: promise.rank)
    head.append(" ".join(f"**Promise: {promise.value}.** The program {PROMISES[promise]}." for promise in kinds))
    hunks, elsewhere = _own_hunks(report, rule, shown)
    diffs = _diffs(report, hunks) or _translations(report, findings)
    section = Section(head, sites(report, findings), [_fold(path, diff) for path, diff in diffs.items() if diff])
    if elsewhere:
        section.sites.append(f"- {count_text(elsewhere, 'hunk')} of it is in the diff of another rule, above")
    return section


def _own_hunks(report: Report, rule: str, shown: set[int]) -> tuple[list[Hunk], int]:
    """Return the hunks of ``rule`` that were not ``shown`` yet, and how many were; those returned are shown then."""
    if report.review is None:
        return [], 0
    own, elsewhere = [], 0
    for place, hunk in enumerate(report.review.hunks):
        if any(report.review.changes[index].rule == rule for index in hunk.changes):
            if place in shown:
                elsewhere += 1
            else:
                shown.add(place)
                own.append(hunk)
    return own, elsewhere


def _fold(path: str, diff: str) -> Fold:
    lines = fenced(diff, "diff")
    changed = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in lines[1:-1])
    # Others have their own copy elsewhere.
    name = in_repository(path) if os.path.isabs(path) else path
    return Fold(f"<code>{html.escape(printable(name))}</code>: {count_text(changed, 'changed line')}", lines)


def _diffs(report: Report, hunks: Sequence[Hunk]) -> dict[str, str]:
    by_path: dict[str, list[Hunk]] = defaultdict(list)
    for hunk in hunks:
        by_path[hunk.path].append(hunk)
    return {
        path: _unified(report, path, report.base(path), patched(report.base(path), own))
        for path, own in by_path.items()
    }


def _translations(report: Report, findings: Sequence[Finding]) -> dict[str, str]:
    """Return what the translation from Python 2 changed, for the findings that stand for one."""
    paths = dict.fromkeys(finding.path for finding in findings if finding.path in report.translated)
    return {path: _unified(report, path, report.sources[path].text, report.translated[path]) for path in paths}


def _unified(report: Report, path: str, old: str, new: str) -> str:
    """Return the diff of a file for people: of a notebook that of each cell."""
    source = report.sources.get(path)
    return unified_text(source.shown(old, new) if source is not None else [(path, old, new)])


def sites(report: Report, findings: Sequence[Finding]) -> list[str]:
    """Return an item a message, with its places; what was seen by running behind the place."""
    seen = {}
    for change in changes_of(report):
        if change.proof:
            seen.update(dict.fromkeys(change.findings, f" ({change.proof.verdict})"))
    places: dict[str, list[str]] = defaultdict(list)
    for finding in findings:
        place = report.told(finding.path, finding.span.line)
        places[finding.message].append(code(place) + seen.get(finding, ""))
    items = []
    for message, all_of_it in places.items():
        at = list(dict.fromkeys(all_of_it))
        items.append(f"- {inline(message, report.sources)}: {', '.join(at[:TOGETHER])}")
        items += [f"- likewise: {', '.join(at[n : n + TOGETHER])}" for n in range(TOGETHER, len(at), TOGETHER)]
    return items


def changes_of(report: Report) -> tuple[Change, ...]:
    """Return the changes of the review, none where there is no review."""
    return report.review.changes if report.review is not None else ()


def by_rule(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return ``findings`` by rule, the strongest promises first, then by name."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.rule].append(finding)
    order = sorted(found, key=lambda rule: (min(finding.promise.rank for finding in found[rule]), rule))
    return {rule: found[rule] for rule in order}
