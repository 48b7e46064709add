"""Versions of a tree with all or some of its rewrites, as bytes to lay over the original."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from codemods.analysis.analyse import Analysis, analyse
from codemods.rewriting.apply import Wanted, apply
from codemods.rewriting.parts import Part
from codemods.rewriting.result import Mended
from codemods.rewriting.touched import standing
from codemods.source.files import SourceFile
from codemods.source.line_map import LineMap
from codemods.source.options import Options

Key = frozenset[tuple[str, str, int]]
Lines = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Version:
    """The tree with some rewrites.

    ``files`` are the changed ones by path below the root, ``groups`` the rewrites, ``diff`` what they change, and
    ``readable`` the same for people; ``old`` and ``new`` are the texts of the changed files by the path under which
    they are shown.
    """

    files: Mapping[str, bytes]
    groups: tuple[Mended, ...]
    diff: bytes
    readable: str
    old: Mapping[str, str]
    new: Mapping[str, str]
    sources: Mapping[str, SourceFile] = field(default_factory=dict)
    """The changed files as they were read, by that path."""

    def place(self, path: str, line: int) -> str:
        """A line of a changed file as first read, as users find it."""
        source = self.sources.get(path)
        return f"{path}:{line if source is None else source.place(line)}"

    @property
    def made(self) -> frozenset[Key]:
        """What distinguishes the rewrites of this version from others."""
        return frozenset(group.key for group in self.groups)

    def watch(self, groups: Iterable[Mended]) -> dict[Key, Lines]:
        """The lines of this version to watch for each of ``groups``, paths as they are shown.

        Of those that are not made in it that is where their old lines stand.
        """
        made = self.made
        return {
            group.key: group.touched.after(self.old, self.new)
            if group.key in made
            else group.touched.still(self.old, self.new)
            for group in groups
        }

    def statements(self, groups: Iterable[Mended], texts: Mapping[str, str]) -> dict[Key, list[Lines]]:
        """The lines of each statement that ``groups`` change: of those made in this version those written, of others
        those that would be taken away. Paths are as they are shown, ``texts`` those of the files as they were read."""
        made = self.made
        return {
            group.key: group.touched.statements(self.old, self.new)
            if group.key in made
            else group.touched.replaced(self.old, self.new, texts)
            for group in groups
        }

    def parts(self, groups: Iterable[Mended], final: Version) -> dict[Key, list[Part]]:
        """What within these statements has to run, too; ``final`` is the version with all of ``groups``."""
        made, read = self.made, final.old
        return {
            group.key: group.touched.parts(self.old, self.new, read)
            if group.key in made
            else group.touched.replaced_parts(self.old, self.new, read, final.new)
            for group in groups
        }

    def standing(self, path: str, line: int) -> Lines:
        """The lines of this version that correspond to a line as first read; paths as they are shown."""
        return standing([(path, line)], self.old, self.new)

    def origins(self, path: str, line: int) -> Lines:
        """The lines as first read to which a line of this version corresponds."""
        if path not in self.new:
            return frozenset([(path, line)])
        return frozenset((path, origin) for origin in LineMap(self.old[path], self.new[path]).origins(line))


class Rewriter(Protocol):
    """Makes versions of one tree; every version starts from the files as they were read."""

    def all(self) -> Version:
        """The version with every rewrite."""
        ...

    def some(self, keys: Iterable[Key]) -> Version:
        """The version with only the rewrites ``keys``."""
        ...

    def relative(self, path: str) -> str | None:
        """The path below the root of a file that is shown as ``path``; None for one that lies outside."""
        ...


class RuleRewriter:
    """The rewrites that ``apply`` would make in ``targets``, files of the tree at ``root``, where ``wanted`` agrees."""

    def __init__(
        self,
        targets: Sequence[SourceFile],
        options: Options,
        *,
        root: Path,
        jobs: int | None,
        wanted: Wanted | None = None,
    ) -> None:
        self._wanted = wanted
        self._targets = list(targets)
        self._options = options
        self._jobs = jobs
        self._below = {source.path: below(source.absolute, root) for source in targets}
        self._plain: Analysis | None = None
        # To look for rewrites takes as long as a short run.
        self._known: dict[frozenset[Key] | None, Version] = {}

    def all(self) -> Version:
        """See :class:`Rewriter`."""
        if None not in self._known:
            self._known[None] = self._version(self._wanted)
        return self._known[None]

    def some(self, keys: Iterable[Key]) -> Version:
        """See :class:`Rewriter`."""
        wanted = frozenset(keys)
        if wanted == self.all().made:
            return self.all()
        if wanted not in self._known:
            places = frozenset().union(*wanted)
            self._known[wanted] = self._version(lambda findings: all(finding.key in places for finding in findings))
        return self._known[wanted]

    def relative(self, path: str) -> str | None:
        """See :class:`Rewriter`."""
        return self._below.get(path)

    def _analysed(self, targets: Sequence[SourceFile], **how: Any) -> Analysis:
        """The findings in the files; the files are read once for all versions."""
        if how.get("overlay"):
            return analyse(targets, **how)
        if self._plain is None:
            self._plain = analyse(targets, **how)
        return self._plain

    def _version(self, wanted: Wanted | None) -> Version:
        result = apply(
            self._targets, options=self._options, dry_run=True, jobs=self._jobs, wanted=wanted, analyse=self._analysed
        )
        files = {}
        for rewrite in result.rewrites:
            place = self._below[rewrite.source.path]
            if place is not None:
                files[place] = rewrite.encoded
        return Version(
            files,
            result.mended,
            result.diff(),
            result.readable_diff(),
            {rewrite.source.path: rewrite.source.text for rewrite in result.rewrites},
            {rewrite.source.path: rewrite.new for rewrite in result.rewrites},
            {rewrite.source.path: rewrite.source for rewrite in result.rewrites},
        )


def below(path: Path, root: Path) -> str | None:
    """The path of ``path`` below ``root``, links resolved only if necessary; None where it is outside."""
    for place, base in ((path, root), (path.resolve(), root.resolve())):
        try:
            return place.relative_to(base).as_posix()
        except ValueError:
            continue
    return None
