"""Source beside source: a stretch of a file before and after, with the trail of the graph in its margin.

An excerpt is a grid of three columns: the margin, the old lines, the new ones. In the document they stand as in a
unified diff, all removed lines of a block before the added ones; a style sheet places them side by side where there is
room.
What stands in the margin needs its row on either way, so it carries both: ``--w`` side by side, ``--n`` unified.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from codemods.reports._syntax import Run, colours, divided
from codemods.reports._trails import Arc, Station, arcs
from codemods.rewriting.changes import Hunk
from codemods.source.diffs import Piece, Pieces, changed_words, printable

CONTEXT = 3
#: A station no further away than this is shown in the same excerpt.
REACH = 14
#: A longer line is cut: it is data, or minified.
WIDEST = 2000

#: The number to show for a line of a text.
Numbers = Callable[[int], int]


class Rows(NamedTuple):
    """The row of a line in the grid, from 1: side by side, and unified."""

    wide: int
    narrow: int


class Excerpt(NamedTuple):
    """What to show of a file: the ``lines`` of its old text, from 1, and the ``hunks`` among them."""

    lines: range
    hunks: tuple[Hunk, ...]


def excerpts(
    hunks: Sequence[Hunk],
    near: Mapping[int, Iterable[int]],
    length: int,
    cell: Callable[[int], range | None] = lambda line: None,
) -> list[Excerpt]:
    """Return what to show of a file of ``length`` lines, so that each of its ``hunks`` is in one excerpt.

    ``near`` are lines to show together with the hunk at an index, unless they are too far from it; ``cell`` returns for
    a line of a notebook those of its cell, of which no others are shown.
    """
    found: list[Excerpt] = []
    for lines, hunk in sorted(
        (_around(hunk, near.get(i, ()), cell(hunk.old_start) or range(1, length + 1)), hunk)
        for i, hunk in enumerate(hunks)
    ):
        if found and lines[0] <= found[-1].lines.stop:
            before = found.pop()
            found.append(Excerpt(range(before.lines.start, max(before.lines.stop, lines[1])), (*before.hunks, hunk)))
        else:
            found.append(Excerpt(range(*lines), (hunk,)))
    return [Excerpt(lines, tuple(sorted(inside, key=lambda hunk: hunk.old_start))) for lines, inside in found]


def _around(hunk: Hunk, near: Iterable[int], within: range) -> tuple[int, int]:
    start, end = hunk.old_start, hunk.old_start + len(hunk.removed)
    seen = [line for line in near if start - REACH <= line < end + REACH]
    first = min(start - CONTEXT, *(line - 1 for line in seen), start)
    last = max(end + CONTEXT, *(line + 2 for line in seen), end)
    # The hunk itself is always shown, even between two cells.
    return min(max(within.start, first), start), max(min(within.stop, last), end, 1)


def of_diff(
    excerpt: Excerpt,
    old: Sequence[str],
    trails: Sequence[Sequence[Station]],
    path: str,
    before: Numbers,
    after: Numbers,
    runs: Sequence[Sequence[Run]],
) -> Markup:
    """Return the excerpt of a diff as markup; ``old`` are the lines of the old text, ``runs`` their colours, ``trails``
    drawn in the margin."""
    grid = _Grid(before, after, runs)
    line = excerpt.lines.start
    shift = excerpt.hunks[0].new_start - excerpt.hunks[0].old_start
    for hunk in excerpt.hunks:
        for number in range(line, hunk.old_start):
            grid.same(number, number + shift, old[number - 1])
        grid.changed(hunk)
        line = hunk.old_start + len(hunk.removed)
        shift = hunk.new_start + len(hunk.added) - line
    for number in range(line, excerpt.lines.stop):
        grid.same(number, number + shift, old[number - 1])
    return grid.drawn(trails, path, "diff")


def of_text(
    lines: range,
    text: Sequence[str],
    at: range,
    trails: Sequence[Sequence[Station]],
    path: str,
    numbers: Numbers,
    runs: Sequence[Sequence[Run]],
) -> Markup:
    """Return some ``lines`` of a text as markup, those ``at`` which something is to be seen marked."""
    grid = _Grid(numbers, numbers, runs)
    for number in lines:
        grid.alone(number, text[number - 1], number in at)
    return grid.drawn(trails, path, "plain")


class _Grid:
    """The cells drawn so far, and the rows of the old lines by their number."""

    def __init__(self, before: Numbers, after: Numbers, runs: Sequence[Sequence[Run]]) -> None:
        self._before, self._after, self._runs = before, after, runs
        self._cells: list[str] = []
        self._rows: dict[int, Rows] = {}
        self._wide = self._narrow = 1

    def same(self, number: int, other: int, line: str) -> None:
        text = _cell(_whole(line), self._colours(number))
        self._row(number)
        self._cells.append(f'<code data-o="{self._before(number)}">{text}</code>')
        # What is read out, or found by searching, need not stand there twice.
        self._cells.append(f'<code class="same" data-n="{self._after(other)}" aria-hidden="true">{text}</code>')

    def alone(self, number: int, line: str, marked: bool) -> None:
        self._row(number)
        text = _cell(_whole(line), self._colours(number))
        self._cells.append(f'<code{" class=at" if marked else ""} data-o="{self._before(number)}">{text}</code>')

    def _colours(self, number: int) -> Sequence[Run]:
        return self._runs[number - 1] if number <= len(self._runs) else ()

    def changed(self, hunk: Hunk) -> None:
        removed, added = changed_words(hunk.removed, hunk.added)
        height = max(len(removed), len(added))
        for index, (pieces, line) in enumerate(zip(removed, hunk.removed, strict=True)):
            number = hunk.old_start + index
            self._rows[number] = Rows(self._wide + index, self._narrow + index)
            text = _cell(pieces, self._colours(number))
            self._cells.append(f'<code class="del" data-o="{self._before(number)}">{text}{_end(line)}</code>')
        self._cells += ["<i></i>"] * (height - len(removed))
        fresh = colours(hunk.added) if self._runs else []
        for index, (pieces, line) in enumerate(zip(added, hunk.added, strict=True)):
            number, text = self._after(hunk.new_start + index), _cell(pieces, fresh[index] if fresh else ())
            self._cells.append(f'<code class="ins" data-n="{number}">{text}{_end(line)}</code>')
        self._cells += ['<i class="new"></i>'] * (height - len(added))
        self._wide += height
        self._narrow += len(removed) + len(added)

    def _row(self, number: int) -> None:
        self._rows[number] = Rows(self._wide, self._narrow)
        self._wide, self._narrow = self._wide + 1, self._narrow + 1

    def drawn(self, trails: Sequence[Sequence[Station]], path: str, name: str) -> Markup:
        here: dict[int, list[Station]] = defaultdict(list)
        for trail in trails:
            for station in trail:
                if station.step.path == path and station.step.line in self._rows:
                    here[station.step.line].append(station)
        margin = [self._badges(line, found) for line, found in sorted(here.items())]
        ends = min(here, default=0), max(here, default=-1) + 1
        drawn = arcs(trails, path, range(*ends))
        margin += [self._arc(arc) for arc in drawn]
        lanes = max((arc.lane + 1 for arc in drawn), default=0)
        style = f' style="--lanes:{lanes}"' if here else ""
        name += " trailed" if here else ""
        return Markup(f'<div class="code {name}"{style}>{"".join(margin)}{"".join(self._cells)}</div>')

    def _badges(self, line: int, found: Iterable[Station]) -> str:
        rows = self._rows[line]
        badges = "".join(
            f'<b class="{escape(kind.replace(" ", "-"))}"><span>{escape(kind)} </span><i>{escape(label)}</i></b>'
            for label, kind, _ in found
        )
        return f'<span class="at-line" style="--w:{rows.wide};--n:{rows.narrow}">{badges}</span>'

    def _arc(self, arc: Arc) -> str:
        start, end = (self._rows[line] for line in sorted((arc.start, arc.end)))
        rows = f"--w:{start.wide};--n:{start.narrow};--x:{end.wide};--y:{end.narrow};--lane:{arc.lane}"
        head = (
            '<path d="M1 6 5 0 9 6"/>'
            if arc.upward
            else '<svg y="100%" overflow="visible"><path d="M1 -6 5 0 9 -6"/></svg>'
        )
        return (
            f'<span class="arc{" up" if arc.upward else ""}" style="{rows}" aria-hidden="true"><svg width="10" '
            f'height="100%" overflow="visible"><line x1="5" y1="0" x2="5" y2="100%"/>{head}</svg></span>'
        )


def _whole(line: str) -> Pieces:
    return (Piece(printable(line.rstrip("\r\n")), False),)


def _cell(pieces: Pieces, runs: Sequence[Run]) -> str:
    room, parts = WIDEST, []
    for text, marked, kind in divided(pieces, runs):
        shown: str = escape(text[:room])
        if kind:
            shown = f'<span class="{kind}">{shown}</span>'
        parts.append(f"<mark>{shown}</mark>" if marked else str(shown))
        if len(text) > room:
            parts.append(f'<span class="aside"> … {len(text) - room:,} more characters</span>')
            break
        room -= len(text)
    return "".join(parts)


def _end(line: str) -> str:
    return "" if line.endswith("\n") else '<span class="aside"> no newline at the end of the file</span>'
