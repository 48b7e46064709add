"""What is asked about: the changes of an ``apply``, each with all of its hunks and the texts around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codemods.apply import ApplyResult
from codemods.findings import Finding
from codemods.review import Change, Hunk, Key, Proof, review
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source
from codemods.source.syntax import parse


@dataclass(frozen=True)
class Item:
    """One question: a change, its hunks in order of path and line, and the items that share a hunk with it."""

    change: Change
    hunks: tuple[Hunk, ...]
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

    @property
    def place(self) -> str:
        """The path and line of the finding that names it."""
        return f"{self.path}:{self.change.finding.span.line}"


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
    owner = {index: number for number, indices in enumerate(members) for index in indices}
    items = []
    for number, indices in enumerate(members):
        hunks = tuple(hunk for hunk in found.hunks if not set(indices).isdisjoint(hunk.changes))
        shares = {owner[index] for hunk in hunks for index in hunk.changes} - {number}
        items.append(Item(found.changes[indices[0]], hunks, tuple(sorted(shares))))
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

    def line(self, path: str, number: int) -> str:
        """Return a line of the original, empty where there is none."""
        if path not in self.old:
            try:
                self.old[path] = read_source(path).text
            except SourceError:
                self.old[path] = ""
        lines = self.old[path].split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def objection(self, own: Mapping[Hunk, str]) -> str | None:
        """Say why ``own``, texts in place of what hunks add, cannot stand there; None if they can."""
        for path in {hunk.path for hunk in own}:
            text = replaced(self.new[path], {hunk: text for hunk, text in own.items() if hunk.path == path})
            try:
                parse(text, path)
                self.sources[path].encode(text)
            except SourceError as error:
                return str(error)
        return None


def replaced(text: str, own: Mapping[Hunk, str]) -> str:
    """Return the new ``text`` of a file with the texts of ``own`` in the place of what those hunks added."""
    lines = text.split("\n")
    for hunk, mine in sorted(own.items(), key=lambda one: one[0].new_start, reverse=True):
        start = hunk.new_start - 1
        body = mine.removesuffix("\n").split("\n") if mine else []
        lines[start : start + len(hunk.added)] = body
    return "\n".join(lines)
