"""What is asked about: the changes of an ``apply``, each with all of its hunks and the texts around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codemods.rewriting.changes import Change, Hunk, Key, Proof, review
from codemods.rewriting.result import ApplyResult
from codemods.source.diffs import lines_of
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source
from codemods.source.syntax import parse
from codemods.terms.findings import Finding, ShownLine, Skipped


@dataclass(frozen=True)
class Item:
    """One question: a change, its hunks in order of path and line, and the items that share a hunk with it."""

    change: Change
    hunks: tuple[Hunk, ...]
    place: str
    """The path and line of the finding that names it; in a notebook with the cell."""
    shares: tuple[int, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.change.findings

    @property
    def key(self) -> Key:
        return self.change.key

    @property
    def path(self) -> str:
        return self.change.finding.path


def items_of(result: ApplyResult, proofs: Mapping[Key, Proof] | None = None) -> list[Item]:
    """Return what there is to ask about a dry run, in order of path and line; ``proofs`` are what ``verify`` says.

    Changes that go by one name (the same rule on the same line) are one item: nobody could take only one of them.
    """
    found = review(result, proofs)
    numbers: dict[Key, int] = {}
    members: list[list[int]] = []
    for index, change in enumerate(found.changes):
        number = numbers.setdefault(change.key, len(members))
        if number == len(members):
            members.append([])
        members[number].append(index)
    sources = {source.path: source for source in result.sources}
    owner = {index: number for number, indices in enumerate(members) for index in indices}
    items = []
    for number, indices in enumerate(members):
        hunks = tuple(hunk for hunk in found.hunks if not set(indices).isdisjoint(hunk.changes))
        shares = {owner[index] for hunk in hunks for index in hunk.changes} - {number}
        change = found.changes[indices[0]]
        path, line = change.finding.path, change.finding.span.line
        place = f"{path}:{sources[path].place(line) if path in sources else line}"
        items.append(Item(change, hunks, place, tuple(sorted(shares))))
    return items


class Texts:
    """The files of a dry run before and after, and whatever other file a trail leads through."""

    def __init__(self, result: ApplyResult, targets: Sequence[SourceFile] = ()) -> None:
        translated = {source.path: new for source, new in result.translations}
        self.sources = {source.path: source for source in targets}
        self.sources |= {rewrite.source.path: rewrite.source for rewrite in result.rewrites}
        self.old = {path: translated.get(path, source.text) for path, source in self.sources.items()}
        self.new = {rewrite.source.path: rewrite.new for rewrite in result.rewrites}
        self.translated = frozenset(translated)
        self._shown: dict[tuple[str, bool], list[str]] = {}

    def line(self, path: str, number: int) -> str:
        """Return a line of the original, empty where there is none."""
        if path not in self.old:
            try:
                self.sources[path] = read_source(path)
                self.old[path] = self.sources[path].text
            except SourceError:
                self.old[path] = ""
        lines = self.lines(path)
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def lines(self, path: str, *, new: bool = False) -> list[str]:
        """Return the lines of the original, or of the proposal, as they stand in the file."""
        if (path, new) not in self._shown:
            text = (self.new if new else self.old)[path]
            self._shown[path, new] = self.sources[path].lines(text) if path in self.sources else text.split("\n")
        return self._shown[path, new]

    def place(self, path: str, line: int) -> str:
        """Return where a line of the original is, for people: in a notebook with the cell."""
        return f"{path}:{self.sources[path].place(line) if path in self.sources else line}"

    def start(self, hunk: Hunk) -> str:
        """Return where a hunk stands in the original, for people."""
        return self.place(hunk.path, self._line(hunk))

    def around(self, hunk: Hunk, most: int) -> tuple[range, range]:
        """Return the lines of the original, from 0, that stand above and below a hunk: at most so many, and in a
        notebook those of the cell alone."""
        start, end = hunk.old_start - 1, hunk.old_start - 1 + len(hunk.removed)
        old = self.old[hunk.path]
        lines = self._original(hunk.path).together(self._line(hunk)) or range(1, len(lines_of(old)) + 1)
        return (
            range(min(start, max(lines.start - 1, start - most)), start),
            range(end, max(end, min(lines.stop - 1, end + most))),
        )

    def _line(self, hunk: Hunk) -> int:
        """The line of a hunk. What is put at the end of a cell stands above what tells the next one."""
        lines = self._original(hunk.path).together(hunk.old_start)
        above = lines is not None and hunk.old_start not in lines and not hunk.removed
        return hunk.old_start - 1 if above else hunk.old_start

    def _original(self, path: str) -> SourceFile:
        source = self.sources[path]
        return source if source.notebook is None else source.rewritten(self.old[path])

    def objection(self, own: Mapping[Hunk, str]) -> str | None:
        """Say why ``own``, texts in place of what hunks add, cannot stand there; None if they can."""
        for path in {hunk.path for hunk in own}:
            text = replaced(self.new[path], {hunk: text for hunk, text in own.items() if hunk.path == path})
            try:
                parse(text, path)
                self.sources[path].encode(text)
            except SourceError as error:
                at = self.sources[path].rewritten(text).place(error.line) if error.line else ShownLine(None, 0)
                return f"{Skipped(path, at.line, error.reason, at.cell).place}: {error.reason}"
        return None


def replaced(text: str, own: Mapping[Hunk, str]) -> str:
    """Return the new ``text`` of a file with the lines that those hunks added replaced by the texts of ``own``."""
    lines = text.split("\n")
    for hunk, mine in sorted(own.items(), key=lambda one: one[0].new_start, reverse=True):
        start = hunk.new_start - 1
        body = mine.removesuffix("\n").split("\n") if mine else []
        lines[start : start + len(hunk.added)] = body
    return "\n".join(lines)
