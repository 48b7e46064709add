"""Which findings a user asked to see: by rule, by file, by suppression."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.source.suppressions import Suppressions
from codemods.terms.findings import Finding, Skipped, in_order

if TYPE_CHECKING:
    from codemods.source.python2 import Translation


def broken_cells(targets: Iterable[SourceFile]) -> list[Skipped]:
    """Return the cells of notebooks among ``targets`` that are no Python."""
    return [entry for source in targets if source.notebook is not None for entry in source.notebook.skipped]


def without_ignored(skipped: Collection[Skipped], texts: Mapping[str, str]) -> list[Skipped]:
    """Return ``skipped`` without the files that say themselves, by ``# codemod: ignore-file`` above what cannot be
    read, that they are to be left alone."""
    left_alone = {
        path
        for path in {entry.path for entry in skipped} & texts.keys()
        if any(comment.file and comment.rules is None for comment in Suppressions.of(texts[path]).comments)
    }
    return [entry for entry in skipped if entry.path not in left_alone]


def counted(targets: Sequence[SourceFile], skipped: Iterable[Skipped]) -> int:
    """Return how many files ``targets`` are, together with those ``skipped`` that could not even be read."""
    return len(targets) + sum(entry.cell is None for entry in skipped)


def translations(targets: Sequence[SourceFile], options: Options) -> list[Translation]:
    """Return the translations of those of ``targets`` that are Python 2, if ``options`` ask for them."""
    if not options.python2:
        return []
    from codemods.source.python2 import translation

    return [made for source in targets if (made := translation(source)) is not None]


def selected(finding: Finding, options: Options) -> bool:
    """Tell whether ``options`` ask for the rule of ``finding``; an opt-in one has to be named."""
    if finding.rule in options.ignore:
        return False
    if finding.opt_in or options.select:
        return finding.rule in options.select
    return True


def asked_for(findings: Iterable[Finding], texts: Mapping[str, str], options: Options) -> list[Finding]:
    """Return those of ``findings`` that are in one of ``texts``, by path, and whose rule ``options`` ask for there.

    A finding in another file is left out, because nobody asked about that file.
    """
    return [
        finding
        for finding in findings
        if finding.path in texts
        and selected(finding, options)
        and finding.rule not in options.per_file_ignores.rules(finding.path)
    ]


def visible(findings: Iterable[Finding], texts: Mapping[str, str], options: Options) -> list[Finding]:
    """Return those of ``findings`` that are asked for and not suppressed, in order of path and position.

    ``texts`` are the files by path, as they were when the findings were made.
    """
    suppressions: dict[str, Suppressions] = {}
    chosen = []
    for finding in asked_for(findings, texts, options):
        if finding.path not in suppressions:
            suppressions[finding.path] = Suppressions.of(texts[finding.path])
        if not suppressions[finding.path].covers(finding.rule, finding.span.line, finding.span.end_line):
            chosen.append(finding)
    return sorted(chosen, key=in_order)
