"""A review of a pull request on GitHub, each small change a suggestion that its author takes by a click.

It is what ``gh api --method POST repos/OWNER/NAME/pulls/NUMBER/reviews --input FILE`` sends; GitHub takes comments on
lines of the pull request's own diff alone, so ``check --since`` goes with it.
https://docs.github.com/en/rest/pulls/reviews#create-a-review-for-a-pull-request
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from codemods.manual.explain import PROMISES
from codemods.reports import Detail, Report
from codemods.reports._gfm import code, fenced, inline
from codemods.reports._lines import Lines
from codemods.reports._listed import from_root, root
from codemods.rewriting.changes import Hunk
from codemods.rewriting.single_fixes import Fix, fixes
from codemods.terms.counting import count_text

#: ``check`` works out what ``apply`` would do, for the suggestions.
EDITS = True

#: A larger change is better read as a diff.
LINES = 10


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the review as JSON; ``detail`` and ``colour`` change nothing. After files were written it has no comments:
    what it would suggest is made."""
    dry = report.review is not None and (report.dry_run or not report.applied)
    found = fixes(report.review) if report.review is not None and dry else []
    lines = Lines(report)
    comments = [_comment(report, fix, lines) for fix in found if _is_small(report, fix)]
    left = len(found) - len(comments)
    told = f"{count_text(len(comments), 'suggestion')} of codemod."
    if left:
        told += f" {count_text(left, 'more change')} of several places, or too long for a suggestion: `codemod apply`."
    content = {"event": "COMMENT", "body": told, "comments": comments}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _is_small(report: Report, fix: Fix) -> bool:
    if len(fix.hunks) != 1:
        return False
    (hunk,) = fix.hunks
    source = report.sources.get(hunk.path)
    plain = source is not None and source.notebook is None and hunk.path not in report.translated
    ends = all(line.endswith("\n") for line in (*hunk.removed, *hunk.added))
    return plain and ends and len(hunk.removed) + len(hunk.added) <= LINES


def _comment(report: Report, fix: Fix, lines: Lines) -> dict[str, Any]:
    (hunk,) = fix.hunks
    first, last, text = _replaced(hunk, lines.old(hunk.path))
    told = []
    for change in fix.changes:
        proof = change.proof
        seen = f"{proof.verdict}: {inline(proof.why)}" if proof else "UNVERIFIED, it was not run"
        for finding in change.findings:
            told += [f"{code(finding.rule)}: {inline(finding.message, report.sources)}", ""]
        told += [f"**{change.promise.value}**: the rewritten program {PROMISES[change.promise]}. ({seen})", ""]
    body = "\n".join([*told, *fenced(text, "suggestion")])
    place = {"path": from_root(hunk.path, root()) or hunk.path, "side": "RIGHT", "line": last}
    several = {"start_line": first, "start_side": "RIGHT"} if first < last else {}
    return {**place, **several, "body": body}


def _replaced(hunk: Hunk, old: Sequence[str]) -> tuple[int, int, str]:
    """Return the first and the last line that a suggestion takes the place of, and what comes there: one that only adds
    lines takes in the line above, or at the top the one below."""
    first, last, text = hunk.old_start, hunk.old_start + len(hunk.removed) - 1, "".join(hunk.added)
    if last >= first:
        return first, last, text
    if first > 1:
        return first - 1, first - 1, old[first - 2] + text
    return 1, 1, text + (old[0] if old else "")
