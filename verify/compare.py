"""Two runs side by side: how far they computed the same, and where they part first.

Losses are compared where a step of the one had as many backwards as that of the other (a merged backward has other
losses); parameters after every optimizer step. What is compared are bytes first, then numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from verify.records import Backward, Loss, Record, Step
from verify.results import Comparison, Difference, Run


@dataclass
class _Parting:
    """What was seen so far: the first difference, and the largest ones."""

    first: str = ""
    losses: float | None = None
    parameters: float | None = None
    relative: float = 0.0
    same_bits: bool = True
    random_moved: bool = False
    steps: int = 0
    backwards: int = 0

    def note(self, where: str) -> None:
        self.same_bits = False
        self.first = self.first or where


def compare(one: Run, other: Run, *, tolerance: float, whole: bool = True, before_failure: bool = False) -> Comparison:
    """Compare ``one`` with ``other``, process by process, as far as both came.

    ``before_failure`` leaves out the turn in which ``one`` failed: what was begun there may come in another order now.
    ``whole`` also counts it as a difference that one of them made fewer steps although nothing stopped it.
    ``tolerance`` is relative to the largest magnitude beside it.
    """
    seen = _Parting()
    theirs = {record.process: record for record in other.records}
    for record in one.records:
        partner = theirs.get(record.process)
        if partner is not None:
            mine = _complete(record, stepping=bool(partner.steps)) if before_failure else record
            if before_failure and _reordered(mine, partner):
                seen.backwards += len(mine.backwards)
                seen.losses = seen.losses or 0.0
            else:
                _compare(mine, partner, seen, whole)
        elif record.backwards and whole:
            seen.note(f"process {record.process} did not train in the other run")
            seen.relative = math.inf
    if seen.same_bits:
        difference = Difference.IDENTICAL
    elif seen.losses is None and seen.parameters is None:
        # Other bytes, and no number that would say how far apart they are: nothing shows that it is rounding.
        difference = Difference.DIFFERENT
    else:
        difference = Difference.CLOSE if seen.relative <= tolerance else Difference.DIFFERENT
    return Comparison(
        difference, seen.first, seen.losses, seen.parameters, seen.steps, seen.backwards, seen.random_moved
    )


def _complete(record: Record, *, stepping: bool) -> Record:
    """Return ``record`` up to the last time that the backward which failed had not, and the steps that followed it.

    Where optimizers step (``stepping``), that was before the last step: an earlier call since then belongs to the turn
    that failed.
    """
    failed = next((backward for backward in record.backwards if backward.error is not None), None)
    if failed is None:
        return record
    fine = [
        backward
        for backward in record.backwards
        if backward.index < failed.index
        and backward.site == failed.site
        and (not stepping or backward.steps_before < failed.steps_before)
    ]
    if not fine:
        return replace(record, backwards=[], steps=[])
    kept = record.backwards[: record.backwards.index(fine[-1]) + 1]
    following = record.backwards[len(kept)]
    return replace(record, backwards=kept, steps=record.steps[: following.steps_before])


def _reordered(one: Record, other: Record) -> bool:
    """Whether all losses of ``one`` came up in ``other`` too, in another order: blocks were swapped within a turn.

    Steps then stand elsewhere as well, so that parameters after the same number of them mean nothing.
    """
    mine = [loss.digest for backward in one.backwards for loss in backward.losses]
    # The turn in which it failed may already have put the later losses first.
    theirs = [loss.digest for backward in other.backwards[: 2 * len(mine) + 1] for loss in backward.losses]
    return mine != theirs[: len(mine)] and not Counter(mine) - Counter(theirs)


def _compare(one: Record, other: Record, seen: _Parting, whole: bool) -> None:
    _compare_losses(one, other, seen)
    for index, (mine, theirs) in enumerate(zip(one.steps, other.steps, strict=False)):
        seen.steps += 1
        _compare_step(mine, theirs, seen, index)
    if not whole or one.error is not None or other.error is not None:
        return
    # A run that was stopped might have gone on; one that came to its own end early did something else.
    if _short(one, other) or _short(other, one):
        seen.note(f"{len(one.steps)} optimizer steps and {len(other.steps)}")
        seen.relative = math.inf


def _short(one: Record, other: Record) -> bool:
    return one.end in ("completed", "exit") and len(one.steps) < len(other.steps)


def _compare_losses(one: Record, other: Record, seen: _Parting) -> None:
    mine, theirs = _by_step(one), _by_step(other)
    # The interval in which a run ended may be cut off anywhere.
    for step in sorted(mine.keys() & theirs.keys()):
        ours, others = mine[step], theirs[step]
        last = step in (max(mine), max(theirs))
        if len(ours) != len(others) and not last:
            continue
        if len(ours) != len(others) and not _prefix_fits(ours, others):
            continue
        for left, right in zip(ours, others, strict=False):
            if left.error is not None or right.error is not None:
                break
            seen.backwards += 1
            _compare_backward(left, right, seen)


def _prefix_fits(ours: Sequence[Backward], others: Sequence[Backward]) -> bool:
    """Whether the shorter one was cut off by an error, not by an edit that merged its backwards."""
    shorter = min(ours, others, key=len)
    longer = max(ours, others, key=len)
    return bool(shorter) and shorter[-1].error is not None and _lines(shorter) == _lines(longer[: len(shorter)])


def _lines(backwards: Iterable[Backward]) -> list[str | None]:
    return [backward.site.function if backward.site else None for backward in backwards]


def _by_step(record: Record) -> dict[int, list[Backward]]:
    return {step: list(group) for step, group in groupby(record.backwards, key=lambda b: b.steps_before)}


def _compare_backward(mine: Backward, theirs: Backward, seen: _Parting) -> None:
    moved = mine.rng != theirs.rng
    if moved and seen.same_bits:
        seen.random_moved = True
    where = f"loss of call {mine.call} of the backward at {mine.site or '?'}"
    if len(mine.losses) != len(theirs.losses):
        seen.note(f"{where}: {len(mine.losses)} outputs and {len(theirs.losses)}")
        seen.relative = math.inf
        return
    for left, right in zip(mine.losses, theirs.losses, strict=True):
        _compare_loss(left, right, seen, where)


def _compare_loss(left: Loss, right: Loss, seen: _Parting, where: str) -> None:
    if left.digest == right.digest and left.numel == right.numel and _same(left.value, right.value):
        if left.value is not None:
            seen.losses = seen.losses or 0.0
        return
    if left.value is None or right.value is None:
        seen.note(f"{where}: other values in a tensor of {left.numel} elements")
        seen.relative = math.inf if left.numel != right.numel else max(seen.relative, 0.0)
        return
    gap = _gap(left.value, right.value)
    seen.note(f"{where}: {left.value:.9g} and {right.value:.9g}")
    seen.losses = _larger(seen.losses, gap)
    seen.relative = max(seen.relative, _relative(gap, abs(left.value)))


def _compare_step(mine: Step, theirs: Step, seen: _Parting, index: int) -> None:
    where = f"parameters after step {index + 1}"
    if mine.optimizer != theirs.optimizer or mine.count != theirs.count:
        seen.note(f"step {index + 1} is one of {mine.name} ({mine.count} values) and of {theirs.name} ({theirs.count})")
        seen.relative = math.inf
        return
    if mine.digest == theirs.digest:
        seen.parameters = seen.parameters or 0.0
        return
    gaps = [_gap(left, right) for left, right in zip(mine.sample, theirs.sample, strict=False)]
    gap = math.nan if any(math.isnan(g) for g in gaps) else max(gaps, default=0.0)
    size = max((abs(value) for value in mine.sample if math.isfinite(value)), default=0.0)
    seen.note(f"{where}: largest difference {gap:.3g}")
    seen.parameters = _larger(seen.parameters, gap)
    seen.relative = max(seen.relative, _relative(gap, size))


def _same(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return left == right or (math.isnan(left) and math.isnan(right))


def _gap(left: float, right: float) -> float:
    """Return the absolute difference: 0 where both are the same, not finite included, nan where only one is finite."""
    if _same(left, right):
        return 0.0
    gap = abs(left - right)
    return gap if math.isfinite(gap) else math.nan


def _relative(gap: float, size: float) -> float:
    # Below one the absolute difference counts: a loss of 1e-9 that is 2e-9 elsewhere says nothing.
    return math.inf if math.isnan(gap) else gap / max(size, 1.0)


def _larger(known: float | None, gap: float) -> float:
    if known is None:
        return gap
    return math.nan if math.isnan(known) or math.isnan(gap) else max(known, gap)
