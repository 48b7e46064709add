"""The result of one comparison: a :class:`Gap`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from verify.comparing.distances import apart
from verify.measured.records import Record
from verify.measured.values import Values

#: What an ``exact`` promise allows of totals and of outputs computed without gradients, where other kernels sum up.
LAST_DIGITS = 1e-5


@dataclass(frozen=True)
class Gap:
    """Something that was compared; ``where`` is empty where both are the same.

    ``what`` is its name for users, ``key`` identifies it when the same program is run twice. ``relative`` is the
    relative distance; ``digits``: only the last digits differ. ``undecided``: they differ, but this run does not show
    whether that has consequences. ``missing`` says why it could not be compared. ``before``: it existed before the
    parameters changed; ``random``: it is the state of a generator; ``distance``: how far apart tensors are that follow
    parameters.
    """

    what: str
    key: str
    where: str = ""
    relative: float = 0.0
    digits: bool = False
    undecided: bool = False
    missing: str = ""
    before: bool = False
    random: bool = False
    distance: float = math.inf


def quoted(text: str) -> str:
    """The beginning of ``text``, for messages."""
    return repr(text[:60])


def alike(one: Record, other: Record) -> bool:
    """Whether both ended at the same place; by an error, if it was the same in the same function."""
    mine, theirs = (
        (each.end, len(each.steps), len(each.backwards), each.error, each.error_site and each.error_site[::2])
        for each in (one, other)
    )
    return mine == theirs and one.end not in (None, "watchdog")


def values_gap(
    what: str, mine: Values, theirs: Values, names: Sequence[str], others: Sequence[str], at: str, key: str = ""
) -> Gap:
    """The gap between tensors of these ``names``."""
    key, place = key or what, what if what.endswith(at) else f"{what} {at}"
    if mine.digest == theirs.digest:
        return Gap(what, key)
    if mine.count != theirs.count or tuple(names) != tuple(others):
        return Gap(what, key, f"{place}: {mine.count} values and {theirs.count}", math.inf)
    found = apart(mine, theirs)
    name = f" {names[found.place]}" if 0 <= found.place < len(names) else ""
    where = f"{place}:{name} {share(found.relative) if found.relative else 'has other types or bits'}"
    return Gap(what, key, where, found.relative, distance=math.inf if math.isnan(found.distance) else found.distance)


def share(relative: float) -> str:
    """A distance relative to a size, for users."""
    return f"{relative:.2g} of its size" if math.isfinite(relative) else "more than its size"
