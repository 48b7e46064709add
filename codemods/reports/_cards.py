"""What the review page shows, card by card: a stretch of the diff with its reasons, or a finding that was left."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_lowercase

from markupsafe import Markup

from codemods.checking.reported import Reported
from codemods.reports import Report
from codemods.reports._excerpts import CONTEXT, REACH, Excerpt, excerpts, of_diff, of_text
from codemods.reports._lines import Lines
from codemods.reports._trails import Station, stations
from codemods.rewriting.changes import Hunk, Proof, Review
from codemods.source.diffs import blocks, lines_of
from codemods.source.python2 import RULE as PYTHON2
from codemods.terms.findings import Finding, Promise, TrailStep

#: So many lines of a block that was left are shown.
TALLEST = 12


@dataclass(frozen=True)
class Stop:
    """A station as the list beside an excerpt shows it: ``code`` is empty where the excerpt itself holds the line."""

    station: Station
    place: str
    code: Markup


@dataclass(frozen=True)
class Reason:
    """A finding and its trail; ``place`` is where it stands, for people. ``above``: its trail is that of the finding
    before it, and is not told twice."""

    finding: Finding
    place: str
    stops: tuple[Stop, ...]
    above: bool = False


@dataclass(frozen=True)
class Part:
    """A change as a card tells it: with its reasons, or where another card has them, that card as ``home``."""

    rule: str
    promise: str
    proof: Proof | None
    reasons: tuple[Reason, ...]
    place: str
    home: str = ""


@dataclass(frozen=True)
class Card:
    """One thing to review. ``left`` says why nothing was changed, and is empty for a change; ``rows`` is how many lines
    the excerpt has."""

    id: str
    path: str
    place: str
    code: Markup
    rows: int
    parts: tuple[Part, ...]
    left: str = ""
    hunks: tuple[Hunk, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of all findings on it."""
        told = (reason.finding.rule for part in self.parts for reason in part.reasons)
        return tuple(dict.fromkeys((*(part.rule for part in self.parts), *told)))

    @property
    def promises(self) -> tuple[str, ...]:
        """What its changes promise."""
        return tuple(dict.fromkeys(part.promise for part in self.parts))

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What ``verify`` said of its changes."""
        return tuple(dict.fromkeys(part.proof.verdict for part in self.parts if part.proof))


def cards_of(report: Report) -> list[Card]:
    """Return the cards of ``report``: the changes in order of path and line, then what was left."""
    lines, names = Lines(report), _Names()
    cards = list(_translations(report, lines, names))
    if report.review is not None:
        cards += _Changes(report.review, lines, names).cards()
    return [*cards, *_left(report, lines, names)]


class _Names:
    """Identifiers that can be linked to, the same for the same report: rule, path and line."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, rule: str, path: str, line: int) -> str:
        stem = re.sub(r"[^\w./-]+", "_", f"{rule}/{path}/{line}")
        name, again = stem, 1
        while name in self._taken:
            again += 1
            name = f"{stem}/{again}"
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class _Draft:
    """An excerpt before its markup is made, and the changes in it."""

    id: str
    path: str
    excerpt: Excerpt
    changes: tuple[int, ...]


class _Changes:
    """The cards of a review: one for each stretch of the diff."""

    def __init__(self, review: Review, lines: Lines, names: _Names) -> None:
        self._changes = review.changes
        self._lines = lines
        self._hunks: dict[str, list[Hunk]] = defaultdict(list)
        for hunk in review.hunks:
            self._hunks[hunk.path].append(hunk)
        self._drafts = [draft for path in self._hunks for draft in self._drafts_of(path, names)]
        self._homes = {index: draft for index in range(len(self._changes)) if (draft := self._home(index))}

    def cards(self) -> Iterator[Card]:
        for path, hunks in self._hunks.items():
            before, after = self._lines.number(path), self._lines.new_number(path, hunks)
            for draft in self._drafts:
                if draft.path != path:
                    continue
                parts, trails = self._parts(draft)
                coloured = self._lines.coloured(path)
                code = of_diff(draft.excerpt, self._lines.shown(path), trails, path, before, after, coloured)
                place = self._lines.place(path, draft.excerpt.hunks[0].old_start)
                yield Card(draft.id, path, place, code, len(draft.excerpt.lines), parts, hunks=draft.excerpt.hunks)

    def _drafts_of(self, path: str, names: _Names) -> Iterator[_Draft]:
        near = {index: self._near(path, hunk) for index, hunk in enumerate(self._hunks[path])}
        for excerpt in excerpts(self._hunks[path], near, len(self._lines.old(path)), partial(self._lines.cell, path)):
            own = tuple(dict.fromkeys(change for hunk in excerpt.hunks for change in hunk.changes))
            rule = self._changes[own[0]].rule if own else "change"
            yield _Draft(names(rule, path, excerpt.hunks[0].old_start), path, excerpt, own)

    def _near(self, path: str, hunk: Hunk) -> list[int]:
        """The lines of the trails behind a hunk."""
        findings = [finding for change in hunk.changes for finding in self._changes[change].findings]
        steps = [step for finding in findings if finding.path == path for step in finding.trail]
        return [self._lines.moved(path, step.line) for step in steps if step.path == path]

    def _home(self, index: int) -> _Draft | None:
        """The card that tells the reasons of a change: the one where its finding stands, else its first."""
        finding = self._changes[index].finding
        line = self._lines.moved(finding.path, finding.span.line)
        mine = [draft for draft in self._drafts if index in draft.changes]
        right = [draft for draft in mine if draft.path == finding.path and line in draft.excerpt.lines]
        return next(iter(right or mine), None)

    def _parts(self, draft: _Draft) -> tuple[tuple[Part, ...], list[list[Station]]]:
        """The changes of a card, and the trails to draw in its margin."""
        told = {index for index in draft.changes if self._homes[index] is draft}
        trails = {f.trail for index in told for f in self._changes[index].findings if f.trail}
        letters = iter(ascii_lowercase if len(trails) > 1 else "")
        parts: list[Part] = []
        drawn: list[list[Station]] = []
        seen: set[tuple[TrailStep, ...]] = set()
        for index in draft.changes:
            change = self._changes[index]
            place = self._lines.place(change.finding.path, change.finding.span.line)
            reasons = []
            for finding in sorted(change.findings, key=lambda one: -one.promise.rank) if index in told else ():
                at = self._lines.place(finding.path, finding.span.line)
                if finding.trail in seen:
                    reasons.append(Reason(finding, at, (), above=True))
                    continue
                steps = [step._replace(line=self._lines.moved(step.path, step.line)) for step in finding.trail]
                trail = stations(steps, next(letters, "") if steps else "")
                drawn.append(trail)
                seen |= {finding.trail} if steps else set()
                stops = tuple(_stop(station, draft.path, draft.excerpt.lines, self._lines) for station in trail)
                reasons.append(Reason(finding, at, stops))
            home = "" if index in told else self._homes[index].id
            parts.append(Part(change.rule, change.promise.value, change.proof, tuple(reasons), place, home))
        return tuple(parts), drawn


def _stop(station: Station, path: str, shown: range, lines: Lines, *, now: bool = False) -> Stop:
    step = station.step
    place = lines.place(step.path, step.line, now=now)
    if step.path == path:
        place = lines.below(path, step.line, now=now)
    text = (lines.now if now else lines.old)(step.path)
    if (step.path == path and step.line in shown) or not 1 <= step.line <= len(text):
        return Stop(station, place, Markup(""))
    around = _cut(range(step.line - 1, step.line + 2), len(text), lines.cell(step.path, step.line, now=now))
    at = range(step.line, step.line + 1)
    numbers, colours = lines.number(step.path, now=now), lines.coloured(step.path, now=now)
    return Stop(
        station, place, of_text(around, lines.shown(step.path, now=now), at, ([station],), step.path, numbers, colours)
    )


def _translations(report: Report, lines: Lines, names: _Names) -> Iterator[Card]:
    """What was translated from Python 2, before anything else; the first card of a file says so."""
    said = {finding.path: finding for finding in report.fixed if finding.rule == PYTHON2}
    for path, text in report.translated.items():
        old, new = lines_of(report.sources[path].text), lines_of(text)
        hunks = [
            Hunk(path, b.old_start + 1, tuple(old[b.old_start : b.old_end]), b.new_start + 1,
                 tuple(new[b.new_start : b.new_end]), ())
            for b in blocks(old, new) if not b.same
        ]  # fmt: skip
        home = ""
        for excerpt in excerpts(hunks, {}, len(old)):
            line = excerpt.hunks[0].old_start
            name, place = names(PYTHON2, path, line), lines.place(path, line)
            reasons = (Reason(said[path], place, ()),) if path in said and not home else ()
            part = Part(PYTHON2, "repair", None, reasons, path, home)
            code = of_diff(excerpt, old, (), path, lines.number(path), lines.number(path), ())
            yield Card(name, path, place, code, len(excerpt.lines), (part,))
            home = home or name


def _left(report: Report, lines: Lines, names: _Names) -> Iterator[Card]:
    """The findings that stand."""
    review = report.review
    mended = set() if report.applied or review is None else {f.key for c in review.changes for f in c.findings}
    unmade = {(one.rule, one.path, one.line): one for one in report.dropped}
    for reported in report.findings:
        finding = reported.finding
        if finding.key in mended or (finding.rule == PYTHON2 and finding.path in report.translated):
            continue
        text = lines.now(finding.path)
        shown = _shown(finding, finding.trail, len(text), lines.cell(finding.path, finding.span.line, now=True))
        trail = stations(finding.trail)
        at = range(finding.span.line, finding.span.end_line + 1)
        number = lines.number(finding.path, now=True)
        colours = lines.coloured(finding.path, now=True)
        code = (
            of_text(shown, lines.shown(finding.path, now=True), at, (trail,), finding.path, number, colours)
            if text
            else Markup("")
        )
        stops = tuple(_stop(station, finding.path, shown, lines, now=True) for station in trail)
        place = lines.place(finding.path, finding.span.line, now=True)
        verdict = unmade.get((finding.rule, finding.path, lines.before(finding.path, finding.span.line)))
        proof = Proof(verdict.verdict, verdict.why) if verdict else None
        part = Part(finding.rule, finding.promise.value, proof, (Reason(finding, place, stops),), place)
        name = names(finding.rule, finding.path, finding.span.line)
        yield Card(name, finding.path, place, code, len(shown), (part,), _why_left(reported, proof, report))


def _shown(finding: Finding, trail: Sequence[TrailStep], length: int, cell: range | None) -> range:
    start, end = finding.span.line, min(finding.span.end_line, finding.span.line + TALLEST)
    near = [step.line for step in trail if step.path == finding.path and start - REACH <= step.line < end + REACH]
    first, last = min(start - CONTEXT, *(line - 1 for line in near), start), max(end + CONTEXT, *near, end)
    return _cut(range(first, last + 1), length, cell)


def _cut(lines: range, length: int, cell: range | None) -> range:
    """Those of ``lines`` that are in a file of ``length`` lines, and in the ``cell`` where it is a notebook."""
    within = cell or range(1, length + 1)
    return range(max(within.start, lines.start), min(within.stop, lines.stop))


def _why_left(reported: Reported, proof: Proof | None, report: Report) -> str:
    if proof is not None:
        return "verify did not see the promise of its rewrite kept"
    if reported.finding.promise is Promise.ADVICE:
        return "it is advice, for a person to decide"
    if reported.obstacle is not None:
        return reported.obstacle
    if report.applied or report.review is not None:
        return "no edit of ours held here"
    return "`codemod apply` would change it"
