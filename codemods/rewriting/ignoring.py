"""Comments that suppress what a rewrite left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from codemods.source.files import SourceFile, source_from_bytes

if TYPE_CHECKING:
    from codemods.rewriting.result import ApplyResult
from codemods.checking.ignores import Ignored, add_ignores


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
