"""Findings as reports show them: whether ``apply`` would change each, and the lines of notebooks' cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from codemods.source.files import SourceFile
from codemods.terms.findings import Finding, ShownLine, Skipped

if TYPE_CHECKING:
    from codemods.checking.baseline import Fingerprint
    from codemods.checking.ignores import UnusedIgnore


class Reported(NamedTuple):
    """A finding with what ``apply`` with the same options would do: change it, or not because of ``obstacle``."""

    finding: Finding
    obstacle: str | None

    @property
    def fixable(self) -> bool:
        return self.obstacle is None

    def placed(self, sources: Mapping[str, SourceFile]) -> Reported:
        """The same, with lines of notebooks that its words mention as people find them."""
        return self._replace(finding=placed(self.finding, sources))


def placed(finding: Finding, sources: Mapping[str, SourceFile]) -> Finding:
    """Return ``finding`` with the lines of notebooks that its words mention as people find them: ``line 3 of cell 2``.

    ``sources`` are the files by path, with the texts in which the finding stands.
    """

    def told(path: str, words: str) -> str:
        source = sources.get(path)
        if source is None or source.notebook is None:
            return words
        words = _LINE_MENTIONED.sub(lambda match: _line_of_cell(source.place(int(match[1]))), words)
        return source.notebook.spelled(words)

    if all(
        sources[path].notebook is None for path in {finding.path, *(s.path for s in finding.trail)} & sources.keys()
    ):
        return finding
    trail = tuple(step._replace(note=told(step.path, step.note)) for step in finding.trail)
    return replace(
        finding,
        message=told(finding.path, finding.message),
        remedy=told(finding.path, finding.remedy),
        trail=trail,
    )


_LINE_MENTIONED = re.compile(r"\bline (\d+)\b")


def _line_of_cell(place: ShownLine) -> str:
    return f"line {place.line} of cell {place.cell}"


@dataclass(frozen=True)
class Found:
    """What was found: ``files`` counts those looked at and those ``skipped``."""

    files: int
    findings: tuple[Reported, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...] = ()
    unused: tuple[UnusedIgnore, ...] = ()
    """Suppression comments that do nothing, where they were asked for."""
    elsewhere: int = 0
    """Findings left out because they are on lines that did not change."""
    frozen: int = 0
    """Findings left out because a baseline knows them."""
    gone: tuple[Fingerprint, ...] = ()
    """What the baseline knows and is there no more."""
