"""The smallest set of rewrites that gets a program past its crash."""

from __future__ import annotations

from codemods.rewriting.result import Mended
from codemods.terms.findings import Promise
from verify.comparing.compare import compare
from verify.judging.judge import fault_text, gets_past, progress
from verify.judging.programs import Groups, Programs, Tried, promise_of, without
from verify.measured.results import Difference


def unblocking(programs: Programs, base: Groups, pending: Groups) -> tuple[Groups, Groups]:
    """Return the smallest set of ``pending`` that gets past the crash of the program with ``base``, and the set it
    was chosen from; empty if none does."""
    dead = programs.tried(base)
    near = tuple(group for group in pending if group.key in dead.near)
    repairs = tuple(group for group in pending if promise_of(group) is Promise.REPAIR)
    for pool in dict.fromkeys([*((group,) for group in near), near, repairs, pending]):
        if pool and programs.room() and _beyond(programs, dead, (*base, *pool)):
            return _fewest(programs, dead, base, pool), pool
    return (), ()


def useless(programs: Programs, base: Groups, found: Groups, pool: Groups) -> dict[Mended, str]:
    """Return the one of ``found`` that changes what is computed although others of ``pool`` get past the crash without
    it.

    It may hide what they fix.
    """
    dead, every = programs.tried(base), (*base, *pool)
    for group in found if len(pool) > len(found) else ():
        rest = without(every, (group,))
        if not programs.room() or not gets_past(dead.run, programs.tried(rest, dead.died_at).run):
            continue
        comparison = compare(programs.tried(rest).run, programs.tried(every).run, tolerance=programs.tolerance)
        if programs.deterministic and comparison.difference is Difference.DIFFERENT:
            told = f"without it the others get past the same ({fault_text(dead.run)})"
            return {group: f"{told}, and with it something else is computed: {comparison.first}"}
    return {}


def _fewest(programs: Programs, dead: Tried, base: Groups, pool: Groups) -> Groups:
    """Return the smallest subset of ``pool``, which gets past the crash, that still does."""
    found: Groups = ()
    rest = pool
    while rest and not (found and _beyond(programs, dead, (*base, *found))):
        low, high = 1, len(rest)
        while low < high:
            if not programs.room():
                return ()
            middle = (low + high) // 2
            if _beyond(programs, dead, (*base, *found, *rest[:middle])):
                high = middle
            else:
                low = middle + 1
        found, rest = (*found, rest[low - 1]), rest[: low - 1]
    return found


def _beyond(programs: Programs, dead: Tried, groups: Groups) -> bool:
    """Whether the program with ``groups`` gets further than ``dead``."""
    after = programs.tried(groups, dead.died_at)
    if gets_past(dead.run, after.run):
        return True
    here, there = progress(dead.run), progress(after.run)
    if here != there:
        return there > here
    # Which of two places comes first nothing tells, but that one was passed on the way to the other.
    elsewhere = bool(after.died_at) and not dead.died_at & after.died_at
    return elsewhere and bool(dead.died_at & after.ran)
