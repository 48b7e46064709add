"""What an ``apply`` did, or would do: the rewrites, what they mended, and what was left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from codemods.checking.reported import Reported
from codemods.rewriting.touched import Touched
from codemods.source.diffs import coloured, unified, unified_text
from codemods.source.files import SourceFile
from codemods.terms.findings import Finding, Skipped


class Failure(NamedTuple):
    """An edit of ours that had to be taken back: the finding it should have mended, and why it did not."""

    rule: str
    path: str
    line: int
    reason: str


class Dropped(NamedTuple):
    """A rewrite that was not made because ``verify`` did not see its promise kept: the verdict, and why."""

    rule: str
    path: str
    line: int
    verdict: str
    why: str


class Rewrite(NamedTuple):
    """One file, as it was read, and its new text."""

    source: SourceFile
    new: str

    @property
    def encoded(self) -> bytes:
        """The new text as the bytes that the file will hold."""
        return self.source.encode(self.new)


class Mended(NamedTuple):
    """Findings that were mended together, and the lines that this touches, both in the files as they were read."""

    findings: tuple[Finding, ...]
    touched: Touched
    needs: frozenset[frozenset[tuple[str, str, int]]] = frozenset()
    """The keys of those without which it was not proven: they were made before, and it came to light, or held, only
    then."""

    @property
    def key(self) -> frozenset[tuple[str, str, int]]:
        """What tells it from the others, in this call of ``apply`` and in one that makes fewer rewrites."""
        return frozenset(finding.key for finding in self.findings)


@dataclass(frozen=True)
class ApplyResult:
    """What ``apply`` did, or with ``dry_run`` would do.

    ``fixed`` and ``failures`` stand at their lines in the files as they were read; ``remaining`` at those of the files
    as they are afterwards, which for a dry run are the same. ``translations`` are files of Python 2 as they were
    translated before anything else; they are among the ``rewrites`` too. ``unwritten`` are files whose rewrite could
    not be saved.
    ``mended`` are those ``fixed`` that were not ``unwritten``, in the groups that were made together or not at all;
    ``dropped`` those that were left because ``verify`` did not see them kept.
    """

    files: int
    rewrites: tuple[Rewrite, ...]
    fixed: tuple[Finding, ...]
    remaining: tuple[Reported, ...]
    skipped: tuple[Skipped, ...]
    failures: tuple[Failure, ...]
    unwritten: tuple[Skipped, ...]
    notes: tuple[str, ...]
    dry_run: bool
    mended: tuple[Mended, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    translations: tuple[Rewrite, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    """The files looked at, as they were read."""
    postponed: tuple[Finding, ...] = ()
    """What a limit on the size of this run left for the next; see :func:`codemods.rewriting.limited.apply_some`."""

    def diff(self) -> bytes:
        """Return what was changed as ``git apply`` and ``patch -p1`` take it, in the encodings of the files."""
        return b"".join(
            unified(source.path, source.encode(old), source.encode(new)) for source, old, new in self._stages()
        )

    def readable_diff(self) -> str:
        """Return what was changed for people to read: of notebooks the Python of each cell, not the JSON."""
        return unified_text(shown for source, old, new in self._stages() for shown in source.shown(old, new))

    def coloured_diff(self) -> str:
        """Return what :meth:`readable_diff` does, for a terminal."""
        return "".join(coloured(*shown) for source, old, new in self._stages() for shown in source.shown(old, new))

    def _stages(self) -> Iterator[tuple[SourceFile, str, str]]:
        """Each change with the text before and after it: translations come first, each as a change of its own."""
        translated = {source.path: new for source, new in self.translations}
        for source, new in self.translations:
            yield source, source.text, new
        for source, new in self.rewrites:
            old = translated.get(source.path, source.text)
            if new != old:
                yield source, old, new
