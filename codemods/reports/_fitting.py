"""A page within the size that GitHub takes: diffs are cut first, each to its share, then lists of places.

https://docs.github.com/en/rest/pulls/pulls
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from codemods.reports._gfm import details
from codemods.terms.counting import count_text

LIMIT = 65_536

#: So much is kept free for the notes on what was left out.
_RESERVE = 1_500
#: So much the notes on what is left out take.
_NOTE = 300
#: Lines of a fenced diff before the first that tells a change.
_HEAD = 4


@dataclass
class Fold:
    """The diff of one file, a fenced block, behind a ``summary``, which is HTML."""

    summary: str
    lines: list[str]

    def shown(self, count: int) -> list[str]:
        """Return the first ``count`` lines, folded."""
        if count >= len(self.lines):
            return details(self.summary, self.lines)
        note = f"*and {len(self.lines) - 1 - count:,} more lines, left out for want of room*"
        return details(self.summary, [*self.lines[:count], self.lines[-1], "", note])

    def cut(self, room: int) -> int:
        """Return how many lines fit into ``room``: whole hunks where there is one, 0 for none."""
        used, whole, last = _NOTE + size(details(self.summary, [])), 0, 0
        for index, line in enumerate(self.lines[:-1]):
            if index > _HEAD - 1 and line.startswith("@@ "):
                whole = index
            used += size([line])
            if used > room:
                break
            last = index + 1
        # The first lines only name the file.
        return whole or (last if last > _HEAD else 0)


@dataclass
class Section:
    """What there is to say of one rule: of the diff, a fold a file, is cut first, ``sites`` are shortened next."""

    head: list[str]
    sites: list[str]
    folds: list[Fold] = field(default_factory=list)

    @property
    def length(self) -> int:
        """How many lines the whole diff has."""
        return sum(len(fold.lines) for fold in self.folds)

    def lines(self, sites: int, *, diff: int) -> list[str]:
        """Return the section with so many of its sites, and so many lines of its diff, or a word on it."""
        out = [*self.head, "", *self.sites[:sites]]
        if len(self.sites) > sites:
            out.append(f"- and {len(self.sites) - sites:,} more lines of this list, left out for want of room")
        left = 0
        for fold in self.folds:
            if diff > 0:
                out += ["", *fold.shown(diff)]
            else:
                left += 1
            diff -= len(fold.lines)
        if left:
            more = "more " if left < len(self.folds) else ""
            out += ["", f"*The diff of {count_text(left, f'{more}file')} does not fit here.*"]
        return out

    def cut(self, room: int) -> int:
        """Return how many lines of the diff fit into ``room``: whole files, then a part of the next one."""
        shown, room = 0, room - _NOTE
        for fold in self.folds:
            need = size(["", *fold.shown(len(fold.lines))])
            if need > room:
                return shown + fold.cut(room)
            shown, room = shown + len(fold.lines), room - need
        return shown


def fitted(start: list[str], sections: list[Section], end: list[str]) -> list[str]:
    """Put the parts together, within what GitHub takes."""
    room = LIMIT - _RESERVE - size(start) - size(end)
    sites = [min(len(section.sites), 3) for section in sections]
    shown = [0] * len(sections)

    def need(place: int) -> int:
        return size(sections[place].lines(sites[place], diff=shown[place])) + 1

    kept = []
    for place in range(len(sections)):
        if need(place) <= room:
            room -= need(place)
            kept.append(place)
    # Lists of places first, shortest first: then the most sections are whole.
    for place in sorted(kept, key=lambda place: size(sections[place].sites)):
        before, some = need(place), sites[place]
        sites[place] = len(sections[place].sites)
        if need(place) - before > room:
            sites[place] = some
        room -= need(place) - before
    for done, place in enumerate(sorted(kept, key=lambda place: sections[place].length)):
        before, section = need(place), sections[place]
        shown[place] = section.length
        if need(place) - before > room:
            # Of the diffs that are too long, each gets the same share.
            shown[place] = section.cut(room // (len(kept) - done))
        room -= need(place) - before
    out = list(start)
    for place in kept:
        out += [*sections[place].lines(sites[place], diff=shown[place]), ""]
    if len(kept) < len(sections):
        out += [f"*The sections of {len(sections) - len(kept)} more rules do not fit here; the table counts them.*", ""]
    return out + end


def size(lines: Iterable[str]) -> int:
    """Return how much of the page the lines take."""
    # Bytes, which are never fewer than what GitHub counts, whatever it counts.
    return sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines)
