"""A large ``apply`` hunk by hunk: so many in this run, the rest in the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codemods.rewriting.apply import Wanted, apply
from codemods.rewriting.changes import Change, Review, review
from codemods.rewriting.result import ApplyResult
from codemods.rewriting.single_fixes import is_import
from codemods.source.files import SourceFile
from codemods.terms.counting import plain_count_text
from codemods.terms.findings import Finding


def apply_some(
    targets: Sequence[SourceFile],
    *,
    max_hunks: int | None,
    dry_run: bool = False,
    wanted: Wanted | None = None,
    **given: Any,
) -> ApplyResult:
    """Call :func:`codemods.rewriting.apply.apply` for at most ``max_hunks`` hunks, the strongest promises first.

    A change is made as a whole or left as a whole; one that does not fit lets smaller ones behind it go first. Changes
    that share a hunk count it once, and an import that comes or goes with them is not counted. What was left is the
    result's ``postponed``, at its lines in the files as they were read; it is among ``remaining`` too. With None for
    ``max_hunks`` there is no limit. ``given`` are the other arguments of ``apply``.
    """
    if max_hunks is None:
        return apply(targets, dry_run=dry_run, wanted=wanted, **given)
    whole = apply(targets, dry_run=True, wanted=wanted, **given)
    found = review(whole)
    chosen, left = _first_changes(found, max_hunks)
    if not left:
        return whole if dry_run else apply(targets, dry_run=False, wanted=wanted, **given)
    keys = {key for change in chosen for key in change.key}

    def fits(findings: tuple[Finding, ...]) -> bool:
        return all(finding.key in keys for finding in findings) and (wanted is None or wanted(findings))

    result = apply(targets, dry_run=dry_run, wanted=fits, **given)
    made = {finding.key for finding in result.fixed}
    postponed = tuple(finding for change in left for finding in change.findings if finding.key not in made)
    smallest = min(sum(not is_import(hunk) for hunk in found.hunks_of(change)) for change in left)
    limit = plain_count_text(max_hunks, "hunk")
    told = f"every change that is left has more than {limit}; the smallest has {smallest}"
    return replace(result, postponed=postponed, notes=(*result.notes, *(() if chosen else (told,))))


def _first_changes(found: Review, limit: int) -> tuple[list[Change], list[Change]]:
    """Return the changes that fit, and those that are left."""
    chosen: list[Change] = []
    left: list[Change] = []
    taken: set[int] = set()
    # Sorting is stable: within a promise the order of path and line stays.
    for change in sorted(found.changes, key=lambda change: change.promise.rank):
        index = found.changes.index(change)
        hunks = {place for place, hunk in enumerate(found.hunks) if index in hunk.changes and not is_import(hunk)}
        if len(taken | hunks) <= limit:
            taken |= hunks
            chosen.append(change)
        else:
            left.append(change)
    return chosen, left
