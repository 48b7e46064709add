"""Promises become checks: what two runs must show for the rewrites between them to be kept.

``before`` is a run without the rewrites in question and ``after`` one with them. Rewrites whose promises differ are
judged in stages (:mod:`verify.stages`), so a check here always knows one promise.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from codemods.findings import Promise
from verify.compare import compare
from verify.faults import GRAPH_ERRORS, Symptoms, symptoms
from verify.results import Comparison, Difference, Outcome, Run


@dataclass(frozen=True)
class Check:
    """What became of a check: held (True), broken (False) or not to be judged (None), and the figures behind it."""

    held: bool | None
    why: str
    comparison: Comparison


def check(
    promise: Promise,
    before: Run,
    after: Run,
    *,
    deterministic: bool | None,
    tolerance: float,
    touched: Collection[tuple[str, int]] = (),
) -> Check:
    """Hold ``after`` to ``promise``, compared with ``before``.

    ``deterministic``: whether the original run twice computed the same; unless it did, no claim about equal numbers is
    made, only about errors and growth. ``touched`` are the lines of ``after``, by path below the root, that the
    rewrites concern: an error there is theirs.
    """
    old, new = symptoms(before), symptoms(after)
    whole = promise in (Promise.EXACT, Promise.EQUIVALENT)
    comparison = compare(before, after, tolerance=tolerance, whole=whole, before_failure=promise is Promise.REPAIR)
    at = after.record.error_site
    if new.other is not None and new.other != old.other and at is not None and (at.path, at.line) in touched:
        return Check(False, f"a rewritten line raises {_told(after)}", comparison)
    if _goes_on(old, new, before, after) and comparison.difference is not Difference.DIFFERENT:
        past = f"it stops today ({_told(before)}); rewritten it gets past that, and stops elsewhere: {_told(after)}"
        return Check(None, past, comparison)
    worse = _worse(old, new, before, after)
    if worse:
        return Check(False, worse, comparison)
    if promise is Promise.REPAIR:
        return _repair(old, new, before, after, comparison, deterministic)
    if promise is Promise.BEHAVIOUR:
        return _behaviour(new, after, comparison)
    return _same(promise, old, new, before, comparison, deterministic, tolerance)


def _goes_on(old: Symptoms, new: Symptoms, before: Run, after: Run) -> bool:
    """Whether ``after`` meets another error in another place of the program, where ``before`` stopped for a reason
    that is not the graph: which of the two comes first in the program nothing tells."""
    if old.other is None or new.other is None or new.other == old.other or _progress(after) < _progress(before):
        return False
    one, other = before.record.error_site, after.record.error_site
    return one is not None and other is not None and (one.path, one.line) != (other.path, other.line)


def _worse(old: Symptoms, new: Symptoms, before: Run, after: Run) -> str:
    """Return what the rewritten program does that the one before did not, empty if nothing."""
    if after.outcome is Outcome.NOT_STARTED and before.outcome is not Outcome.NOT_STARTED:
        return "the rewritten program does not start"
    fresh = new.error or new.other
    known = old.error or old.other
    if fresh is not None and (known is None or (fresh.kind, fresh.type) != (known.kind, known.type)):
        # Getting past one error to meet another is progress only if it comes later.
        if known is None or old.error is None or _progress(after) <= _progress(before):
            return f"the rewritten program raises {_told(after)}"
        if fresh.kind != "missing":
            return f"the first error is gone, but the rewritten program then raises {_told(after)}"
    elif fresh is not None and _progress(after) < _progress(before):
        return f"the rewritten program raises earlier: {_told(after)}"
    if after.outcome not in (Outcome.OK, Outcome.RAISED) and before.outcome is Outcome.OK:
        return f"the rewritten program {_ending(after)}, the original does not"
    if new.leak and not old.leak and old.error is None:
        return f"in the rewritten program {new.growth}"
    return ""


def _repair(
    old: Symptoms, new: Symptoms, before: Run, after: Run, comparison: Comparison, deterministic: bool | None
) -> Check:
    if not old.faulty:
        if old.other is not None and new.error is None and new.other is None and _progress(after) > _progress(before):
            gone = f"the original stops today ({_told(before)}), the rewritten program runs; {new.growth}"
            if deterministic and comparison.difference is Difference.DIFFERENT:
                return Check(False, f"{gone}, but before that the programs differ: {comparison.first}", comparison)
            return Check(not new.leak, gone, comparison)
        if old.other is not None:
            return Check(None, f"the original stops for another reason: {_told(before)}", comparison)
        if deterministic and comparison.difference is Difference.IDENTICAL:
            same = _figures(comparison)
            return Check(None, f"no error and no growth in the original within this run; {same}", comparison)
        if old.leak is None:
            return Check(None, f"the original shows no error, and it is {old.growth}", comparison)
        return Check(False, f"the original runs without error and growth, the rewritten one differs: "
                     f"{comparison.first or 'not deterministic'}", comparison)  # fmt: skip
    if old.error is not None:
        if new.error is not None:
            return Check(False, f"the error is still there: {_told(after)}", comparison)
        if _progress(after) <= _progress(before):
            return Check(None, "the rewritten run came no further than the original's error", comparison)
        gone = f"the error of the original ({_told(before)}) is gone"
    else:
        if new.leak:
            return Check(False, f"still {new.growth}", comparison)
        gone = f"{old.growth}, and no longer: {new.growth}"
    if new.leak:
        return Check(False, f"{gone}, but {new.growth}", comparison)
    if new.leak is None and old.error is None:
        return Check(None, f"{gone}? {new.growth}", comparison)
    flat = "" if old.error is None else f"; {new.growth}"
    if old.error is None:
        # Where the original leaks, what is learned may part from the first carried step on; the figure tells.
        return Check(True, f"{gone}; {_figures(comparison)}", comparison)
    if not deterministic:
        return Check(True, f"{gone}{flat}; not deterministic, so the steps before it were not compared", comparison)
    if comparison.difference is Difference.IDENTICAL:
        upto = f"; the same bit for bit up to there ({_counts(comparison)})" if comparison.backwards else ""
        return Check(True, f"{gone}{flat}{upto}", comparison)
    if comparison.difference is Difference.CLOSE:
        return Check(True, f"{gone}{flat}; up to there {_figures(comparison)}", comparison)
    return Check(False, f"{gone}, but before it the programs differ: {comparison.first}", comparison)


def _behaviour(new: Symptoms, after: Run, comparison: Comparison) -> Check:
    if new.error is not None or new.other is not None:
        return Check(False, f"the rewritten program raises {_told(after)}", comparison)
    if new.leak:
        return Check(False, f"in the rewritten program {new.growth}", comparison)
    if not after.record.steps and not after.record.backwards:
        return Check(None, "the rewritten program made no step", comparison)
    return Check(True, f"runs, {new.growth}; learns something else: {_figures(comparison)}", comparison)


def _same(
    promise: Promise,
    old: Symptoms,
    new: Symptoms,
    before: Run,
    comparison: Comparison,
    deterministic: bool | None,
    tolerance: float,
) -> Check:
    saved = _saved(old, new)
    stops = old.other is not None and new.error is None and new.other is None
    compared = bool(comparison.backwards or comparison.steps)
    if stops and (not compared or (deterministic and comparison.difference is Difference.IDENTICAL)):
        # Old forms that today's torch refuses: equal to what they computed is all that can be asked of the rewrite.
        same = f"; {_figures(comparison)} up to there" if compared else ""
        return Check(True, f"the original stops today ({_told(before)}), the rewritten program runs{same}", comparison)
    if not deterministic:
        return Check(None, f"not deterministic here: the original, run twice, differs{saved}", comparison)
    if comparison.difference is Difference.IDENTICAL:
        if not compared:
            if saved and not (new.error or new.other):
                return Check(True, f"no backward in this run, so no numbers to compare{saved}", comparison)
            return Check(None, "no backward and no step in this run: nothing to compare", comparison)
        return Check(True, f"{_figures(comparison)}{saved}", comparison)
    moved = " (the random numbers moved)" if comparison.random_moved else ""
    if promise is Promise.EQUIVALENT and comparison.difference is Difference.CLOSE:
        return Check(True, f"{_figures(comparison)}, within {tolerance:g}{saved}", comparison)
    return Check(False, f"not the same{moved}: {comparison.first}", comparison)


def _saved(old: Symptoms, new: Symptoms) -> str:
    """Return what the rewrite saved, as the end of a sentence; empty if nothing was measured."""
    parts = []
    if old.leak and new.leak is False:
        parts.append(f"graph growth {old.slope:.0f} nodes a step before, none after")
    elif old.live and new.live and max(new.live) < max(old.live):
        parts.append(f"live graph nodes at most {max(old.live)} before, {max(new.live)} after")
    before, after = sum(f.calls for f in old.wasted), sum(f.calls for f in new.wasted)
    if after < before:
        parts.append(f"forwards that built a graph for nothing: {before} before, {after} after")
    return "; " + "; ".join(parts) if parts else ""


def _figures(comparison: Comparison) -> str:
    if comparison.difference is Difference.IDENTICAL:
        return f"bit for bit the same over {_counts(comparison)}"
    parts = []
    if comparison.losses is not None:
        parts.append(f"losses differ by at most {comparison.losses:.2g}")
    if comparison.parameters is not None:
        parts.append(f"parameters by at most {comparison.parameters:.2g}" if parts else
                     f"parameters differ by at most {comparison.parameters:.2g}")  # fmt: skip
    return f"{' and '.join(parts) or comparison.first} over {_counts(comparison)}"


def _counts(comparison: Comparison) -> str:
    steps = f"{comparison.steps} step{'s' * (comparison.steps != 1)}"
    return f"{steps} and {comparison.backwards} backward{'s' * (comparison.backwards != 1)}"


def _progress(run: Run) -> tuple[int, int]:
    """How far a run came: completed backwards without error, then steps."""
    record = run.record
    return sum(b.error is None for b in record.backwards), len(record.steps)


def _told(run: Run) -> str:
    error = run.error
    if error is None:
        return run.outcome.value
    site = run.record.error_site
    line = next(iter(error.message.strip().splitlines()), "")
    if error.kind in GRAPH_ERRORS:
        # What follows is advice of torch's own, retain_graph=True among it.
        line = re.split(r"[:.] | \(", line, maxsplit=1)[0]
    text = f"{error.type}: {line}" if line else error.type
    return text[:160] + (f" at {site}" if site else "")


def _ending(run: Run) -> str:
    return {
        Outcome.TIMEOUT: "does not end in time",
        Outcome.MEMORY: "runs out of memory",
        Outcome.DISK: "writes too much",
    }.get(run.outcome, f"is {run.outcome.value}")
