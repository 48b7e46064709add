"""What one change needs to be made alone: the fix that an editor or a code-scanning site offers beside a finding.

``apply`` makes all changes at once, and then an import that three of them made needless goes with the third. Whoever
takes one of them alone must keep it. So a fix is the hunks of its change, without what only goes because the others are
made too; and where two changes share lines, or one was proven
only with the other made, one fix makes both.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from codemods.rewriting.changes import Change, Hunk, Review, needed
from codemods.source.syntax import FAILURES
from codemods.terms.clusters import connected_groups


class Fix(NamedTuple):
    """The hunks that make ``changes``, which are made together; most often it is one."""

    changes: tuple[Change, ...]
    hunks: tuple[Hunk, ...]


def fixes(found: Review) -> list[Fix]:
    """Return the fixes of ``found``, each change in one of them, in the order of their first changes."""
    shared = [hunk.changes for hunk in found.hunks if not is_import(hunk)]
    groups = connected_groups(len(found.changes), [*shared, *needed(found.changes)])
    made = []
    for group in groups:
        members = set(group)
        hunks = tuple(hunk for hunk in found.hunks if members & set(hunk.changes) and not _serves_others(hunk, members))
        made.append(Fix(tuple(found.changes[index] for index in group), hunks))
    return made


def is_import(hunk: Hunk) -> bool:
    """Whether nothing but import statements change, and names are only added or only taken away."""
    before, after = _bound(hunk.removed), _bound(hunk.added)
    return before is not None and after is not None and (before <= after or after <= before)


def _serves_others(hunk: Hunk, members: set[int]) -> bool:
    """Whether ``hunk`` takes imports away that others than ``members`` make needless too."""
    if members.issuperset(hunk.changes) or not is_import(hunk):
        return False
    before, after = _bound(hunk.removed) or set(), _bound(hunk.added) or set()
    return not before <= after


def _bound(lines: Sequence[str]) -> set[str] | None:
    """Return what the import statements ``lines`` bind; None where other code stands there."""
    try:
        statements = ast.parse(textwrap.dedent("".join(lines))).body
    except FAILURES:
        return None
    if not all(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in statements):
        return None
    return {
        ast.unparse(alias)
        for statement in statements
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for alias in statement.names
    }
