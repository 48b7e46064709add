"""The lines of the files of a report: as they were read, as the changes found them, and as they are now."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from codemods.reports import Report
from codemods.reports._excerpts import Numbers
from codemods.reports._syntax import Run, colours
from codemods.rewriting.changes import Hunk
from codemods.source.diffs import lines_of
from codemods.source.files import SourceFile
from codemods.source.line_map import LineMap


class Lines:
    """What a page shows of the files of ``report``.

    The *old* lines of a file are those that its hunks count: as it was read, or, of Python 2, as it was translated.
    Findings and trails count in the file as it was read.
    """

    def __init__(self, report: Report) -> None:
        self.report = report

    @functools.cache  # noqa: B019 - it lives as long as a page is made
    def old(self, path: str) -> Sequence[str]:
        """Return the old lines of ``path``, none if it was not among the files looked at."""
        source = self.report.sources.get(path)
        return lines_of(self.report.translated.get(path, source.text)) if source else ()

    def moved(self, path: str, line: int) -> int:
        """Return the old line for the ``line`` of a file as it was read."""
        return self._shifts(path).get(line, line)

    @functools.cache  # noqa: B019
    def _shifts(self, path: str) -> dict[int, int]:
        if path not in self.report.translated:
            return {}
        lines = LineMap(self.report.sources[path].text, self.report.translated[path])
        return {lines.origin(line): line for line in range(len(lines.new), 0, -1)}

    @functools.cache  # noqa: B019
    def now(self, path: str) -> Sequence[str]:
        """Return the lines of ``path`` at which the findings that stand are counted."""
        source = self.report.rewritten.get(path) or self.report.sources.get(path)
        return lines_of(source.text) if source else ()

    @functools.cache  # noqa: B019
    def shown(self, path: str, *, now: bool = False) -> Sequence[str]:
        """Return the old lines of ``path``, or those of :meth:`now`, as they stand in it: in a notebook with magics."""
        source = self._source(path, now)
        if source is None or source.notebook is None:
            return self.now(path) if now else self.old(path)
        return source.lines(source.text)

    def cell(self, path: str, line: int, *, now: bool = False) -> range | None:
        """Return the lines that are the code of the cell of an old ``line``, or of one of :meth:`now`; None where the
        file is no notebook."""
        source = self._source(path, now)
        return None if source is None else source.together(line)

    def _source(self, path: str, now: bool) -> SourceFile | None:
        """The file with the text that is meant."""
        if now and path in self.report.rewritten:
            return self.report.rewritten[path]
        source = self.report.sources.get(path)
        if source is None or now or path not in self.report.translated:
            return source
        return source.rewritten(self.report.translated[path])

    @functools.cache  # noqa: B019
    def coloured(self, path: str, *, now: bool = False) -> Sequence[Sequence[Run]]:
        """Return the runs of one colour of each of the old lines, or of those as they are ``now``."""
        return colours(self.now(path) if now else self.old(path))

    def before(self, path: str, line: int) -> int:
        """Return the line of a file as it was read for a line at which the findings that stand are counted."""
        return self._back(path).origin(line) if path in self.report.rewritten else line

    @functools.cache  # noqa: B019
    def _back(self, path: str) -> LineMap:
        return LineMap(self.report.sources[path].text, self.report.rewritten[path].text)

    def place(self, path: str, line: int, *, now: bool = False) -> str:
        """Return where a line is, for people."""
        return self.report.told(path, line, now=now)

    def below(self, path: str, line: int, *, now: bool = False) -> str:
        """Return where a line is for people who know the file."""
        place = self.report.place(path, line, now=now)
        return f"line {place}" if place.cell is None else str(place)

    def number(self, path: str, *, now: bool = False) -> Numbers:
        """Return what numbers a line of a file for people: in a notebook those of a cell."""
        return lambda line: self.report.place(path, line, now=now).line

    def new_number(self, path: str, hunks: Sequence[Hunk]) -> Numbers:
        """Return what numbers the lines of ``path`` once its ``hunks``, which must be all it has, are made."""
        lines = list(self.old(path))
        for hunk in reversed(hunks):
            lines[hunk.old_start - 1 : hunk.old_start - 1 + len(hunk.removed)] = hunk.added
        place = self.report.sources[path].rewritten("".join(lines)).place
        return lambda line: place(line).line
