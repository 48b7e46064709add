"""The stretches of text that edits claim, and which groups of edits touch none of the same."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence

from codemods.checking.groups import Group
from codemods.terms.edits import (
    AddDecorator,
    AddHelper,
    DropArgument,
    Edit,
    InsertStatements,
    KeepPart,
    MoveStatement,
    RemoveIdentity,
    RemoveStatement,
    RenameArgument,
    ReplaceExpression,
    WrapBlock,
    WrapExpression,
)
from codemods.terms.spans import Position, Span


def compatible(groups: Iterable[Group]) -> list[Group]:
    """Return those of ``groups`` that touch no code of one before them; of two that begin alike the larger goes first.

    The larger one often makes the smaller one needless; if not, the smaller one gets its turn in the next round, as
    does one that yields to all others. Several may insert statements at one place: two states that are carried may have
    to be cut there together, or the backward still raises.
    """
    zones = {group: text_of_group(group) for group in groups}

    def order(group: Group) -> tuple[bool, str, Position, Position]:
        path, start, end = zones[group][0] if zones[group] else ("", (0, 0), (0, 0))
        return all(finding.yields for finding in group.findings), path, start, (-end[0], -end[1])

    taken: dict[str, list[tuple[Position, Position]]] = defaultdict(list)
    inserted: set[tuple[str, Position, Position]] = set()
    chosen = []
    for group in sorted(zones, key=order):
        gaps = _gaps(group)
        needed = [zone for zone in zones[group] if zone not in gaps or zone not in inserted]
        if any(_overlaps(taken[path], start, end) for path, start, end in needed):
            continue
        chosen.append(group)
        inserted |= gaps.intersection(needed)
        for path, start, end in needed:
            bisect.insort(taken[path], (start, end))
    return chosen


def _gaps(group: Group) -> set[tuple[str, Position, Position]]:
    """The places beside statements where a group inserts others."""
    return {
        (path, *zone)
        for path, edits in group.edits.items()
        for edit in edits
        if isinstance(edit, InsertStatements)
        for zone in _zones(edit)
    }


def text_of_group(group: Group) -> list[tuple[str, Position, Position]]:
    """Return the text that the edits of ``group`` need: stretches in order, those that overlap as one."""
    found: list[tuple[str, Position, Position]] = []
    for path, start, end in sorted(
        (path, *zone) for path, edits in group.edits.items() for e in edits for zone in _zones(e)
    ):
        if found and found[-1][0] == path and start < found[-1][2]:
            found[-1] = (path, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((path, start, end))
    return found


def _overlaps(taken: Sequence[tuple[Position, Position]], start: Position, end: Position) -> bool:
    """Tell whether a stretch overlaps one of ``taken``, which are in order and apart from each other."""
    place = bisect.bisect_left(taken, (end, end))
    return place > 0 and taken[place - 1][1] > start


def _zones(edit: Edit) -> list[tuple[Position, Position]]:
    """Return the stretches of text that ``edit`` needs for itself, ends exclusive."""
    match edit:
        case KeepPart(target=target, kept=kept):
            (start, end), (first, last) = _whole(target), _whole(kept)
            return [(start, first), (last, end)]
        case (
            DropArgument(call=span)
            | RenameArgument(call=span)
            | WrapExpression(target=span)
            | ReplaceExpression(target=span)
            | RemoveStatement(target=span)
            | RemoveIdentity(target=span)
            | AddDecorator(function=span)
        ):
            return [_whole(span)]
        case InsertStatements(anchor=anchor, where=where):
            return [_beside(anchor, where)]
        case MoveStatement(target=span, anchor=anchor, where=where):
            return [_whole(span), _beside(anchor, where)]
        case WrapBlock(first=first, last=last):
            return [(first.start, last.end)]
        case AddHelper():
            # Helpers stand beside all else, and one of a name is added once however many ask for it.
            return []


def _whole(span: Span) -> tuple[Position, Position]:
    return span.start, span.end


def _beside(anchor: Span, where: str) -> tuple[Position, Position]:
    # One character of the anchor stands for the gap beside it: whoever removes or moves the anchor needs it too.
    if where in ("before", "first-in"):
        return anchor.start, (anchor.line, anchor.column + 1)
    return (anchor.end_line, max(0, anchor.end_column - 1)), anchor.end
