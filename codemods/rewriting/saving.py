"""Rewritten files written, those that one edit ties together all or none; comments at what was left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from codemods.checking.ignores import Ignored, add_ignores
from codemods.checking.reported import Reported
from codemods.rewriting.result import ApplyResult, Rewrite
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source, source_from_bytes
from codemods.source.writing import write_atomically
from codemods.terms.clusters import connected_groups
from codemods.terms.findings import Finding, Skipped, in_order


def write_linked(rewrites: Sequence[Rewrite], linked: Iterable[frozenset[str]]) -> list[Skipped]:
    """Write the files, those ``linked`` by an edit all or none; return what could not be written, with reasons."""
    by_path = {rewrite.source.path: rewrite for rewrite in rewrites}
    paths = list(by_path)
    numbers = {path: number for number, path in enumerate(paths)}
    groups = connected_groups(len(paths), ([numbers[path] for path in each if path in numbers] for each in linked))
    unwritten: list[Skipped] = []
    for group in groups:
        unwritten += _write_together([by_path[path] for path in sorted(paths[number] for number in group)])
    return unwritten


def is_lost(finding: Finding, lost: Collection[str]) -> bool:
    """Whether a finding is not mended because files, of the paths ``lost``, could not be written."""
    return finding.path in lost or any(path in lost for path, _ in finding.edits)


def with_lost(
    remaining: Iterable[Reported], fixed: Iterable[Finding], unwritten: Iterable[Skipped]
) -> tuple[Reported, ...]:
    """Return what remains together with those of the ``fixed`` that files ``unwritten`` leave as they were."""
    lost = {entry.path for entry in unwritten}
    back = [Reported(one, "the file could not be saved") for one in fixed if is_lost(one, lost)]
    if not back:
        return tuple(remaining)
    return tuple(sorted([*remaining, *back], key=lambda one: in_order(one.finding)))


def _write_together(rewrites: Sequence[Rewrite]) -> list[Skipped]:
    written: list[Rewrite] = []
    for rewrite in rewrites:
        try:
            write_atomically(rewrite.source, rewrite.new)
        except SourceError as error:
            lost = [error.skipped]
            break
        written.append(rewrite)
    else:
        return []
    for rewrite in rewrites:
        path = rewrite.source.path
        if path == lost[0].path:
            continue
        try:
            if rewrite in written:
                now = read_source(rewrite.source.absolute, path)
                if now.text == rewrite.new:
                    write_atomically(now, rewrite.source.text)
            lost.append(Skipped(path, 0, f"not written, because {lost[0].path} could not be"))
        except SourceError as error:
            lost.append(
                Skipped(path, 0, f"written, though {lost[0].path} could not be, and not taken back: {error.reason}")
            )
    return lost


def ignore_remaining(result: ApplyResult, sources: Iterable[SourceFile], reason: str = "") -> Ignored:
    """Put comments at the findings that ``result``, of an ``apply`` of ``sources`` that wrote its files, has left.

    Raises nothing for a file of the user.
    """
    rewritten = {rewrite.source.path: rewrite for rewrite in result.rewrites}
    lost = {entry.path: entry for entry in result.unwritten}
    now: list[SourceFile] = []
    for source in sources:
        if source.path in rewritten:
            source = source_from_bytes(rewritten[source.path].encoded, source.path, source.absolute)
        now.append(source)
    # What could not be saved stands at other lines than in the text that was to be.
    left = [one.finding for one in result.remaining if one.finding.path not in lost]
    done = add_ignores(left, now, reason)
    return done._replace(unwritten=tuple(sorted([*done.unwritten, *lost.values()])))
