"""Rewritten files written, those that one edit ties together all or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codemods.rewriting.result import Rewrite
from codemods.source.errors import SourceError
from codemods.source.files import read_source
from codemods.source.writing import write_atomically
from codemods.terms.findings import Skipped


def write_linked(rewrites: Sequence[Rewrite], linked: Iterable[frozenset[str]]) -> list[Skipped]:
    """Write the files, those ``linked`` by an edit all or none; return what could not be written, with reasons."""
    cluster = {rewrite.source.path: {rewrite.source.path} for rewrite in rewrites}
    for paths in linked:
        merged = set().union(*(cluster[path] for path in paths if path in cluster))
        for path in merged:
            cluster[path] = merged
    by_path = {rewrite.source.path: rewrite for rewrite in rewrites}
    unwritten: list[Skipped] = []
    done: set[str] = set()
    for path, together in cluster.items():
        if path not in done:
            done |= together
            unwritten.extend(_write_together([by_path[other] for other in sorted(together)]))
    return unwritten


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
