"""A page within the size that GitHub takes: diffs are left out first, then the lists of places are shortened.

https://docs.github.com/en/rest/pulls/pulls
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from codemods.reports._gfm import details

LIMIT = 65_536

#: So much is kept free for the notes on what was left out.
_RESERVE = 1_500


@dataclass
class Section:
    """What there is to say of one rule: ``diff`` is left out first, ``sites`` are shortened next."""

    name: str
    head: list[str]
    sites: list[str]
    diff: list[str]
    summary: str
    tail: list[str] = field(default_factory=list)

    def lines(self, sites: int, *, diff: bool) -> list[str]:
        """Return the section with so many of its sites, and with its diff or a word on it."""
        out = [*self.head, "", *self.sites[:sites]]
        if len(self.sites) > sites:
            out.append(f"- and {len(self.sites) - sites:,} more lines of this list, left out for want of room")
        if self.diff:
            out.append("")
            out += details(self.summary, self.diff) if diff else [f"*{self.summary}: too long for this page.*"]
        return out


def fitted(start: list[str], sections: list[Section], end: list[str]) -> list[str]:
    """Put the parts together, within what GitHub takes."""
    room = LIMIT - _RESERVE - size(start) - size(end)
    sites = [min(len(section.sites), 3) for section in sections]
    shown = [False] * len(sections)

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
    for place in sorted(kept, key=lambda place: size(sections[place].diff)):
        before = need(place)
        shown[place] = True
        if need(place) - before > room:
            shown[place] = False
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
