"""A text for a pull request, or a comment: what a maintainer has to know, the short first.

GitHub takes 65,536 characters. What does not fit is summed up: the diffs are cut first, which stand in the commits
anyway, then the lists of places; part of each rule and the counts always stay. https://docs.github.com/en/rest/pulls/pulls
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial

from codemods import __version__
from codemods.checking.reported import Reported
from codemods.manual.explain import PROMISES, explanation
from codemods.reports import Detail, Report
from codemods.reports._fitting import LIMIT, Section, fitted, size
from codemods.reports._gfm import cell, code, code_cell, details, fenced, inline, table
from codemods.reports._listed import in_repository
from codemods.reports._rule_sections import by_rule, changes_of, sections_of, sites
from codemods.rewriting.changes import Change
from codemods.source.home import install, shareable
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
    if finding.path in {entry.path for entry in report.unwritten}:
        return "in files that could not be saved"
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


_TITLE = 72


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a title and the text of a pull request after ``apply``, a comment after ``check``; the same at every
    ``detail``."""
    return f"# {title(report)}\n\n{body(report)}" if report.applied else body(report)


def body(report: Report) -> str:
    """Return the same without a title."""
    lines = _pull_request(report) if report.applied else _comment(report)
    text = "\n".join(lines) + "\n"
    for path in sorted(filter(os.path.isabs, report.sources), key=len, reverse=True):
        # Others have their own copy elsewhere.
        name = in_repository(path)
        for head in ("--- a", "+++ b"):
            text = text.replace(f"\n{head}{path}", f"\n{head}/{name}")
        text = text.replace(path, name)
    return text


def title(report: Report) -> str:
    """Return a title for the pull request, at most 72 characters long."""
    files = count_text(len(report.changed), "file")
    rules = sorted({finding.rule for finding in report.fixed})
    if not rules:
        return "Fix autograd-graph mistakes: nothing to change"
    if len(rules) > 1:
        return f"Fix {count_text(len(report.fixed), 'autograd-graph mistake')} in {files}"
    where = code(in_repository(report.changed[0])) if len(report.changed) == 1 else files
    told = f"Fix {rules[0]} in {where}"
    return told if len(told) <= _TITLE else f"Fix {rules[0]} in {files}"


def _pull_request(report: Report) -> list[str]:
    if not report.fixed:
        return [*_nothing(report), "", *left_alone(report), *_reproduce(report)]
    sections = sections_of(report)
    start = [*_summary(report), ""]
    end = [*_proof(report), *left_alone(report), *_reproduce(report)]
    return fitted(start, sections, end)


def _summary(report: Report) -> list[str]:
    places, files = count_text(len(report.fixed), "place"), count_text(len(report.changed), "file")
    out = [f"**{places} in {files}**, found and rewritten by codemod {__version__}.", ""]
    promises = Counter(finding.promise for finding in report.fixed)
    for promise in Promise:
        if promises[promise]:
            many = "" if len(promises) == 1 else f"{promises[promise]:,} × "
            out.append(f"- {many}**{promise.value}**: the rewritten program {PROMISES[promise]}.")
    if len(promises) > 1:
        weakest = max(promises, key=lambda promise: promise.rank)
        out.append(f"- The weakest promise here is **{weakest.value}**.")
    out += _proven(report)
    left = left_counts(report)
    if left:
        out.append(f"- Left alone: {left}.")
    verified = any(change.proof for change in changes_of(report))
    rows = []
    for rule, findings in by_rule(report.fixed).items():
        kinds = Counter(finding.promise for finding in findings)
        promised = ", ".join(
            f"{promise.value}{f' × {kinds[promise]}' if len(kinds) > 1 else ''}"
            for promise in Promise
            if kinds[promise]
        )
        row = [code_cell(rule), promised, f"{len(findings):,}", f"{len({f.path for f in findings}):,}"]
        if verified:
            row.append(_verdicts(change for change in changes_of(report) if change.rule == rule) or "–")
        rows.append(row)
    head = ["rule", "promise", "places", "files", *(["verify says"] if verified else [])]
    return [*out, "", *table(head, rows, (2, 3))]


def _proven(report: Report) -> list[str]:
    changes = changes_of(report)
    if not any(change.proof for change in changes):
        return ["- **UNVERIFIED**: nothing was run; `codemod verify SCRIPT` proves it."] if changes else []
    return [f"- Run before and after: {_verdicts(changes)}."]


def _verdicts(changes: Iterable[Change]) -> str:
    counts = Counter(change.proof.verdict if change.proof else "not run" for change in changes)
    return ", ".join(f"{number:,} {verdict}" for verdict, number in counts.items())


def _nothing(report: Report) -> list[str]:
    left = f"; {len(report.findings):,} findings stay" if report.findings else ""
    return [f"**Nothing to change** in {count_text(report.files, 'file')}{left}."]


def _proof(report: Report) -> list[str]:
    evidence = report.evidence
    if evidence is None or not evidence.markdown:
        return []
    if size([evidence.markdown]) > LIMIT // 2:
        return ["### Verified", "", "*The tables are too long for this page; `codemod verify` shows them.*", ""]
    return ["### Verified", "", *evidence.markdown.rstrip("\n").split("\n"), ""]


def _reproduce(report: Report) -> list[str]:
    if not report.command:
        return []
    line = shareable(report.command)
    if size([line]) > LIMIT // 8:
        line = "# the command line is too long to tell here"
    # A version says which rules; a pull request is read long afterwards.
    return ["### Do it again", "", *fenced(f"{install(__version__)}\n{line}", "sh")]


def _comment(report: Report) -> list[str]:
    if not report.findings:
        out = [f"**No findings** in {count_text(report.files, 'file')}."]
        return [*out, *(["", *left_alone(report)] if report.skipped else [])]
    findings = [reported.finding for reported in report.findings]
    files = count_text(len({finding.path for finding in findings}), "file")
    fixable = f"`codemod apply` would change {report.fixable:,} of them" if report.fixable else "all of them are advice"
    out = [f"**{count_text(len(findings), 'finding')} in {files}**; {fixable}.", ""]
    rows = []
    for rule, own in by_rule(findings).items():
        kinds = sorted({finding.promise for finding in own}, key=lambda promise: promise.rank)
        able = sum(reported.fixable for reported in report.findings if reported.finding.rule == rule)
        told = explanation(rule)
        about = inline(told.summary) if told else ""
        promised = ", ".join(promise.value for promise in kinds)
        rows.append([code_cell(rule), cell(about), promised, f"{len(own):,}", f"{able:,}"])
    out += [*table(["rule", "what", "promise", "findings", "fixable"], rows, (3, 4)), ""]
    sections = [Section([f"#### {code(rule)}"], sites(report, own)) for rule, own in by_rule(findings).items()]
    end = []
    if report.skipped:
        skipped = [f"- {code(e.place)}: {inline(e.reason)}" for e in report.skipped]
        more = [f"- and {len(skipped) - FEW:,} more"] if len(skipped) > FEW else []
        end = details(f"{count_text(len(report.skipped), 'file')} could not be checked", [*skipped[:FEW], *more])
    return fitted(out, sections, end)
