"""The edits behind a review page: which of its cards go together, and the lines of each for a patch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from codemods.reports import Report
from codemods.reports._cards import Card
from codemods.reports._lines import Lines
from codemods.reports._next import apply_again
from codemods.rewriting.changes import Hunk
from codemods.rewriting.single_fixes import fixes
from codemods.source.diffs import header_name

#: Lines of context on either side of a change, as in any diff.
CONTEXT = 3


def edits_of(report: Report, cards: Sequence[Card]) -> str:
    """Return for the page's script, as JSON, what can be accepted: ``files``, ``hunks`` and ``fixes``, and the
    ``command`` that would make all of it.

    A fix is made as a whole or not at all; it names its hunks, the places of its findings and the ``cards`` that show
    it. A hunk names its file, its first line, the lines that go and come, and those around it. Of a notebook, of a file
    that was translated first and of one that is not UTF-8 there are no hunks: no diff of text fits it. After files were
    written there is nothing left to accept.
    """
    if report.review is None or (report.applied and not report.dry_run):
        return ""
    lines = Lines(report)
    shown = {hunk: card.id for card in cards for hunk in card.hunks}
    numbers: dict[Hunk, int] = {}
    paths: dict[str, int] = {}
    made = []
    for fix in fixes(report.review):
        plain = all(_has_diff(report, hunk.path) for hunk in fix.hunks)
        for hunk in fix.hunks if plain else ():
            numbers.setdefault(hunk, len(numbers))
            paths.setdefault(hunk.path, len(paths))
        findings = [finding for change in fix.changes for finding in change.findings]
        made.append(
            {
                "hunks": [numbers[hunk] for hunk in fix.hunks] if plain else None,
                "changes": [
                    f"{change.rule} {lines.place(change.finding.path, change.finding.span.line)}"
                    for change in fix.changes
                ],
                "at": list(dict.fromkeys(lines.place(one.path, one.span.line) for one in findings)),
                "cards": list(dict.fromkeys(shown[hunk] for hunk in fix.hunks if hunk in shown)),
            }
        )
    hunks = [_told(hunk, paths[hunk.path], lines.old(hunk.path)) for hunk in numbers]
    files = [[header_name(side, path).decode("utf-8", "replace") for side in "ab"] for path in paths]
    content = {"command": apply_again(report), "files": files, "hunks": hunks, "fixes": made}
    return json.dumps(content, separators=(",", ":"))


def _has_diff(report: Report, path: str) -> bool:
    source = report.sources.get(path)
    utf8 = source is not None and source.notebook is None and source.encoding.lower().replace("_", "-") == "utf-8"
    return utf8 and path not in report.translated


def _told(hunk: Hunk, file: int, old: Sequence[str]) -> dict[str, Any]:
    start, end = hunk.old_start - 1, hunk.old_start - 1 + len(hunk.removed)
    return {
        "file": file,
        "line": hunk.old_start,
        "above": list(old[max(0, start - CONTEXT) : start]),
        "gone": list(hunk.removed),
        "come": list(hunk.added),
        "below": list(old[end : end + CONTEXT]),
    }
