"""Which hunks are made together or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from codemods.patches.bundle import RecordedChange
from codemods.patches.pieces import Piece
from codemods.terms.clusters import connected_groups


@dataclass
class Grouping:
    """The hunks, by number, in units. ``helpers`` are imports, made if any of the hunks that need them is."""

    pieces: Sequence[Piece]
    units: dict[int, list[int]]
    helpers: dict[int, frozenset[int]] = field(default_factory=dict)

    def changes_of(self, number: int) -> tuple[int, ...]:
        """The changes that a hunk belongs to."""
        return next(piece.changes for piece in self.pieces if piece.number == number)

    def helped(self, number: int) -> frozenset[int]:
        """The hunks that need an import."""
        return self.helpers[number]


def grouped(pieces: Sequence[Piece], changes: Sequence[RecordedChange]) -> Grouping:
    """Put ``pieces`` in units: those of one change, and of changes that share a hunk; without one, those of a file.

    An import that several changes need joins none of them: it is made where one of them is.
    """
    known: dict[object, int] = {}
    helpers: dict[int, frozenset[int]] = {}
    members: dict[int, list[int]] = {}
    for piece in pieces:
        users = frozenset(
            other.number
            for other in pieces
            if other is not piece and not other.needs_import_only and not set(piece.changes).isdisjoint(other.changes)
        )
        if piece.needs_import_only and len(piece.changes) > 1 and users:
            helpers[piece.number] = users
            continue
        keys: list[object] = list(piece.changes) or [_alone(piece)]
        members[piece.number] = [known.setdefault(key, len(known)) for key in keys]
    groups = connected_groups(len(known), members.values())
    unit = {key: index for index, group in enumerate(groups) for key in group}
    units: dict[int, list[int]] = {index: [] for index in range(len(groups))}
    for number, (first, *_) in sorted(members.items()):
        units[unit[first]].append(number)
    return Grouping(pieces, units, helpers)


def _alone(piece: Piece) -> object:
    # A comment that our own bundle records stands for itself; of a diff nobody knows what belongs together.
    return ("comment", piece.number) if piece.function is not None else ("file", piece.path)
