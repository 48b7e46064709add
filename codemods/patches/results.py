"""What became of a patch, hunk by hunk, for any form of report."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.rewriting.result import Rewrite
from codemods.source.diffs import coloured, unified
from codemods.terms.findings import Skipped


class State(enum.Enum):
    """What became of a hunk."""

    APPLIED = "applied"
    MOVED = "moved"
    FUZZY = "fuzzy"
    ALREADY = "already applied"
    REFUSED = "refused"


@dataclass(frozen=True)
class FittedHunk:
    """One hunk: where it was made for, and what became of it; ``now`` is its path and line (0 if unknown) today.

    ``rules`` are those of the changes that it belongs to, none for a hunk of which nothing is known.
    """

    number: int
    path: str
    line: int
    state: State
    now: tuple[str, int]
    reason: str = ""
    rules: tuple[str, ...] = ()
    cell: int | None = None
    """The cell of a notebook in which ``line`` counts, and ``now_cell`` for that of ``now``."""
    now_cell: int | None = None


@dataclass(frozen=True)
class PatchResult:
    """A patch fitted to a tree: its hunks, and the files with their new texts."""

    hunks: tuple[FittedHunk, ...]
    rewrites: tuple[Rewrite, ...]
    unwritten: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def refused(self) -> int:
        """How many hunks were not made."""
        return sum(hunk.state is State.REFUSED for hunk in self.hunks)

    @property
    def status(self) -> int:
        """The exit status: 0 where all is made, 1 where something was refused, 2 where something was not written."""
        return 2 if self.unwritten else 1 if self.refused else 0

    def diff(self) -> bytes:
        """Return what it changes today, as ``git apply`` takes it."""
        return b"".join(
            unified(source.path, source.encode(source.text), source.encode(new)) for source, new in self._changed()
        )

    def coloured_diff(self) -> str:
        """Return the same for a terminal: of notebooks the Python of each cell."""
        return "".join(coloured(*shown) for source, new in self._changed() for shown in source.shown(source.text, new))

    def _changed(self) -> Iterator[Rewrite]:
        return (rewrite for rewrite in self.rewrites if rewrite.new != rewrite.source.text)
