"""What became of a patch, hunk by hunk, and the reports of it for people and for programs."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.reports import Detail
from codemods.reports._paint import RED, YELLOW, Paint
from codemods.rewriting.result import Rewrite
from codemods.source.diffs import coloured, printable, unified
from codemods.terms.counting import plain_count_text
from codemods.terms.findings import ShownLine, Skipped


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

    ``rules`` are those of the changes that it belongs to, none for a hunk that no bundle describes.
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


VERSION = 1
_STYLES = {State.REFUSED: RED, State.FUZZY: YELLOW}


def as_text(result: PatchResult, detail: Detail, *, colour: bool = False) -> str:
    """Return a line for each hunk, and a summary; if quiet only what was refused."""
    paint = Paint(colour)
    lines = [f"note: {note}" for note in result.notes if detail >= Detail.NORMAL]
    for hunk in result.hunks:
        if detail >= Detail.NORMAL or hunk.state is State.REFUSED:
            told = _told(hunk)
            style = _STYLES.get(hunk.state)
            lines.append(paint(style, told) if style else printable(told))
    if detail >= Detail.NORMAL:
        counts = Counter(hunk.state for hunk in result.hunks)
        parts = [f"{counts[state]} {state.value}" for state in State if counts[state]]
        verb = "would be changed" if result.dry_run else "changed"
        files = plain_count_text(len(result.rewrites), "file")
        lines.append(
            f"{plain_count_text(len(result.hunks), 'hunk')}: {', '.join(parts) or 'nothing to do'}; {files} {verb}"
        )
    return "".join(f"{line}\n" for line in lines)


def _told(hunk: FittedHunk) -> str:
    path, line = hunk.now
    was, at = ShownLine(hunk.cell, hunk.line), ShownLine(hunk.now_cell, line)
    head = f"{path}:{at}" if line else f"{hunk.path}:{was}" if hunk.line else hunk.path
    rules = f" ({', '.join(hunk.rules)})" if hunk.rules else ""
    name = f"hunk {hunk.number}" if hunk.number else "all hunks"
    text = f"{head}: {name}{rules}: {hunk.state.value}"
    if hunk.state is State.MOVED or (hunk.state is State.FUZZY and at != was):
        text += f" from {'line ' if was.cell is None else ''}{was} to {at}"
    return text + (f": {hunk.reason}" if hunk.reason else "")


def as_json(result: PatchResult) -> str:
    """Return one object; its shape is a promise, versioned, and only grows."""
    content = {
        "version": VERSION,
        "hunks": [
            {
                "hunk": hunk.number,
                "path": hunk.path,
                "line": hunk.line,
                **({} if hunk.cell is None else {"cell": hunk.cell}),
                "state": hunk.state.value,
                "now": {
                    "path": hunk.now[0],
                    "line": hunk.now[1],
                    **({} if hunk.now_cell is None else {"cell": hunk.now_cell}),
                },
                "rules": list(hunk.rules),
                "reason": hunk.reason,
            }
            for hunk in result.hunks
        ],
        "changed": [rewrite.source.path for rewrite in result.rewrites],
        "unwritten": [entry._asdict() for entry in result.unwritten],
        "notes": list(result.notes),
        "summary": {
            "hunks": len(result.hunks),
            **{state.value: sum(hunk.state is state for hunk in result.hunks) for state in State},
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
