"""What a page says of findings and files that stay as they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial

from codemods.checking.reported import Reported
from codemods.reports import Report
from codemods.reports._gfm import code, inline
from codemods.terms.counting import count_text
from codemods.terms.findings import Promise

#: Of a list that is no more than a courtesy, so many entries are told.
FEW = 10


def left_counts(report: Report) -> str:
    """Return how many findings and files stay, by the kinds of reasons; empty if none do."""
    words = Counter(_kind(reported, report) for reported in _else_left(report))
    parts = [f"{number:,} {kind}" for kind, number in words.items()]
    parts += [f"{len(report.dropped):,} not seen to keep its promise"] if report.dropped else []
    parts += [f"{len(report.failures):,} edits of ours taken back"] if report.failures else []
    parts += [f"{count_text(len(report.skipped), 'file')} skipped"] if report.skipped else []
    parts += [f"{count_text(len(report.unwritten), 'file')} not saved"] if report.unwritten else []
    return ", ".join(parts)


def _else_left(report: Report) -> list[Reported]:
    """The findings that stay for another reason than what a run did not show; those are told with their verdict."""
    dropped = Counter((one.rule, one.path, one.line) for one in report.dropped)
    left = []
    for reported in report.findings:
        key = (reported.finding.rule, reported.finding.path, reported.finding.span.line)
        if dropped[key]:
            dropped[key] -= 1
        else:
            left.append(reported)
    return left


def _kind(reported: Reported, report: Report) -> str:
    finding = reported.finding
    if report.postponed and reported.fixable:
        return "for the next run"
    if finding.promise is Promise.ADVICE or not finding.edits:
        return "advice"
    if finding.promise is Promise.BEHAVIOUR:
        return "that change what is learned"
    return "that cannot be changed alone"


def left_alone(report: Report) -> list[str]:
    """Return the lines on what stays, reason by reason; none if nothing does."""
    lists: list[tuple[str, list[str]]] = []
    say = partial(inline, paths=report.sources)
    if report.postponed:
        counts = Counter(finding.rule for finding in report.postponed)
        told = ", ".join(f"{number:,} × {code(rule)}" for rule, number in sorted(counts.items()))
        lists.append(("For the next run", [f"{told}: this one was limited to so many hunks"]))
    dropped = [f"{code(report.told(d.path, d.line))} {code(d.rule)}: {d.verdict}: {say(d.why)}" for d in report.dropped]
    lists.append(("Not made, because running did not show the promise kept", dropped))
    by_kind: dict[str, list[str]] = defaultdict(list)
    for reported in _else_left(report):
        finding = reported.finding
        kind = _kind(reported, report)
        if kind == "for the next run":
            continue
        place = report.told(finding.path, finding.span.line, now=True)
        heading = {
            "advice": "Advice: nothing safe can be written there",
            "that change what is learned": "Changes what is learned: made with `--unsafe` only",
        }.get(kind, "Left as it is")
        why = f" ({say(reported.obstacle)})" if reported.obstacle and heading == "Left as it is" else ""
        by_kind[heading].append(f"{code(place)} {code(finding.rule)}: {say(finding.message)}{why}")
    lists += by_kind.items()
    failures = [f"{code(report.told(f.path, f.line))} {code(f.rule)}: {say(f.reason)}" for f in report.failures]
    lists.append(("Our edit was taken back", failures))
    for heading, entries in (("Could not be read", report.skipped), ("Not saved", report.unwritten)):
        told_ = [f"{code(e.place)}: {say(e.reason)}" for e in entries]
        lists.append((heading, told_))
    lists = [(heading, items) for heading, items in lists if items]
    if not lists:
        return []
    out = ["### Left alone", ""]
    for heading, items in lists:
        out.append(f"- {heading}:")
        out += [f"  - {_shortened(item)}" for item in items[:FEW]]
        if len(items) > FEW:
            out.append(f"  - and {len(items) - FEW:,} more")
    return [*out, ""]


def _shortened(item: str) -> str:
    # A reason may quote somebody's program at length. Cut inside a code span, the rest of the page would become code.
    return item if len(item) <= 2_000 else item.split(": ", 1)[0] + ": (too long to tell here)"
