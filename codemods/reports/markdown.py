"""A text for a pull request, or a comment: what a maintainer has to know, the short first.

GitHub takes 65,536 characters. What does not fit is summed up: the diffs go first, which stand in the commits anyway,
then the lists of places; the counts always stay. https://docs.github.com/en/rest/pulls/pulls
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from codemods import __version__
from codemods.check import Reported
from codemods.diffs import unified
from codemods.explain import PROMISES, Explanation, explain, reason, source_of_fact
from codemods.findings import Finding, Promise
from codemods.reports import Detail, Report
from codemods.reports._gfm import cell, code, code_cell, details, fenced, inline, table
from codemods.review import Change, Hunk, patched
from codemods.rules import UnknownRule

LIMIT = 65_536
#: So much is kept free for the notes on what was left out.
_RESERVE = 1_500
#: Of a list that is no more than a courtesy, so many entries are told.
_FEW = 10


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the text of a pull request after ``apply``, a comment after ``check``; the same at every ``detail``."""
    lines = _pull_request(report) if report.applied else _comment(report)
    return "\n".join(lines) + "\n"


def title(report: Report) -> str:
    """Return a title for the pull request, at most 72 characters long."""
    files = _count(len(report.changed), "file")
    rules = sorted({finding.rule for finding in report.fixed})
    if not rules:
        return "Fix autograd-graph mistakes: nothing to change"
    if len(rules) == 1:
        return f"Fix {rules[0]} in {report.changed[0] if len(report.changed) == 1 else files}"[:72]
    return f"Fix {_count(len(report.fixed), 'autograd-graph mistake')} in {files}"


@dataclass
class _Section:
    """What there is to say of one rule: ``diff`` is left out first, ``sites`` are shortened next."""

    name: str
    head: list[str]
    sites: list[str]
    diff: list[str]
    summary: str
    tail: list[str] = field(default_factory=list)

    def lines(self, sites: int, *, diff: bool) -> list[str]:
        out = [*self.head, "", *self.sites[:sites]]
        if len(self.sites) > sites:
            out.append(f"- and {len(self.sites) - sites:,} more lines of this list, left out for want of room")
        if self.diff:
            out.append("")
            out += details(self.summary, self.diff) if diff else [f"*{self.summary}: too long for this page.*"]
        return out


def _pull_request(report: Report) -> list[str]:
    if not report.fixed:
        return [*_nothing(report), "", *_left(report), *_reproduce(report)]
    sections = _sections(report)
    start = [*_summary(report), ""]
    end = [*_proof(report), *_left(report), *_reproduce(report)]
    return _fitted(start, sections, end)


def _fitted(start: list[str], sections: list[_Section], end: list[str]) -> list[str]:
    """Put the parts together, within what GitHub takes."""
    room = LIMIT - _RESERVE - _size(start) - _size(end)
    sites = [min(len(section.sites), 3) for section in sections]
    shown = [False] * len(sections)

    def need(place: int) -> int:
        return _size(sections[place].lines(sites[place], diff=shown[place])) + 1

    kept = []
    for place in range(len(sections)):
        if need(place) <= room:
            room -= need(place)
            kept.append(place)
    # Lists of places first, shortest first: then the most sections are whole.
    for place in sorted(kept, key=lambda place: _size(sections[place].sites)):
        before, some = need(place), sites[place]
        sites[place] = len(sections[place].sites)
        if need(place) - before > room:
            sites[place] = some
        room -= need(place) - before
    for place in sorted(kept, key=lambda place: _size(sections[place].diff)):
        before = need(place)
        shown[place] = True
        if need(place) - before > room:
            shown[place] = False
        room -= need(place) - before
    out = list(start)
    for place in kept:
        out += [*sections[place].lines(sites[place], diff=shown[place]), ""]
    if len(kept) < len(sections):
        out += [f"*The sections of {len(sections) - len(kept)} more rules do not fit here; the table counts them.*", ""]
    return out + end


def _size(lines: Iterable[str]) -> int:
    # Bytes, which are never fewer than what GitHub counts, whatever it counts.
    return sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines)


# ----------------------------------------------------------------------------------------------------------------------
# the summary


def _summary(report: Report) -> list[str]:
    places, files = _count(len(report.fixed), "place"), _count(len(report.changed), "file")
    out = [f"**{places} in {files}**, found and rewritten by codemod {__version__}.", ""]
    promises = Counter(finding.promise for finding in report.fixed)
    for promise in Promise:
        if promises[promise]:
            many = "" if len(promises) == 1 else f"{promises[promise]:,} × "
            out.append(f"- {many}**{promise.value}**: the rewritten program {_promised(promise)}.")
    if len(promises) > 1:
        weakest = max(promises, key=lambda promise: promise.rank)
        out.append(f"- The weakest promise here is **{weakest.value}**.")
    out += _proven(report)
    left = _left_counts(report)
    if left:
        out.append(f"- Left alone: {left}.")
    verified = any(change.proof for change in _changes(report))
    rows = []
    for rule, findings in _by_rule(report.fixed).items():
        kinds = Counter(finding.promise for finding in findings)
        promised = ", ".join(
            f"{promise.value}{f' × {kinds[promise]}' if len(kinds) > 1 else ''}"
            for promise in Promise
            if kinds[promise]
        )
        row = [code_cell(rule), promised, f"{len(findings):,}", f"{len({f.path for f in findings}):,}"]
        if verified:
            row.append(_verdicts(change for change in _changes(report) if change.rule == rule) or "–")
        rows.append(row)
    head = ["rule", "promise", "places", "files", *(["verify says"] if verified else [])]
    return [*out, "", *table(head, rows, (2, 3))]


def _promised(promise: Promise) -> str:
    return PROMISES[promise]


def _proven(report: Report) -> list[str]:
    changes = _changes(report)
    if not any(change.proof for change in changes):
        return ["- Not proven by running; `codemod verify SCRIPT` would do that."] if changes else []
    return [f"- Run before and after: {_verdicts(changes)}."]


def _verdicts(changes: Iterable[Change]) -> str:
    counts = Counter(change.proof.verdict if change.proof else "not run" for change in changes)
    return ", ".join(f"{number:,} {verdict}" for verdict, number in counts.items())


def _nothing(report: Report) -> list[str]:
    left = f"; {len(report.findings):,} findings stay" if report.findings else ""
    return [f"**Nothing to change** in {_count(report.files, 'file')}{left}."]


# ----------------------------------------------------------------------------------------------------------------------
# a section a rule


def _sections(report: Report) -> list[_Section]:
    shown: set[int] = set()
    return [_section(report, rule, findings, shown) for rule, findings in _by_rule(report.fixed).items()]


def _section(report: Report, rule: str, findings: Sequence[Finding], shown: set[int]) -> _Section:
    told = _told(rule)
    head = [f"### {code(rule)}", ""]
    if told is not None:
        for paragraph in reason(told):
            head += [inline(_single_ticks(paragraph)), ""]
        if source := source_of_fact(told):
            head += [f"[Why this is so]({source})", ""]
    kinds = sorted({finding.promise for finding in findings}, key=lambda promise: promise.rank)
    head.append(" ".join(f"**Promise: {promise.value}.** The program {_promised(promise)}." for promise in kinds))
    hunks, elsewhere = _own_hunks(report, rule, shown)
    diff = _diff(report, hunks) + _translation(report, findings, hunks)
    section = _Section(rule, head, _sites(report, findings), [], "")
    if diff:
        files = len({hunk.path for hunk in hunks}) or len({finding.path for finding in findings})
        section.diff = fenced(diff, "diff")
        section.summary = f"The diff: {diff.count(chr(10)):,} lines, {_count(files, 'file')}"
    if elsewhere:
        section.sites.append(f"- {_count(elsewhere, 'hunk')} of it stands in the diff of another rule, above")
    return section


def _told(rule: str) -> Explanation | None:
    try:
        return explain(rule)
    except UnknownRule:
        return None


def _single_ticks(text: str) -> str:
    # Docstrings are reStructuredText: code stands between two backticks, emphasis between asterisks.
    return text.replace("``", "`")


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


def _diff(report: Report, hunks: Sequence[Hunk]) -> str:
    by_path: dict[str, list[Hunk]] = defaultdict(list)
    for hunk in hunks:
        by_path[hunk.path].append(hunk)
    return "".join(
        _unified(report, path, report.base(path), patched(report.base(path), own)) for path, own in by_path.items()
    )


def _translation(report: Report, findings: Sequence[Finding], hunks: Sequence[Hunk]) -> str:
    """Return what the translation from Python 2 changed, for the findings that stand for one."""
    if hunks or report.review is None:
        return ""
    paths = dict.fromkeys(finding.path for finding in findings if finding.path in report.translated)
    return "".join(_unified(report, path, report.sources[path].text, report.translated[path]) for path in paths)


def _unified(report: Report, path: str, old: str, new: str) -> str:
    """Return the diff of a file for people: of a notebook that of each cell."""
    source = report.sources.get(path)
    out = ""
    for name, *texts in source.shown(old, new) if source is not None else [(path, old, new)]:
        before, after = (text.encode("utf-8", "surrogatepass") for text in texts)
        out += unified(name, before, after).decode("utf-8", "replace")
    return out


def _sites(report: Report, findings: Sequence[Finding]) -> list[str]:
    """Return an item a message, with its places; what was seen by running behind the place."""
    seen = {}
    for change in _changes(report):
        if change.proof:
            seen.update(dict.fromkeys(change.findings, f" ({change.proof.verdict})"))
    places: dict[str, list[str]] = defaultdict(list)
    for finding in findings:
        place = report.told(finding.path, finding.span.line)
        places[finding.message].append(code(place) + seen.get(finding, ""))
    return [f"- {inline(message)}: {', '.join(dict.fromkeys(at))}" for message, at in places.items()]


# ----------------------------------------------------------------------------------------------------------------------
# what was run, what was left, how to do it again


def _proof(report: Report) -> list[str]:
    evidence = report.evidence
    if evidence is None or not evidence.markdown:
        return []
    if _size([evidence.markdown]) > LIMIT // 2:
        return ["### Verified", "", "*The tables are too long for this page; `codemod verify` shows them.*", ""]
    return ["### Verified", "", *evidence.markdown.rstrip("\n").split("\n"), ""]


def _left_counts(report: Report) -> str:
    words = Counter(_kind(reported, report) for reported in _else_left(report))
    parts = [f"{number:,} {kind}" for kind, number in words.items()]
    parts += [f"{len(report.dropped):,} not seen to keep its promise"] if report.dropped else []
    parts += [f"{len(report.failures):,} edits of ours taken back"] if report.failures else []
    parts += [f"{_count(len(report.skipped), 'file')} skipped"] if report.skipped else []
    parts += [f"{_count(len(report.unwritten), 'file')} not saved"] if report.unwritten else []
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


def _left(report: Report) -> list[str]:
    lists: list[tuple[str, list[str]]] = []
    if report.postponed:
        counts = Counter(finding.rule for finding in report.postponed)
        told = ", ".join(f"{number:,} × {code(rule)}" for rule, number in sorted(counts.items()))
        lists.append(("For the next run", [f"{told}: this one was limited to so many hunks"]))
    dropped = [
        f"{code(report.told(d.path, d.line))} {code(d.rule)}: {d.verdict}: {inline(d.why)}" for d in report.dropped
    ]
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
        why = f" ({inline(reported.obstacle)})" if reported.obstacle and heading == "Left as it is" else ""
        by_kind[heading].append(f"{code(place)} {code(finding.rule)}: {inline(finding.message)}{why}")
    lists += by_kind.items()
    failures = [f"{code(report.told(f.path, f.line))} {code(f.rule)}: {inline(f.reason)}" for f in report.failures]
    lists.append(("Our edit was taken back", failures))
    for heading, entries in (("Could not be read", report.skipped), ("Not saved", report.unwritten)):
        told_ = [f"{code(e.place)}: {inline(e.reason)}" for e in entries]
        lists.append((heading, told_))
    lists = [(heading, items) for heading, items in lists if items]
    if not lists:
        return []
    out = ["### Left alone", ""]
    for heading, items in lists:
        out.append(f"- {heading}:")
        out += [f"  - {_shortened(item)}" for item in items[:_FEW]]
        if len(items) > _FEW:
            out.append(f"  - and {len(items) - _FEW:,} more")
    return [*out, ""]


def _shortened(item: str) -> str:
    # A reason may quote somebody's program at length. Cut inside a code span, the rest of the page would become code.
    return item if len(item) <= 2_000 else item.split(": ", 1)[0] + ": (too long to tell here)"


def _reproduce(report: Report) -> list[str]:
    if not report.command:
        return []
    line = shlex.join(report.command)
    if _size([line]) > LIMIT // 8:
        line = "# the command line is too long to tell here"
    # A version says which rules; a pull request is read long afterwards.
    return ["### Do it again", "", *fenced(f"python -m pip install torch-codemod=={__version__}\n{line}", "sh")]


# ----------------------------------------------------------------------------------------------------------------------
# check


def _comment(report: Report) -> list[str]:
    if not report.findings:
        out = [f"**No findings** in {_count(report.files, 'file')}."]
        return [*out, *(["", *_left(report)] if report.skipped else [])]
    findings = [reported.finding for reported in report.findings]
    files = _count(len({finding.path for finding in findings}), "file")
    fixable = f"`codemod apply` would change {report.fixable:,} of them" if report.fixable else "all of them are advice"
    out = [f"**{_count(len(findings), 'finding')} in {files}**; {fixable}.", ""]
    rows = []
    for rule, own in _by_rule(findings).items():
        kinds = sorted({finding.promise for finding in own}, key=lambda promise: promise.rank)
        able = sum(reported.fixable for reported in report.findings if reported.finding.rule == rule)
        told = _told(rule)
        about = inline(told.summary) if told else ""
        promised = ", ".join(promise.value for promise in kinds)
        rows.append([code_cell(rule), cell(about), promised, f"{len(own):,}", f"{able:,}"])
    out += [*table(["rule", "what", "promise", "findings", "fixable"], rows, (3, 4)), ""]
    sections = [
        _Section(rule, [f"#### {code(rule)}"], _sites(report, own), [], "") for rule, own in _by_rule(findings).items()
    ]
    end = []
    if report.skipped:
        skipped = [f"- {code(e.place)}: {inline(e.reason)}" for e in report.skipped]
        more = [f"- and {len(skipped) - _FEW:,} more"] if len(skipped) > _FEW else []
        end = details(f"{_count(len(report.skipped), 'file')} could not be read", [*skipped[:_FEW], *more])
    return _fitted(out, sections, end)


# ----------------------------------------------------------------------------------------------------------------------
# small things


def _changes(report: Report) -> tuple[Change, ...]:
    return report.review.changes if report.review is not None else ()


def _by_rule(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return ``findings`` by rule, the strongest promises first, then by name."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.rule].append(finding)
    order = sorted(found, key=lambda rule: (min(finding.promise.rank for finding in found[rule]), rule))
    return {rule: found[rule] for rule in order}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
