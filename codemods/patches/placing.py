"""Where a hunk belongs in a file that has moved on: one place, or a reason why there is none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from codemods.patches.fuzzy import LEAST, LEAST_UNPROVEN, Window, Word, clearly, fitted, windows, words_of
from codemods.patches.pieces import NEAR, Piece, content, digest, ending
from codemods.source.diffs import lines_of, shared_ends
from codemods.source.enclosing import Outline
from codemods.terms.findings import ShownLine

# How much context is tried, above and below, where not all of it stands there any more.
_LESS = ((2, 2), (1, 1), (0, NEAR), (NEAR, 0))
_TELLING = 6


class Fitted(NamedTuple):
    """Lines ``start`` to ``end`` (from 0, exclusive) of a file become ``lines``, which have their ends.

    ``exact`` is False where the lines were not the same any more; ``ends`` says that the hunk gives or takes the line
    end at the end of the file.
    """

    start: int
    end: int
    lines: tuple[str, ...]
    exact: bool
    ends: bool = False


class Made(NamedTuple):
    """The hunk is made already, at ``line`` (from 1)."""

    line: int


class Lost(NamedTuple):
    """There is no place for the hunk, or more than one; says why."""

    reason: str


class Base:
    """A file as it is now."""

    def __init__(self, text: str, place: Callable[[int], ShownLine] | None = None) -> None:
        self.text = text
        self._place = place or functools.partial(ShownLine, None)
        self.lines = lines_of(text)
        self.contents = [content(line) for line in self.lines]

    @cached_property
    def outline(self) -> Outline:
        return Outline(self.text)

    @cached_property
    def words(self) -> list[Word]:
        return words_of(self.contents)

    @cached_property
    def line_end(self) -> str:
        """The end that most lines have."""
        windows_ends = sum(line.endswith("\r\n") for line in self.lines)
        return "\r\n" if windows_ends * 2 > len(self.lines) else "\n"

    def told(self, *lines: int) -> str:
        """Return ``lines``, from 0, as people count them: in a notebook in its cells."""
        places = [self._place(line + 1) for line in lines]
        plain = all(place.cell is None for place in places)
        return ("lines " if len(lines) > 1 else "line ") * plain + ", ".join(map(str, places))

    def found(self, lines: Sequence[str]) -> list[int]:
        """Return where ``lines`` stand, whatever their ends."""
        wanted = [content(line) for line in lines]
        if not wanted:
            return []
        size = len(wanted)
        return [
            at for at, line in enumerate(self.contents) if line == wanted[0] and self.contents[at : at + size] == wanted
        ]


def place(piece: Piece, base: Base, *, unchanged: bool, proven: bool) -> Fitted | Made | Lost:
    """Find the one place of ``piece`` in ``base``.

    ``unchanged``: the file is the very one that the patch was made for. ``proven``: the analysis will have a say, so
    that a place may be less like the original.
    """
    start = piece.line - 1
    if unchanged:
        if base.contents[start : start + len(piece.removed)] == [content(line) for line in piece.removed]:
            return _exactly(piece, base, start)
        return Lost("the patch is damaged: its lines are not those of the file that it names")
    olds, news = _standing(piece, base, piece.removed), _standing(piece, base, piece.added)
    # What is only added beside its context leaves that context as it was: the larger of the two is what stands there.
    olds_left = [one for one in olds if not any(_within(one, other) for other in news)]
    news_left = [one for one in news if not any(_within(one, other) for other in olds)]
    if not piece.single:
        olds_left = [one for one in olds_left if _at_home(piece, base, one.core)]
    # What is right elsewhere may have been right there from the beginning.
    news_left = [one for one in news_left if _at_home(piece, base, one.core)]
    if olds_left and not (news_left and piece.fresh):
        return _among(piece, base, _cores(olds_left), lambda at: _exactly(piece, base, at))
    if news_left:
        return _among(piece, base, _cores(news_left), lambda at: Made(at + 1), made=True)
    return _with_less(piece, base, proven) or _fuzzily(piece, base, LEAST if proven else LEAST_UNPROVEN)


def _with_less(piece: Piece, base: Base, proven: bool) -> Fitted | Made | Lost | None:
    """Find the place by the lines themselves with less around them, at last only above or below; None if none is."""
    for above, below in _LESS if proven else _LESS[:2]:
        olds, news = (_standing(piece, base, side, above, below) for side in (piece.removed, piece.added))
        olds = [one for one in olds if _telling(base, one) and not any(_within(one, other) for other in news)]
        news = [one for one in news if _telling(base, one) and not any(_within(one, other) for other in olds)]
        if not piece.single or len(_cores(olds)) > 1:
            olds = [one for one in olds if _at_home(piece, base, one.core)]
        news = [one for one in news if _at_home(piece, base, one.core)]
        if len(_cores(olds)) > 1 or (not olds and len(_cores(news)) > 1):
            return None
        if olds:
            return _exactly(piece, base, olds[0].core)._replace(exact=False)
        if news:
            return Made(news[0].core + 1)
    return None


def _telling(base: Base, one: _Standing) -> bool:
    """Whether lines say enough to be known by: a blank line or a closing bracket does not."""
    return len(words_of(base.contents[one.start : one.end])) >= _TELLING


def _at_home(piece: Piece, base: Base, at: int) -> bool:
    """Whether a line (from 0) is in the function that the hunk was in, if that is still there."""
    home = piece.function
    return home is None or not base.outline.has(home) or base.outline.function_at(at + 1) == home


class _Standing(NamedTuple):
    """Lines that stand somewhere with their context: from ``start`` to ``end``, themselves from ``core`` on."""

    start: int
    end: int
    core: int


def _standing(piece: Piece, base: Base, lines: Sequence[str], above: int = NEAR, below: int = NEAR) -> list[_Standing]:
    contexts = dict.fromkeys((one[max(0, len(one) - above) :], other[:below]) for one, other in piece.contexts)
    return [
        _Standing(at, at + len(one) + len(lines) + len(other), at + len(one))
        for one, other in contexts
        for at in base.found([*one, *lines, *other])
    ]


def _within(one: _Standing, other: _Standing) -> bool:
    return other.start <= one.start and one.end <= other.end and one.end - one.start < other.end - other.start


def _cores(found: Sequence[_Standing]) -> list[int]:
    return sorted({one.core for one in found})


def _among(
    piece: Piece,
    base: Base,
    places: Sequence[int],
    chosen: Callable[[int], Fitted | Made],
    *,
    made: bool = False,
) -> Fitted | Made | Lost:
    """Choose between places that are alike, by all that is known of the original's surroundings."""
    size = len(piece.added if made else piece.removed)
    left = list(places)
    tests: tuple[Callable[[int], bool], ...] = (
        lambda at: True,
        lambda at: _same_part(piece, base, at, size),
        lambda at: piece.function is not None and base.outline.function_at(at + 1) == piece.function,
        lambda at: _same_surroundings(piece, base, at, size),
    )
    for fits in tests:
        narrowed = [at for at in left if fits(at)]
        if len(narrowed) == 1:
            return chosen(narrowed[0])
        left = narrowed or left
    where = base.told(*left[:5])
    if made:
        return Lost(f"made already, it seems, but in {len(left)} places that are equally good: {where}")
    return Lost(f"{len(left)} places are equally good: {where}")


def _same_part(piece: Piece, base: Base, start: int, size: int) -> bool:
    """Whether all of the file above the place, or all below it, is as it was, where there were such places before.

    A twin that came to be since, right above or below, would have as much to show.
    """
    if piece.single:
        return False
    return digest(base.lines[:start]) in piece.before or digest(base.lines[start + size :]) in piece.after


def _same_surroundings(piece: Piece, base: Base, start: int, size: int) -> bool:
    above, below = [content(line) for line in piece.above], [content(line) for line in piece.below]
    end = start + size
    return base.contents[max(0, start - len(above)) : start] == above and base.contents[end : end + len(below)] == below


def _exactly(piece: Piece, base: Base, start: int) -> Fitted:
    end = start + len(piece.removed)
    ends = [bool(ending(side[-1])) for side in (piece.removed, piece.added) if side]
    lines = _with_ends(piece, base, start, [content(line) for line in piece.added])
    return Fitted(start, end, lines, True, ends in ([True, False], [False, True]))


def _fuzzily(piece: Piece, base: Base, least: float) -> Fitted | Made | Lost:
    lost: Lost | None = None
    for above, below in piece.contexts:
        old, new = [*above, *piece.removed, *below], [*above, *piece.added, *below]
        found, made = windows(old, base.words, least), windows(new, base.words, least)
        if not piece.single:
            found = [one for one in found if _at_home(piece, base, _middle(one) - 1)]
        done = [one for one in made if one.distance == 0 and _at_home(piece, base, _middle(one) - 1)]
        if done and (not found or found[0].distance > 0):
            return Made(done[0].start + 1)
        if not found:
            continue
        chosen = _chosen(piece, base, old, found, above)
        outcome = chosen if isinstance(chosen, Lost) else _made_at(base, chosen, old, new, above)
        if isinstance(outcome, Fitted):
            return outcome
        lost = lost or outcome
    return lost or Lost("nothing there is like the lines that it changes")


def _first_changed(base: Base, window: Window, above: Sequence[str]) -> int:
    """The index of the first line in ``window`` after the context ``above``: the one that a reader looks for."""
    if not above:
        return window.start
    last, lines = content(above[-1]), base.contents[window.start : window.end]
    at = min(
        (index for index, line in enumerate(lines) if line == last),
        key=lambda index: abs(index + 1 - len(above)),
        default=len(above) - 1,
    )
    return min(window.start + at + 1, max(window.start, window.end - 1))


def _chosen(
    piece: Piece, base: Base, old: Sequence[str], found: Sequence[Window], above: Sequence[str]
) -> Window | Lost:
    rivals = [one for one in found if not clearly(found[0], one, old)]
    if len(rivals) > 1 and piece.function is not None:
        here = [one for one in rivals if base.outline.function_at(_middle(one)) == piece.function]
        rivals = here or rivals
    if len(rivals) > 1:
        where = base.told(*(_first_changed(base, one, above) for one in rivals[:5]))
        return Lost(f"{len(rivals)} places are about equally good: near {where}")
    return rivals[0]


def _made_at(
    base: Base, window: Window, expected: Sequence[str], wanted: Sequence[str], above: Sequence[str]
) -> Fitted | Lost:
    old = base.contents[window.start : window.end]
    new = fitted(expected, wanted, old)
    if new is None:
        return Lost(f"the code at {base.told(_first_changed(base, window, above))} has changed too much for it")
    head, tail = shared_ends(old, new)
    start, end = window.start + head, window.end - tail
    around = [ending(line) for line in base.lines[window.start : window.end]]
    line_end = next((one for one in around if one), base.line_end)
    return Fitted(start, end, tuple(line + line_end for line in new[head : len(new) - tail]), False)


def _middle(window: Window) -> int:
    return (window.start + window.end) // 2 + 1


def _with_ends(piece: Piece, base: Base, start: int, lines: Sequence[str]) -> tuple[str, ...]:
    """Return ``lines`` with the line ends of the file, which may not be those of the patch."""
    here = [ending(line) for line in base.lines[start : start + len(piece.removed)]]
    if here == [ending(line) for line in piece.removed] and len(lines) == len(piece.added):
        expected = [ending(line) for line in piece.added]
        if not piece.removed:
            around = base.lines[max(0, start - 1) : start + 1]
            expected = expected if {ending(line) for line in around} & set(expected) else [base.line_end] * len(lines)
        return tuple(line + end for line, end in zip(lines, expected, strict=True))
    common = next((end for end in here if end), base.line_end)
    return tuple(line + common for line in lines)


def composed(base: Base, places: Sequence[Fitted]) -> str:
    """Return the text of ``base`` with ``places`` made in it, which must not overlap.

    Its last line ends as it did, but where a hunk that fits exactly says otherwise.
    """
    lines = list(base.lines)
    for at in sorted(places, key=lambda one: (one.start, one.end), reverse=True):
        lines[at.start : at.end] = at.lines
    ended = [line if ending(line) else line + base.line_end for line in lines[:-1]] + lines[-1:]
    if ended and base.lines and not any(at.ends and at.start < at.end == len(base.lines) for at in places):
        last = ending(base.lines[-1])
        ended[-1] = content(ended[-1]) + (last and (ending(ended[-1]) or last))
    return "".join(ended)
