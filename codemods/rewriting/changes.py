"""What a reviewer takes or leaves: the changes of an ``apply``, each with its reasons, its hunks and what was proven.

A :class:`Change` is made as a whole or not at all; a :class:`Hunk` is a stretch of lines that became others. Most
changes have a hunk of their own. Some share one: two edits of one line, or an import that several of them need.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from codemods.rewriting.result import ApplyResult, Mended
from codemods.source.diffs import Block, blocks, lines_of
from codemods.source.line_map import LineMap
from codemods.terms.findings import Finding, Promise, in_order

_NAME = re.compile(r"[^\W\d]\w*")

#: What names a change: the rule, path and line of each of its findings.
Key = frozenset[tuple[str, str, int]]


class Proof(NamedTuple):
    """What ``verify`` says of a change, and why: ``kept``, ``broken``, ``partly reached``, ``not reached`` or ``not
    judged``."""

    verdict: str
    why: str


class Evidence(NamedTuple):
    """What ``verify`` saw, for those who only pass it on: the verdicts by change, and its own renderings.

    ``markdown`` is a section without a heading; ``html`` a fragment that needs no style but its own; ``plot`` an SVG,
    empty where there is nothing to draw or nothing to draw with.
    """

    proofs: Mapping[Key, Proof]
    markdown: str
    html: str
    plot: bytes = b""


class Hunk(NamedTuple):
    """Lines of ``path`` that became others; ``removed`` and ``added`` hold them with their line ends.

    ``old_start`` and ``new_start`` count from 1, in the file as it was read (or translated from Python 2) and as it is
    afterwards; where nothing was removed (or added), they name the line before which the others stand (or stood).
    ``changes`` are the indices of the changes it belongs to.
    """

    path: str
    old_start: int
    removed: tuple[str, ...]
    new_start: int
    added: tuple[str, ...]
    changes: tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """Findings that were mended together, and what ``verify`` says of it, if it was asked."""

    findings: tuple[Finding, ...]
    proof: Proof | None = None
    needs: frozenset[Key] = frozenset()
    """The keys of changes without which it was not proven; see :class:`codemods.rewriting.result.Mended`."""

    @property
    def finding(self) -> Finding:
        """The finding that gives the change its name: the one with the weakest promise."""
        return max(self.findings, key=lambda finding: finding.promise.rank)

    @property
    def rule(self) -> str:
        return self.finding.rule

    @property
    def promise(self) -> Promise:
        """The weakest of its findings' promises: what holds for all of it."""
        return self.finding.promise

    @property
    def key(self) -> Key:
        return frozenset(finding.key for finding in self.findings)


@dataclass(frozen=True)
class Review:
    """The changes of an ``apply`` and the hunks of its diff, each once; both in order of path and line."""

    changes: tuple[Change, ...]
    hunks: tuple[Hunk, ...]

    def hunks_of(self, change: Change) -> tuple[Hunk, ...]:
        """Return the hunks that ``change`` alone or together with others makes."""
        index = self.changes.index(change)
        return tuple(hunk for hunk in self.hunks if index in hunk.changes)


def needed(changes: Sequence[Change]) -> list[tuple[int, ...]]:
    """Return, for each of ``changes`` that needs others, its number and theirs."""
    numbers = {change.key: number for number, change in enumerate(changes)}
    return [
        (number, *(numbers[key] for key in change.needs if key in numbers))
        for number, change in enumerate(changes)
        if change.needs
    ]


def patched(text: str, hunks: Iterable[Hunk]) -> str:
    """Return ``text``, in whose lines ``hunks`` of one file count, with these made; their order does not matter."""
    lines = lines_of(text)
    for hunk in sorted(hunks, key=lambda hunk: hunk.old_start, reverse=True):
        start = hunk.old_start - 1
        lines[start : start + len(hunk.removed)] = hunk.added
    return "".join(lines)


def review(result: ApplyResult, proofs: Mapping[Key, Proof] | None = None) -> Review:
    """Take ``result`` apart into changes and hunks; ``proofs`` are what ``verify`` says, by the keys of changes."""
    made = sorted(result.mended, key=lambda mended: min(map(in_order, mended.findings)))
    known = proofs or {}
    changes = tuple(Change(mended.findings, known.get(mended.key), mended.needs) for mended in made)
    translated = {source.path: new for source, new in result.translations}
    hunks: list[Hunk] = []
    for source, new in result.rewrites:
        old = translated.get(source.path, source.text)
        if new != old:
            hunks += _hunks(source.path, source.text, old, new, made)
    return Review(changes, tuple(sorted(hunks, key=lambda hunk: (hunk.path, hunk.old_start))))


def _hunks(path: str, read: str, old: str, new: str, made: Sequence[Mended]) -> list[Hunk]:
    """Return the hunks between two texts of a file; ``read`` is the text that the changes count their lines in."""
    old_lines, new_lines = lines_of(old), lines_of(new)
    owners = _Owners(path, made, None if read == old else LineMap(read, old))
    here = {index for index, mended in enumerate(made) if any(p == path for f in mended.findings for p, _ in f.edits)}
    found: list[Hunk] = []
    orphans: list[Hunk] = []
    for block in blocks(old_lines, new_lines):
        for old_start, old_end, new_start, new_end in () if block.same else _cut(block, owners):
            mine = owners.of(old_start, old_end)
            removed, added = tuple(old_lines[old_start:old_end]), tuple(new_lines[new_start:new_end])
            hunk = Hunk(path, old_start + 1, removed, new_start + 1, added, tuple(sorted(mine)))
            (found if mine else orphans).append(hunk)
    return found + [hunk._replace(changes=_in_need(hunk, found) or tuple(sorted(here))) for hunk in orphans]


class _Owners:
    """Which changes touch which lines of a file."""

    def __init__(self, path: str, made: Sequence[Mended], lines: LineMap | None) -> None:
        self._lines = lines
        self._changed: dict[int, set[int]] = defaultdict(set)
        self._beside: dict[int, set[int]] = defaultdict(set)
        for index, mended in enumerate(made):
            for places, touched in ((self._changed, mended.touched.changed), (self._beside, mended.touched.beside)):
                for place, line in touched:
                    if place == path:
                        places[line].add(index)
            for finding in mended.findings:
                # A decorator stands at the head of a function, and what it touches is the body.
                if finding.path == path:
                    self._beside[finding.span.line].add(index)

    def of(self, start: int, end: int) -> set[int]:
        """Return the changes that own the lines from ``start`` to ``end``, counted from 0, the end exclusive."""
        inside, around = range(start + 1, end + 1), range(start, end + 2)
        for places, lines in (
            (self._changed, inside),
            (self._beside, inside),
            (self._beside, around),
            (self._changed, around),
        ):
            at = (self._lines.origin(line) if self._lines and line > 0 else line for line in lines)
            if found := {index for line in at for index in places.get(line, ())}:
                return found
        return set()


def _cut(block: Block, owners: _Owners) -> Iterator[tuple[int, int, int, int]]:
    """Cut a block of lines that became as many others between lines that belong to different changes."""
    _, old_start, old_end, new_start, new_end = block
    if old_end - old_start == new_end - new_start:
        for line in range(old_start + 1, old_end):
            if owners.of(line, line + 1).isdisjoint(owners.of(line - 1, line)):
                yield old_start, line, new_start, new_start + line - old_start
                new_start += line - old_start
                old_start = line
    yield old_start, old_end, new_start, new_end


def _in_need(hunk: Hunk, others: Sequence[Hunk]) -> tuple[int, ...]:
    """Return the changes that make ``hunk``, an import, needed or needless: they write or drop a name that it binds."""
    names = {name for line in (*hunk.removed, *hunk.added) for name in _NAME.findall(line.rpartition("import")[2])}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b") if names else None
    users = (
        other.changes
        for other in others
        if pattern and pattern.search("".join(other.removed if hunk.removed else other.added))
    )
    return tuple(sorted({index for changes in users for index in changes}))
