"""Changes made by hand, treated as rewrites: one for each hunk, so that a hunk that breaks something can be named."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from codemods.rewriting.result import Mended
from codemods.rewriting.touched import Touched
from codemods.source.diffs import Block, unified, unified_text
from codemods.source.discovery import discover
from codemods.source.errors import MissingPath, SourceError
from codemods.source.files import SourceFile, read_source
from codemods.source.line_map import LineMap
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span
from verify.errors import VerifyError
from verify.running.rewriting import Key, Version, below

RULE = "change"


class _Hunk(NamedTuple):
    """Old lines ``start`` to ``end`` (from 0, exclusive) that become ``new``, and its name."""

    start: int
    end: int
    new: list[str]
    group: Mended


class HandRewriter:
    """The files in ``other`` in place of those of the tree at ``root``, judged by ``promise``.

    ``other`` is a folder laid out like the tree (files that it lacks stay as they are), or one file that replaces
    ``script``. With ``together`` all hunks are one rewrite, made or left out as a whole. ``rule`` is its name: a name
    other than :data:`RULE` marks a change made by rule, whose losses may differ from those of stale graphs. ``known``
    are files that are taken to be in the tree, by path below the root; ``meant``: it is known what the change means.
    Raises :class:`VerifyError` where there is nothing to compare.
    """

    def __init__(
        self,
        other: Path,
        promise: Promise,
        *,
        root: Path,
        script: Path | None,
        together: bool = False,
        rule: str = RULE,
        known: Mapping[str, SourceFile] = MappingProxyType({}),
        meant: bool = False,
    ) -> None:
        self._known = known
        self._meant = meant
        self._rule = rule
        self._sources: dict[str, SourceFile] = {}
        self._below: dict[str, str] = {}
        self._hunks: dict[str, list[_Hunk]] = {}
        self._added: dict[str, bytes] = {}
        if other.is_file():
            if script is None:
                raise VerifyError(f"{other}: is a file, and no script is named that it could replace")
            pairs = [(script, other)]
        else:
            try:
                found = discover([other]).files
            except MissingPath as error:
                raise VerifyError(str(error)) from None
            # As the files come: without the `..` of a folder beside this one.
            top = Path(os.path.abspath(other))
            pairs = [(root / path.relative_to(top), path) for path in found if path.is_relative_to(top)]
        for mine, theirs in pairs:
            self._compare(mine, theirs, root, promise)
        if not self._hunks and not self._added:
            raise VerifyError(f"{other}: no difference to the files of {root}")
        if together and self._hunks:
            self._join()

    def _join(self) -> None:
        groups = [hunk.group for hunks in self._hunks.values() for hunk in hunks]
        touched = Touched(
            frozenset().union(*(group.touched.changed for group in groups)),
            frozenset().union(*(group.touched.beside for group in groups)),
            whole=True,
            meant=self._meant,
        )
        one = Mended(groups[0].findings, touched)
        self._hunks = {path: [hunk._replace(group=one) for hunk in hunks] for path, hunks in self._hunks.items()}

    def _compare(self, mine: Path, theirs: Path, root: Path, promise: Promise) -> None:
        place = below(mine, root)
        if place is None:
            raise VerifyError(f"{mine}: lies outside {root}")
        try:
            new = read_source(theirs)
            if not mine.exists():
                self._added[place] = theirs.read_bytes()
                return
            old = self._known[place] if place in self._known else read_source(mine)
        except SourceError as error:
            raise VerifyError(f"{error.skipped.path}: {error.skipped.reason}") from None
        if old.notebook is not None:
            try:
                old.encode(new.text)
            except SourceError:
                raise VerifyError(f"{theirs}: has other cells, or other magics in them, than {mine}") from None
        self._sources[old.path], self._below[old.path] = old, place
        after = _lines(new.text)
        hunks = [
            _hunk(old.path, block.old_start, block.old_end, after[block.new_start : block.new_end], promise, self._rule)
            for block in _changes(old.text, new.text)
        ]
        if hunks:
            self._hunks[old.path] = hunks

    def all(self) -> Version:
        """See :class:`verify.running.rewriting.Rewriter`."""
        return self._version(hunk.group.key for hunks in self._hunks.values() for hunk in hunks)

    def some(self, keys: Iterable[Key]) -> Version:
        """See :class:`verify.running.rewriting.Rewriter`."""
        return self._version(keys)

    def relative(self, path: str) -> str | None:
        """See :class:`verify.running.rewriting.Rewriter`."""
        return self._below.get(path)

    def _version(self, keys: Iterable[Key]) -> Version:
        wanted = frozenset(keys)
        files = dict(self._added)
        groups: list[Mended] = []
        old: dict[str, str] = {}
        new: dict[str, str] = {}
        for path, hunks in self._hunks.items():
            source = self._sources[path]
            lines = _lines(source.text)
            chosen = [hunk for hunk in hunks if hunk.group.key in wanted]
            groups.extend(hunk.group for hunk in chosen if hunk.group not in groups)
            for hunk in reversed(chosen):
                lines[hunk.start : hunk.end] = hunk.new
            text = "".join(lines)
            if text != source.text:
                old[path], new[path] = source.text, text
                files[self._below[path]] = source.encode(text)
        diff = b"".join(unified(path, self._sources[path].encode(old[path]), files[self._below[path]]) for path in new)
        readable = unified_text(change for path in new for change in self._sources[path].shown(old[path], new[path]))
        return Version(files, tuple(groups), diff, readable, old, new, self._sources)


def _lines(text: str) -> list[str]:
    """The lines as Python counts them: a form feed does not end one, unlike in :meth:`str.splitlines`."""
    return list(io.StringIO(text, newline=""))


def _changes(old: str, new: str) -> list[Block]:
    """Where the texts differ, along the same pairs of lines as everything that watches the lines of a hunk.

    Another alignment would take a line that changed places for the one that stayed.
    """
    before, after = _lines(old), _lines(new)
    found: list[Block] = []
    for block in LineMap(old, new).blocks:
        for part in _differing(block, before, after):
            if found and (found[-1].old_end, found[-1].new_end) == (part.old_start, part.new_start):
                part = part._replace(old_start=found[-1].old_start, new_start=found.pop().new_start)
            found.append(part)
    return found


def _differing(block: Block, before: list[str], after: list[str]) -> Iterator[Block]:
    """The parts of ``block`` that differ, also by indentation alone; a line map has one more line, after the last."""
    if not block.same:
        yield Block(
            False,
            min(block.old_start, len(before)),
            min(block.old_end, len(before)),
            min(block.new_start, len(after)),
            min(block.new_end, len(after)),
        )
        return
    for old, new in zip(range(block.old_start, block.old_end), range(block.new_start, block.new_end), strict=True):
        if before[old : old + 1] != after[new : new + 1]:
            yield Block(False, old, min(old + 1, len(before)), new, min(new + 1, len(after)))


def _hunk(path: str, start: int, end: int, new: list[str], promise: Promise, rule: str) -> _Hunk:
    first, last = start + 1, max(end, start + 1)
    finding = Finding(rule, path, Span(first, 0, last, 0), promise, "changed by hand")
    if start == end:
        touched = Touched(frozenset(), frozenset((path, line) for line in (start, start + 1) if line), whole=True)
    else:
        touched = Touched(frozenset((path, line) for line in range(first, last + 1)), frozenset(), whole=True)
    return _Hunk(start, end, new, Mended((finding,), touched))
