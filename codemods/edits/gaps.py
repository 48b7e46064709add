"""What stands between the items of a list in parentheses when one of them is dropped.

Its own trailing comment goes with it; comments on lines of their own stay, as do those of its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

Gap = cst.BaseParenthesizableWhitespace

_NO_GAP = cst.SimpleWhitespace("")


def gap_to_next(before: Gap, after: Gap, *, first: bool) -> Gap:
    """What stands in front of the next item when one between ``before`` and ``after`` is dropped.

    ``first`` says that ``before`` follows the parenthesis and no other item.
    """
    if not isinstance(before, cst.ParenthesizedWhitespace):
        if not first:
            return after
        if isinstance(after, cst.ParenthesizedWhitespace) and any(line.comment for line in after.empty_lines):
            return after.with_changes(first_line=after.first_line.with_changes(whitespace=_NO_GAP, comment=None))
        return before
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return before
    return before.with_changes(
        empty_lines=_joined(before.empty_lines, after.empty_lines), indent=after.indent, last_line=after.last_line
    )


def gap_to_end(before: Gap, after: Gap) -> Gap:
    """What stands in front of the parenthesis when the last item, between ``before`` and ``after``, is dropped."""
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return after
    lines = _own_comments(before, after)
    if isinstance(after, cst.ParenthesizedWhitespace):
        return before.with_changes(empty_lines=lines, indent=after.indent, last_line=after.last_line)
    # The comment reaches to the end of its line, so the parenthesis cannot follow directly.
    return before.with_changes(empty_lines=lines) if lines or before.first_line.comment else after


def gap_in_nothing(before: Gap, after: Gap) -> Gap:
    """What stands between the parentheses when the only item is dropped."""
    lines = _own_comments(before, after)
    layout = after if isinstance(after, cst.ParenthesizedWhitespace) else before
    if not isinstance(layout, cst.ParenthesizedWhitespace):
        return _NO_GAP
    first_line = before.first_line if isinstance(before, cst.ParenthesizedWhitespace) else cst.TrailingWhitespace()
    if not lines and first_line.comment is None:
        return _NO_GAP
    return layout.with_changes(first_line=first_line, empty_lines=lines)


def _own_comments(*gaps: Gap) -> list[cst.EmptyLine]:
    return [
        line
        for gap in gaps
        if isinstance(gap, cst.ParenthesizedWhitespace)
        for line in gap.empty_lines
        if line.comment is not None
    ]


def _joined(before: Sequence[cst.EmptyLine], after: Sequence[cst.EmptyLine]) -> Sequence[cst.EmptyLine]:
    if any(line.comment for line in (*before, *after)):
        return [*before, *after]
    return max(before, after, key=len)


def has_comments(gap: Gap) -> bool:
    """Whether dropping ``gap`` would drop comments."""
    return isinstance(gap, cst.ParenthesizedWhitespace) and (
        gap.first_line.comment is not None or any(line.comment for line in gap.empty_lines)
    )
