"""Two runs side by side, promise by promise: what the rewritten one did that it must not."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import zip_longest

import numpy

from tests.hunt.running import Arrays, Run, Step

CLOSE = 1e-3
"""What rounding may make of an update, relative to all that a tensor has changed since it was made."""

LEAST = 1e-9
"""Updates are the same if they are no further apart than this."""

_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")
_DRESS = re.compile(r", grad_fn=<\w+>|, requires_grad=True|tensor\(|[()\[\]]")


def raises_anew(before: Run, after: Run) -> str:
    """What ``after`` raises that ``before`` did not; empty if nothing."""
    if after.error is None or (after.error, _said(after)) == (before.error, _said(before)):
        return ""
    if before.error is not None and _way(after) > _way(before):
        return ""
    if before.error is not None and not before.graph_error and not after.graph_error:
        return ""
    return f"raises {after.error} at {after.where}: {after.message[:150]}"


def _way(run: Run) -> tuple[int, int]:
    """How far it came."""
    return len(run.steps), len(run.losses)


def _said(run: Run) -> str:
    """The message of its error, without the hint how to find the line, which anomaly detection words otherwise."""
    return run.message.partition(" Hint: ")[0]


def exact(before: Run, after: Run) -> str:
    """What differs between two runs that must compute the same, bit for bit; empty if nothing.

    Where ``before`` broke off, only as far as it came.
    """
    ended = before.error is not None
    fresh = raises_anew(before, after)
    if fresh:
        return fresh
    for number, (left, right) in enumerate(zip_longest(before.losses, after.losses)):
        if left is None or right is None:
            if ended and left is None:
                break
            return f"{len(before.losses)} backwards and {len(after.losses)}"
        if not _same(left, right):
            return f"loss of backward {number + 1}: {_shown(left)} and {_shown(right)}"
    wrong = _steps(before, after, lambda old, new, start: _same(old, new), whole=not ended)
    if wrong or ended:
        return wrong
    if len(before.state) == len(after.state):
        for number, (old, new) in enumerate(zip(before.state, after.state, strict=True)):
            if not _same(old, new):
                return f"state of module {number}"
    else:
        return f"{len(before.state)} modules and {len(after.state)}"
    if before.rng != after.rng:
        return "random numbers moved"
    return output(before.output, after.output)


def equivalent(before: Run, after: Run, *, least: float = LEAST) -> str:
    """What differs between two runs by more than rounding, and by more than ``least``; empty if nothing."""
    ended = before.error is not None
    fresh = raises_anew(before, after)
    return fresh or _steps(before, after, partial(_close, least=least), whole=not ended)


def repair(before: Run, after: Run, *, graphs: bool = True) -> str:
    """What a repair did wrong: another course up to the failure, or, of ``graphs``, an error of autograd still."""
    fresh = raises_anew(before, after)
    if fresh:
        return fresh
    if before.error is None and not grows(before):
        return (
            ""
            if not exact(before, after)
            else "needless: the original neither raises nor grows, and learns something else"
        )
    if before.error is None:
        return ""
    wrong = _steps(before, after, _close, whole=False)
    if wrong:
        return f"before the failure: {wrong}"
    # Another error that comes later is another mistake, which the first one hid.
    hidden = _said(before) != _said(after) and _way(after) > _way(before)
    if graphs and before.graph_error and after.graph_error and not hidden:
        return f"still raises at {after.where}: {after.message[:100]}"
    return ""


def behaviour(before: Run, after: Run) -> str:
    """What ``after`` raises where ``before`` ran."""
    return raises_anew(before, after)


def grows(run: Run) -> bool:
    """Whether more of the graph was alive after each of the last steps."""
    alive = run.alive
    return len(alive) >= 3 and alive[-1] > alive[len(alive) // 2] > 0


def output(before: str, after: str) -> str:
    """Where two outputs part by more than the digits of totals; empty if nowhere."""
    for left, right in zip_longest(before.splitlines(), after.splitlines(), fillvalue=""):
        one, other = _DRESS.sub("", left), _DRESS.sub("", right)
        if "".join(_NUMBER.sub("#", one).split()) != "".join(_NUMBER.sub("#", other).split()):
            return f"output: {left!r} and {right!r}"
        for mine, theirs in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True):
            if abs(float(mine) - float(theirs)) > 2e-3 * max(1.0, abs(float(mine))):
                return f"output: {left!r} and {right!r}"
    return ""


Equal = Callable[[Arrays, Arrays, Arrays], bool]


def _steps(before: Run, after: Run, equal: Equal, *, whole: bool) -> str:
    """Where the parameters after the steps of each optimizer part; ``whole``: it must be as many steps."""
    mine, theirs = _by_optimizer(before.steps), _by_optimizer(after.steps)
    for number in sorted(mine.keys() | theirs.keys()):
        ours, others = mine[number], theirs[number]
        if len(ours) > len(others) or (whole and len(ours) != len(others)):
            return f"{len(ours)} steps of optimizer {number} and {len(others)}"
        for count, (old, new) in enumerate(zip(ours, others, strict=False)):
            if not equal(old, new, before.starts.get(number, old)):
                return f"parameters after step {count + 1} of optimizer {number}: {_gap(old, new)}"
    return ""


def _by_optimizer(steps: list[Step]) -> defaultdict[int, list[Arrays]]:
    found = defaultdict(list)
    for step in steps:
        found[step.optimizer].append(step.parameters)
    return found


def _same(old: Arrays, new: Arrays) -> bool:
    return len(old) == len(new) and all(
        a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(old, new, strict=True)
    )


def _close(old: Arrays, new: Arrays, start: Arrays, *, least: float = LEAST) -> bool:
    if len(old) != len(new):
        return False
    for a, b, begun in zip(old, new, start, strict=True):
        if a.shape != b.shape or not numpy.array_equal(numpy.isfinite(a), numpy.isfinite(b)):
            return False
        moved = float(numpy.nan_to_num(abs(a - begun)).max(initial=0.0))
        if float(numpy.nan_to_num(abs(a - b)).max(initial=0.0)) > CLOSE * moved + least:
            return False
    return True


def _gap(old: Arrays, new: Arrays) -> str:
    if len(old) != len(new):
        return f"{len(old)} tensors and {len(new)}"
    gaps = [
        float(abs(a - b).max(initial=0.0)) if a.shape == b.shape else float("inf")
        for a, b in zip(old, new, strict=True)
    ]
    return f"{max(gaps, default=0.0):.3g} apart"


def _shown(arrays: Arrays) -> str:
    return ", ".join(f"{a.item():.9g}" if a.size == 1 else f"shape {a.shape}" for a in arrays)
