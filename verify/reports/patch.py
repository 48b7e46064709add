"""A unified diff taken apart for display: files, hunks, lines, and in changed lines the words that changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from codemods.source.diffs import Piece, Pieces, changed_words, printable

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Line(NamedTuple):
    """A line of a hunk: ``sign`` is a blank, ``-``, ``+`` or a backslash (a remark on the line before it).

    ``old`` and ``new`` are its numbers on either side, None where it does not stand there.
    """

    sign: str
    old: int | None
    new: int | None
    pieces: Pieces


@dataclass
class Hunk:
    """A stretch of a file; ``header`` is its ``@@`` line, ``broken`` whose promises it broke: rules, and lines."""

    header: str
    lines: list[Line] = field(default_factory=list)
    broken: tuple[str, ...] = ()

    def changes(self, first: int, last: int) -> bool:
        """Whether it takes away, or puts something beside, old lines from ``first`` to ``last``."""
        near = 0
        for line in self.lines:
            near = line.old or near
            if line.sign in ("+", "-") and first - 1 <= near <= last:
                return True
        return False


@dataclass
class Patched:
    """What happens to one file; ``name`` is its path without the ``b/``."""

    name: str
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def added(self) -> int:
        """How many lines are new."""
        return sum(line.sign == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """How many lines are gone."""
        return sum(line.sign == "-" for hunk in self.hunks for line in hunk.lines)


def parse(diff: str) -> list[Patched]:
    """Return the files of the unified diff ``diff``; what is neither a file's header nor part of a hunk is left out."""
    files: list[Patched] = []
    # Lines of a diff end at \n and nowhere else.
    lines = diff.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("+++ "):
            files.append(Patched(_name(line)))
        elif files and (match := _HUNK.match(line)):
            hunk = Hunk(printable(line))
            at = _read(lines, at, match, hunk)
            files[-1].hunks.append(hunk)
    return files


def _name(line: str) -> str:
    name = line[4:].split("\t")[0].rstrip("\r")
    return printable(name.removeprefix("b/"))


def _read(lines: Sequence[str], at: int, match: re.Match[str], hunk: Hunk) -> int:
    """Read the lines of ``hunk`` from ``at`` on; its header says how many there are. Return where it ends."""
    old, new = int(match[1]), int(match[3])
    old_end, new_end = (start + int(match[group] or 1) for start, group in ((old, 2), (new, 4)))
    removed: list[str] = []
    added: list[str] = []
    remarks: dict[str, str] = {}

    def flush() -> None:
        nonlocal old, new
        for sign, marked in zip("-+", changed_words(removed, added), strict=True):
            for pieces in marked:
                if sign == "-":
                    hunk.lines.append(Line("-", old, None, pieces))
                    old += 1
                else:
                    hunk.lines.append(Line("+", None, new, pieces))
                    new += 1
            if sign in remarks:
                hunk.lines.append(Line("\\", None, None, (Piece(remarks.pop(sign), False),)))
        removed.clear()
        added.clear()

    last = " "
    while at < len(lines):
        sign, text = lines[at][:1], lines[at][1:]
        if sign == "\\":
            remark = printable(text.strip())
            if last in ("-", "+"):
                remarks[last] = remark
            else:
                hunk.lines.append(Line("\\", None, None, (Piece(remark, False),)))
        elif old + len(removed) >= old_end and new + len(added) >= new_end:
            break
        elif sign == "-":
            if added:
                flush()
            removed.append(text)
        elif sign == "+":
            added.append(text)
        else:
            flush()
            hunk.lines.append(Line(" ", old, new, (Piece(printable(text.rstrip("\r")), False),)))
            old, new = old + 1, new + 1
        if sign != "\\":
            last = sign
        at += 1
    flush()
    return at
