"""Folds a long row of nodes to few boxes: neighbours of one line, then what the turns of a loop repeat."""

from __future__ import annotations

import typing

#: Rows of so few boxes are read as they are; of more, what is repeated becomes one turn.
FEW = 16
#: So many repetitions are worth a fold, first; where there are still too many boxes, two are.
_TURNS = (3, 2)
#: The longest turn that is looked for, in boxes.
_LONGEST = 64
_PASSES = 6


def fold(keys: typing.Sequence[typing.Hashable], apart: typing.Iterable[int] = ()) -> list[int]:
    """The box of each of ``keys``, numbered in their order.

    Neighbours with equal keys share a box. Where that leaves many boxes, a row of boxes that comes again and again, at
    once behind itself, is folded to one such row. The boxes of the places ``apart`` are like no others.
    """
    boxes, left = _runs(keys)
    for place in apart:
        left[boxes[place]] = (left[boxes[place]], boxes[place])
    for turns in _TURNS:
        for _ in range(_PASSES):
            if len(left) <= FEW:
                return boxes
            places = _repeated(left, turns)
            if places is None:
                break
            merged, shorter = places
            # Two rows that met may begin and end with the same line.
            again, left = _runs(shorter)
            boxes = [again[merged[box]] for box in boxes]
    return boxes


def _runs(keys: typing.Sequence[typing.Hashable]) -> tuple[list[int], list[typing.Hashable]]:
    boxes: list[int] = []
    left: list[typing.Hashable] = []
    for key in keys:
        if not left or left[-1] != key:
            left.append(key)
        boxes.append(len(left) - 1)
    return boxes, left


def _repeated(keys: list[typing.Hashable], turns: int) -> tuple[list[int], list[typing.Hashable]] | None:
    """The new place of each of ``keys`` and the keys that are left; None where nothing is repeated ``turns`` times."""
    count = len(keys)
    covers = [0] * count
    periods = [0] * count
    for period in range(2, min(_LONGEST, count // turns) + 1):
        equal = 0
        for place in range(count - period - 1, -1, -1):
            equal = equal + 1 if keys[place] == keys[place + period] else 0
            times = equal // period + 1
            if times >= turns and times * period > covers[place]:
                covers[place], periods[place] = times * period, period
    if not any(covers):
        return None
    places: list[int] = []
    left: list[typing.Hashable] = []
    at = 0
    while at < count:
        period = periods[at] or 1
        first = len(left)
        left += keys[at : at + period]
        places += [first + offset % period for offset in range(covers[at] or 1)]
        at += covers[at] or 1
    return places, left
