"""The checks that every edit is held to, for changes that came from a patch: parses, finding gone, nothing new."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codemods.analysis.analyse import Analysis
from codemods.checking.check import Analyser, Progress
from codemods.checking.selecting import visible
from codemods.rewriting.continuations import continuations
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.source.syntax import parse
from codemods.terms.findings import Finding, Promise

_ABSENT = (
    "{} is not found in {} any more: it is mended already, left alone by a comment, or the code has changed too much"
)


@dataclass(frozen=True)
class Unit:
    """Hunks that are made together or not at all: the ``paths`` that they change, and the findings, rule and path,
    that have to be gone afterwards. ``promise`` is the one under which they were reviewed."""

    number: int
    paths: frozenset[str]
    gone: tuple[tuple[str, str], ...] = ()
    promise: Promise = Promise.EXACT


class Checks:
    """Judges texts of ``sources`` against what is found in the sources as they are.

    ``around`` are the other files of the tree: programs among them may be what shows a finding.
    """

    def __init__(
        self,
        sources: Mapping[str, SourceFile],
        *,
        options: Options,
        analyse: Analyser,
        jobs: int | None,
        progress: Progress | None = None,
        around: Sequence[SourceFile] = (),
    ) -> None:
        self._around = list(around)
        self._sources = {
            path: source for path, source in sources.items() if path.endswith((".py", ".pyi")) or source.notebook
        }
        self._options = options
        self._analyser = analyse
        self._jobs = jobs
        self._progress = progress
        self._texts = {path: source.text for path, source in self._sources.items()}
        self._analysis = self._analysed({})
        self._findings: Sequence[Finding] = visible(self._analysis.findings, self._texts, options)

    def blame(
        self, units: Sequence[Unit], texts: Mapping[str, str], all_of: Mapping[str, SourceFile]
    ) -> dict[int, str]:
        """Return which of ``units`` do not hold, by number, and why; ``texts``, by path, are those with them made.

        Empty if all is well: every text parses and can be encoded, each finding is gone, none is new.
        """
        blame: dict[int, str] = {}
        for path, text in texts.items():
            try:
                if path in self._sources:
                    parse(text, path)
                all_of[path].encode(text)
            except SourceError as error:
                place = self._line(all_of[path].rewritten(text), error.line)
                reason = self._unread(path) or f"{place} would not be right any more: {error.reason}"
                blame |= _touching(units, path, reason)
        if blame:
            return blame
        changed = {path: text for path, text in texts.items() if path in self._sources and text != self._texts[path]}
        analysis = self._analysed(changed)
        now = {**self._texts, **changed}
        found = visible(analysis.findings, now, self._options)
        known = continuations(self._findings, found, old=self._texts, new=now, mended=())
        vanished = [f for index, f in enumerate(self._findings) if index not in set(known)]
        uncovered: dict[str, set[str]] = defaultdict(set)
        for finding in vanished:
            uncovered[finding.path].update(finding.uncovers)
        for finding, before in zip(found, known, strict=True):
            new = before is None and finding.promise is not Promise.ADVICE
            if new and finding.rule not in uncovered[finding.path]:
                where = self._line(self._sources[finding.path].rewritten(now[finding.path]), finding.span.line)
                reason = f"it causes a new finding, {finding.rule} in {where} of {finding.path}"
                blame |= _touching(units, finding.path, reason)
        blame |= self._not_gone(units, Counter((f.rule, f.path) for f in vanished))
        return blame

    def _not_gone(self, units: Sequence[Unit], vanished: Counter[tuple[str, str]]) -> dict[int, str]:
        blame: dict[int, str] = {}
        for unit in units:
            if missing := self.absent(unit):
                blame[unit.number] = missing
                continue
            for (rule, path), count in Counter(unit.gone).items():
                if vanished[rule, path] < count:
                    blame[unit.number] = f"{rule} would still be there afterwards"
                vanished[rule, path] -= count
        return blame

    def absent(self, unit: Unit) -> str:
        """Say that what ``unit`` mends is not there, or not as surely as when it was reviewed; else the empty text."""
        for (rule, path), count in Counter(unit.gone).items():
            if trouble := self._unread(path):
                return trouble
            standing = [finding for finding in self._findings if (finding.rule, finding.path) == (rule, path)]
            weaker = [finding for finding in standing if finding.promise.rank > unit.promise.rank]
            if len(standing) - len(weaker) < count and weaker:
                at = self._sources[path].place(weaker[0].span.line)
                return f"{rule} at {path}:{at} is {weaker[0].promise.value} now: {weaker[0].message}"
            if len(standing) < count:
                return _ABSENT.format(rule, path)
        return ""

    def _unread(self, path: str) -> str:
        for entry in self._analysis.skipped:
            if entry.path == path:
                return f"{path} cannot be read, line {entry.line}: {entry.reason}"
        return ""

    @staticmethod
    def _line(source: SourceFile, line: int) -> str:
        place = source.place(line)
        return f"line {place}" if place.cell is None else str(place)

    def _analysed(self, changed: Mapping[str, str]) -> Analysis:
        return self._analyser(
            [*self._sources.values(), *self._around],
            options=self._options,
            jobs=self._jobs,
            overlay=changed or None,
            progress=self._progress,
        )


def _touching(units: Sequence[Unit], path: str, reason: str) -> dict[int, str]:
    guilty = [unit for unit in units if path in unit.paths] or units
    return {unit.number: reason for unit in guilty}
