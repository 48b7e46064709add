"""Promises become checks: what two runs must show before the rewrites between them are kept.

``before`` is a run without the rewrites in question and ``after`` one with them. Rewrites with different promises are
judged in stages (:mod:`verify.judging.stages`), so a check here always knows one promise.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from codemods.terms.counting import count_text, plain_count_text
from codemods.terms.findings import Promise
from verify.comparing.compare import compare
from verify.comparing.learning import lost
from verify.judging.endings import Quality, cut_short, earlier, ending_text, quality, worse
from verify.judging.faults import GRAPH_ERRORS, Symptoms, died, more_caught, symptoms
from verify.judging.repairs import other_loss, other_traces
from verify.measured.results import STOPPED, Comparison, Difference, Run
from verify.measured.values import Trouble, TroubleKind


@dataclass(frozen=True)
class Check:
    """What became of a check: held (True), broken (False) or not to be judged (None), and the figures behind it.

    ``unseen`` says what the promise speaks of too, and was compared with nothing; empty if there is no such thing.
    """

    held: bool | None
    why: str
    comparison: Comparison
    unseen: str = ""


def check(
    promise: Promise,
    before: Run,
    after: Run,
    *,
    deterministic: bool | None,
    tolerance: float,
    touched: Collection[tuple[str, int]] = (),
    alone: bool = True,
    by_hand: bool = False,
) -> Check:
    """Hold ``after`` to ``promise``, compared with ``before``.

    ``deterministic``: whether the original run twice computed the same; unless it did, no claim about equal numbers is
    made, only about errors and growth. ``touched`` are the lines of ``after``, by path below the root, that the
    rewrites concern: an error there is theirs. ``alone``: whether nothing more lies between the two than what it takes
    to get past the end of ``before``; of more than that nothing would be known beyond it. ``by_hand``: no rule says
    which values the changes mean to alter.
    """
    old, new = symptoms(before), symptoms(after)
    whole = promise in (Promise.EXACT, Promise.EQUIVALENT)
    comparison = compare(before, after, tolerance=tolerance, whole=whole, before_failure=promise is Promise.REPAIR)
    if new.other is not None and new.other != old.other and after.record.error_line in touched:
        return Check(False, f"a rewritten line raises {_told(after)}", comparison)
    caught = more_caught(before, after)
    if caught is not None:
        return Check(False, _caught(promise, old, *caught), comparison)
    if _goes_on(old, new, before, after) and comparison.difference is not Difference.DIFFERENT:
        past = f"it stops today ({_told(before)}); rewritten it gets past that, and stops elsewhere: {_told(after)}"
        return Check(None, past, comparison)
    worse = _worse(old, new, before, after)
    if worse:
        unknown = "" if new.error is not None else cut_short(before, after)
        return Check(None if unknown else False, unknown or worse, comparison)
    sooner = earlier(before, after, calls=promise is Promise.EXACT, resized=promise is Promise.BEHAVIOUR)
    if sooner:
        return Check(False if deterministic else None, sooner, comparison)
    if new.leak and not old.leak and old.error is None:
        if died(before) and progress(after) > progress(before):
            early = f"it stops today ({_told(before)}), too early to tell growth; rewritten it goes on"
            return Check(None, f"{early}, and {new.growth}", comparison)
        return Check(False, f"in the rewritten program {new.growth}", comparison)
    if promise is Promise.BEHAVIOUR:
        return _behaviour(new, after, comparison)
    if promise is Promise.REPAIR:
        found = _repair(old, new, before, after, comparison, deterministic, alone)
    else:
        found = _same(promise, old, new, before, after, comparison, deterministic, tolerance, alone)
    if found.held and (promise is Promise.REPAIR or died(before)):
        found = _still_learning(found, before, after)
    if found.held and deterministic and promise is Promise.REPAIR:
        found = _nothing_else(found, before, after, tolerance, by_hand, caught=bool(old.caught_faults))
    beyond = _beyond(before, after) if found.held else ""
    if not beyond:
        return found
    # Of a repair no more is asked; a promise of equal numbers speaks of these too.
    return replace(found, unseen=beyond) if whole else replace(found, why=f"{found.why}; {beyond}")


def _nothing_else(found: Check, before: Run, after: Run, tolerance: float, by_hand: bool, *, caught: bool) -> Check:
    """Return ``found``, a repair that holds, unless it changes more than it repairs.

    Where the original has ``caught`` errors and goes on, the two programs differ from the first such error on.
    """
    if died(before) or caught:
        other = other_loss(before, after) if by_hand else ""
        return Check(None, f"{found.why}; but {other}", found.comparison) if other else found
    if found.comparison.difference is Difference.DIFFERENT:
        # To cut a graph changes gradients, and losses by way of them; they are told, and so are their traces.
        if by_hand and found.comparison.learns_the_same:
            return Check(None, f"{found.why}; no run shows whether that is intended", found.comparison)
        if not (by_hand and found.comparison.loss_first):
            return found
        meant = "; a loss differs before any gradient does, and no run shows whether that is intended"
        return Check(None, f"{found.why}{meant}", found.comparison)
    held, what = other_traces(before, after, tolerance)
    return found if held else Check(held, f"{found.why}; but {what}", found.comparison)


def _still_learning(found: Check, before: Run, after: Run) -> Check:
    """Return ``found``, which holds as far as ``before`` can be compared, unless parameters no longer learn."""
    loss = lost(before, after, died=died(before))
    if not loss.text:
        return found
    return Check(False if loss.never or loss.nothing else None, f"{found.why}; but {loss.text}", found.comparison)


def _beyond(before: Run, after: Run) -> str:
    """Say how much ``after`` did after the point where ``before`` died; empty if that cannot be counted."""
    one, other = before.record, after.record
    for more, what in (
        (len(other.steps) - len(one.steps), "step"),
        (progress(after)[0] - progress(before)[0], "backward"),
        (len(other.outputs) - len(one.outputs), "output"),
    ):
        if died(before) and more > 0:
            were = "was" if more == 1 else "were"
            return f"{count_text(more, what)} after the end of the original {were} compared with nothing"
    return ""


def gets_past(before: Run, after: Run) -> bool:
    """Whether ``after`` ended well, or made all its steps, where ``before`` died."""
    if not died(before) or quality(after) not in (Quality.WELL, Quality.LIMIT):
        return False
    if progress(after) > progress(before):
        return True
    # An exit at the place of the error is no way past it; to come to the end of the program is.
    return progress(after) == progress(before) and after.record.end in ("completed", *STOPPED)


def _goes_on(old: Symptoms, new: Symptoms, before: Run, after: Run) -> bool:
    """Whether ``after`` fails elsewhere in the program than ``before``, which stopped for a reason outside the graph.

    Which of the two places the program reaches first is unknown.
    """
    if old.error is not None or new.error is not None or not died(before) or not died(after):
        return False
    one, other = before.record.error_line, after.record.error_line
    if one is not None and other is not None:
        return new.other != old.other and one != other and progress(after) >= progress(before)
    return progress(after) > progress(before)


def _worse(old: Symptoms, new: Symptoms, before: Run, after: Run) -> str:
    """Return what is wrong with the rewritten program and was not before; empty if nothing is."""
    fresh = new.error or new.other
    known = old.error or old.other
    if fresh is not None and (known is None or (fresh.kind, fresh.type) != (known.kind, known.type)):
        # Getting past one error to meet another is progress only if it comes later.
        if known is None or old.error is None or progress(after) <= progress(before):
            return f"the rewritten program raises {_told(after)}"
        if fresh.kind != TroubleKind.MISSING:
            return f"the first error is gone, but the rewritten program then raises {_told(after)}"
    elif fresh is not None and progress(after) < progress(before):
        return f"the rewritten program raises earlier: {_told(after)}"
    if old.error is not None and fresh is None and died(after):
        return f"the first error is gone, but the rewritten program {ending_text(after)}"
    return worse(before, after)


def _caught(promise: Promise, old: Symptoms, error: Trouble, before: int, after: int) -> str:
    told = f"{_error_text(error)} (caught {count_text(after, 'time')})"
    known = old.error or old.other
    if promise is Promise.REPAIR and known is not None and (known.type, known.kind) == (error.type, error.kind):
        return f"the error is still there: {told}"
    return f"the rewritten program raises {told}, the one before {'less often' if before else 'does not'}"


def _repair(
    old: Symptoms,
    new: Symptoms,
    before: Run,
    after: Run,
    comparison: Comparison,
    deterministic: bool | None,
    alone: bool,
) -> Check:
    past = gets_past(before, after)
    if past and not alone:
        return Check(None, _free(before), comparison)
    if not old.faulty:
        return _without_fault(old, new, before, comparison, deterministic, past)
    gone = _gone(old, new, before, after, comparison)
    if isinstance(gone, Check):
        return gone
    if new.leak:
        return Check(False, f"{gone}, but {new.growth}", comparison)
    if old.leak and old.error is None:
        if new.leak is None:
            return Check(None, f"{gone}? {new.growth}", comparison)
        # Where the original leaks, what is learned may part from the first carried step on; the figure tells.
        return Check(True, f"{gone}; {_updates(comparison, deterministic)}", comparison)
    flat = f"; {new.growth}"
    if not deterministic:
        return Check(True, f"{gone}{flat}; not deterministic, so the steps before it were not compared", comparison)
    if comparison.difference is Difference.IDENTICAL:
        upto = f"; the same bit for bit up to there ({_counts(comparison)})" if comparison.backwards else ""
        return Check(True, f"{gone}{flat}{upto}", comparison)
    if comparison.difference is Difference.CLOSE:
        return Check(True, f"{gone}{flat}; up to there {_figures(comparison)}", comparison)
    return Check(False, f"{gone}, but before it the programs differ: {comparison.first}", comparison)


def _without_fault(
    old: Symptoms,
    new: Symptoms,
    before: Run,
    comparison: Comparison,
    deterministic: bool | None,
    past: bool,
) -> Check:
    """Judge a repair where this run of the original shows no fault."""
    if past and new.error is None:
        gone = f"the original stops today ({_told(before)}), the rewritten program runs; {new.growth}"
        if deterministic and comparison.difference is Difference.DIFFERENT:
            return Check(False, f"{gone}, but before that the programs differ: {comparison.first}", comparison)
        return Check(not new.leak, gone, comparison)
    if died(before):
        return Check(None, f"the original stops for another reason: {_told(before)}", comparison)
    if not deterministic:
        return Check(None, "no error and no growth in the original, and not deterministic here", comparison)
    if comparison.difference is not Difference.DIFFERENT:
        same = _figures(comparison)
        return Check(None, f"no error and no growth in the original within this run; {same}", comparison)
    if old.leak is None:
        return Check(None, f"the original shows no error, and it is {old.growth}", comparison)
    differs = f"the original runs without error and growth, the rewritten one differs: {comparison.first}"
    return Check(False, differs, comparison)


def _gone(old: Symptoms, new: Symptoms, before: Run, after: Run, comparison: Comparison) -> str | Check:
    """Say which fault of the original is gone; return a check if it is not, or if that is unknown."""
    if old.error is not None:
        if new.error is not None:
            return Check(False, f"the error is still there: {_told(after)}", comparison)
        if progress(after) <= progress(before):
            return Check(None, "the rewritten run came no further than the original's error", comparison)
        return f"the error of the original ({_told(before)}) is gone"
    if old.leak:
        return (
            Check(False, f"still {new.growth}", comparison)
            if new.leak
            else (f"{old.growth}, and no longer: {new.growth}")
        )
    if new.caught_faults:
        still = f"{_error_text(new.caught_faults[0].error)} (caught {count_text(len(new.caught_faults), 'time')})"
        return Check(False, f"the error is still there: {still}", comparison)
    first, count = old.caught_faults[0], len(old.caught_faults)
    return f"the error that the original catches ({_error_text(first.error)}, {count_text(count, 'time')}) is gone"


def _updates(comparison: Comparison, deterministic: bool | None) -> str:
    """Compare the updates of the program that no longer leaks with those of the leaking one, in words."""
    if not deterministic:
        return "not deterministic, so the updates were not compared"
    if comparison.difference is not Difference.DIFFERENT:
        return _figures(comparison)
    if comparison.learns_the_same:
        return f"losses and parameters are those of the original, something else is not: {comparison.first}"
    return f"it makes other updates than the original: {_figures(comparison)}, first {comparison.first}"


def _free(before: Run) -> str:
    return f"what runs after the end of the original ({_told(before)}) was compared with nothing"


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
    after: Run,
    comparison: Comparison,
    deterministic: bool | None,
    tolerance: float,
    alone: bool,
) -> Check:
    saved = _saved(old, new)
    compared = bool(comparison.backwards or comparison.steps or comparison.outputs)
    if gets_past(before, after) and comparison.difference is not Difference.DIFFERENT:
        if not alone:
            return Check(None, _free(before), comparison)
        if not compared or (deterministic and comparison.difference is Difference.IDENTICAL):
            # Old forms that today's torch refuses: equal to what they computed is all that can be asked of the rewrite.
            same = f"; {_figures(comparison)} up to there" if compared else ""
            runs = f"the original stops today ({_told(before)}), the rewritten program runs{same}"
            return Check(True, runs, comparison)
    kernels = before.unrepeatable
    near = (Difference.IDENTICAL, Difference.CLOSE) if promise is Promise.EQUIVALENT else (Difference.IDENTICAL,)
    if not deterministic and not (kernels and comparison.difference in near):
        why = (
            f"torch has no deterministic kernel for {', '.join(kernels)}"
            if kernels
            else "the original, run twice, differs"
        )
        return Check(None, f"not deterministic here: {why}{saved}", comparison)
    if comparison.difference is Difference.IDENTICAL:
        if not compared:
            if saved and not (new.error or new.other):
                return Check(True, f"no backward in this run, so no numbers to compare{saved}", comparison)
            return Check(None, "no backward and no step in this run: nothing to compare", comparison)
        if comparison.undecided:
            return Check(None, f"{_figures(comparison)}, but {comparison.undecided}", comparison)
        return Check(True, f"{_figures(comparison)}{saved}", comparison)
    moved = " (the random numbers moved)" if comparison.random_moved else ""
    if promise is Promise.EQUIVALENT and comparison.difference is Difference.CLOSE:
        if comparison.undecided:
            return Check(None, f"{_figures(comparison)}, but {comparison.undecided}", comparison)
        return Check(True, f"{_figures(comparison)}, within {tolerance:g}{saved}", comparison)
    return Check(False, f"not the same{moved}: {comparison.first}", comparison)


def _saved(old: Symptoms, new: Symptoms) -> str:
    """Return what the rewrite saved, as the end of a sentence; empty if nothing was measured."""
    parts = []
    if old.leak and new.leak is False:
        parts.append(f"graph growth {old.slope:.0f} nodes a step before, none after")
    elif old.live and new.live and max(new.live) < max(old.live):
        parts.append(f"live graph nodes at most {max(old.live)} before, {max(new.live)} after")
    if (after := sum(f.calls for f in new.wasted)) < (before := sum(f.calls for f in old.wasted)):
        parts.append(f"forwards that built a graph for nothing: {before} before, {after} after")
    return "; " + "; ".join(parts) if parts else ""


def _figures(comparison: Comparison) -> str:
    if comparison.difference is Difference.IDENTICAL:
        digits = f"; last digits differ, by {comparison.digits:.2g} of their size" if comparison.digits else ""
        return f"bit for bit the same over {_counts(comparison)}{digits}"
    parts = []
    if comparison.losses is not None:
        parts.append(f"losses differ by at most {comparison.losses:.2g}")
    if comparison.parameters is not None:
        differ = "" if parts else "differ "
        parts.append(f"parameters {differ}by at most {comparison.parameters:.2g}")
    if comparison.updates:
        parts[-1] += f" ({comparison.updates:.2g} of what they have moved)"
    return f"{' and '.join(parts) or comparison.first} over {_counts(comparison)}"


def _counts(comparison: Comparison) -> str:
    if not comparison.steps and not comparison.backwards and comparison.outputs:
        return f"{plain_count_text(comparison.outputs, 'output')} of modules"
    return f"{plain_count_text(comparison.steps, 'step')} and {plain_count_text(comparison.backwards, 'backward')}"


def progress(run: Run) -> tuple[int, int]:
    """How far a run got: backwards completed without error, then steps."""
    record = run.record
    return sum(b.error is None for b in record.backwards), len(record.steps)


def fault_text(run: Run) -> str:
    """Return what is wrong with the graph in ``run``: its error, its growth or what it catches; empty if nothing."""
    seen = symptoms(run)
    if seen.error is not None or died(run):
        return _told(run)
    if seen.leak:
        return seen.growth
    return _error_text(seen.caught_faults[0].error) if seen.caught_faults else ""


def _told(run: Run) -> str:
    error = run.error
    if error is None:
        return ending_text(run) if died(run) else run.outcome.value
    site = run.record.error_site
    return _error_text(error) + (f" at {site}" if site else "")


def _error_text(error: Trouble) -> str:
    line = next(iter(error.message.strip().splitlines()), "")
    if error.kind in GRAPH_ERRORS:
        # What follows is advice of torch's own, retain_graph=True among it.
        line = re.split(r"[:.] | \(", line, maxsplit=1)[0]
    return (f"{error.type}: {line}" if line else error.type)[:160]
