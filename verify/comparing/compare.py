"""Two runs compared: how far they computed the same, and where they first differ.

Losses are compared where a step of both runs had equally many backwards (a merged backward has other losses);
parameters after every optimizer step, tensor by tensor, by all of their values. Bytes are compared first, then relative
distances. Everything else (gradients, buffers, learning rates, generators, outputs, prints and files) counts only where
two runs of the original agree on it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median

from verify.comparing.distances import Training, epsilon, same
from verify.comparing.gaps import Gap
from verify.comparing.traces import afterwards, of_step
from verify.measured.records import Backward, Loss, Record, Step
from verify.measured.results import Comparison, Difference, Run
from verify.measured.values import Site

#: How much further what follows a parameter may be apart than the parameter itself.
_FOLLOWS = 2.0
#: Lower types round more coarsely: so many times the distance from 1 to the next number is rounding.
_ROUNDINGS = 4
#: The share of the tolerance that is left for a loss while all parameters are the same: what may grow has not grown
#: yet. A processor computes with all bits of a type; cards may compute with fewer.
_FIRST = 0.1
#: How many times the precision of their type gradients of the same parameters are apart at most, if sums are taken in
#: another order: measured in convolutions, recurrent networks and attention, on a processor, it was 31.
_REORDERED = 128


@dataclass
class _Parting:
    """The differences so far: the first one, and the largest ones."""

    limit: float
    unsteady: frozenset[str] | None = None
    first: str = ""
    beyond: str = ""
    losses: float | None = None
    parameters: float | None = None
    updates: float | None = None
    relative: float = 0.0
    same_bits: bool = True
    first_limit: float = math.inf
    roundings: float = 0.0
    loss_first: bool = False
    random_moved: bool = False
    steps: int = 0
    backwards: int = 0
    outputs: int = 0
    undecided: str = ""
    compared: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, None] = field(default_factory=dict)
    digits: float = 0.0
    noise: float = 0.0

    def note(self, where: str, relative: float) -> None:
        self.same_bits = False
        self.first = self.first or where
        if not relative <= self.limit:
            self.beyond = self.beyond or where
        self.relative = max(self.relative, math.inf if math.isnan(relative) else relative)

    def take(self, gaps: Iterable[Gap]) -> None:
        """Count what was compared besides losses and parameters, and note what differs."""
        if self.unsteady is None:
            return
        for gap in gaps:
            if gap.where and self.noise and gap.distance <= _FOLLOWS * self.noise:
                # A running mean follows a bias that learns noise, and differs as far as that does.
                self.left_out[f"{gap.what}: they follow parameters of which gradients are rounding alone"] = None
                self.note(gap.where, 0.0)
            elif gap.missing:
                self.left_out[f"{gap.what}: {gap.missing}"] = None
            elif gap.key in self.unsteady or gap.key.partition(": ")[0] in self.unsteady:
                self.left_out[f"{gap.what}: the original, run twice, differs there"] = None
            else:
                self.compared[gap.what] += 1
                if gap.undecided and gap.relative <= self.limit and not self.same_bits:
                    # Where the training differs by rounding, so does what is computed of it.
                    self.note(gap.where, gap.relative)
                elif gap.undecided:
                    self.undecided = self.undecided or gap.where
                elif gap.digits:
                    self.digits = max(self.digits, gap.relative)
                elif gap.where:
                    self.random_moved = self.random_moved or (gap.random and self.same_bits)
                    self.note(gap.where, gap.relative)


def compare(one: Run, other: Run, *, tolerance: float, whole: bool = True, before_failure: bool = False) -> Comparison:
    """Compare ``one`` with ``other``, process by process, as far as both got.

    ``before_failure`` leaves out the turn in which ``one`` failed: what was begun there may now come in another order.
    ``whole`` also counts as a difference that one of them made fewer steps although nothing stopped it, and compares
    outputs, prints, files and the end. What ``one.unsteady`` names does not count. ``tolerance`` is relative.
    """
    rounding = max((_ROUNDINGS * epsilon(record.precision) for record in one.records), default=0.0)
    limit = max(tolerance, rounding)
    seen = _Parting(limit, one.unsteady if whole or before_failure else None)
    for record, partner in one.beside(other):
        if partner is not None:
            mine = _complete(record, stepping=bool(partner.steps)) if before_failure else record
            if before_failure and _reordered(mine, partner):
                seen.backwards += len(mine.backwards)
                seen.losses = seen.losses or 0.0
            else:
                _compare(mine, partner, seen, whole)
        elif record.backwards and whole:
            seen.note(f"process {record.process} did not train in the other run", math.inf)
    if seen.same_bits:
        difference = Difference.IDENTICAL
    else:
        difference = Difference.CLOSE if seen.relative <= limit else Difference.DIFFERENT
    return Comparison(
        difference,
        seen.beyond or seen.first,
        seen.losses,
        seen.parameters,
        seen.steps,
        seen.backwards,
        seen.random_moved,
        updates=seen.updates,
        outputs=seen.outputs,
        digits=seen.digits,
        undecided=seen.undecided,
        loss_first=seen.loss_first,
        compared=dict(seen.compared),
        not_compared=tuple(seen.left_out),
    )


def unsteady(one: Run, other: Run) -> frozenset[str]:
    """What differs, besides losses and parameters, between two runs of the same program: it cannot be compared with
    others."""
    found: set[str] = set()
    for record, partner in one.beside(other):
        if partner is not None:
            gaps = list(afterwards(record, partner))
            for step in (step for _, step in _pairs(record, partner) if step is not None):
                gaps += of_step(*step, Training([step[0]], [step[1]]), record.trained)
            found |= {gap.key for gap in gaps if gap.where}
    return frozenset(found)


def _complete(record: Record, *, stepping: bool) -> Record:
    """Return ``record`` up to the last time the failed backward succeeded, and the steps that followed it.

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
    """Whether all losses of ``one`` occur in ``other`` too, in another order: blocks were swapped within a turn.

    Steps then come at other places as well, so parameters after equally many of them cannot be compared.
    """
    mine = [loss.digest for backward in one.backwards for loss in backward.losses]
    # The turn in which it failed may already have put the later losses first.
    theirs = [loss.digest for backward in other.backwards[: 2 * len(mine) + 1] for loss in backward.losses]
    return mine != theirs[: len(mine)] and not Counter(mine) - Counter(theirs)


Pair = tuple[Step, Step]
Backwards = tuple[list[Backward], list[Backward]]


def _pairs(one: Record, other: Record) -> Iterable[tuple[Backwards | None, Pair | None]]:
    """What is compared, in the order in which it happened: the backwards before a step, and the step."""
    mine, theirs = _by_step(one), _by_step(other)
    count = min(len(one.steps), len(other.steps))
    last = (max(mine, default=0), max(theirs, default=0))
    for number in range(max(count, *last) + 1):
        backwards = None
        if number in mine and number in theirs:
            ours, others = mine[number], theirs[number]
            # The interval in which a run ended may be cut off anywhere.
            if len(ours) == len(others) or (number in last and _prefix_fits(ours, others)):
                backwards = ours, others
        yield backwards, (one.steps[number], other.steps[number]) if number < count else None


def _compare(one: Record, other: Record, seen: _Parting, whole: bool) -> None:
    usual = _usual(one)
    if one.about.get("device") == "cpu":
        seen.first_limit = max(_FIRST * seen.limit, _ROUNDINGS * epsilon(one.precision))
        # What lower types round says nothing of the gradients' own.
        seen.roundings = 0.0 if one.precision or other.precision else _REORDERED
    trained: dict[int, Training] = {}
    for backwards, step in _pairs(one, other):
        for left, right in zip(*backwards, strict=False) if backwards else ():
            if left.error is not None or right.error is not None:
                break
            seen.backwards += 1
            _compare_backward(left, right, seen, usual)
        if step is not None:
            seen.steps += 1
            index = step[0].optimizer
            if index not in trained:
                trained[index] = Training(_of(one, step[0]), _of(other, step[0]))
            _compare_step(*step, trained[index], seen, one.trained | other.trained)
    if one.precision != other.precision and seen.unsteady is not None and one.backwards and other.backwards:
        types = f"{one.precision or 'the types of parameters'} and in {other.precision or 'the types of parameters'}"
        seen.undecided = seen.undecided or f"modules compute in {types}"
    if not whole:
        return
    found = list(afterwards(one, other))
    if seen.unsteady is not None:
        seen.outputs += sum(gap.key == "outputs" and not gap.missing for gap in found)
    seen.take(found)
    if one.error is not None or other.error is not None:
        return
    # A run that was stopped might have gone on; one that came to its own end early did something else.
    if _short(one, other) or _short(other, one):
        seen.note(f"{len(one.steps)} optimizer steps and {len(other.steps)}", math.inf)


def _of(record: Record, step: Step) -> list[Step]:
    return [each for each in record.steps if each.optimizer == step.optimizer]


def _short(one: Record, other: Record) -> bool:
    return one.end in ("completed", "exit") and len(one.steps) < len(other.steps)


def _prefix_fits(ours: Sequence[Backward], others: Sequence[Backward]) -> bool:
    """Whether the shorter one was cut off by an error, not by an edit that merged its backwards."""
    shorter = min(ours, others, key=len)
    longer = max(ours, others, key=len)
    return bool(shorter) and shorter[-1].error is not None and _lines(shorter) == _lines(longer[: len(shorter)])


def _lines(backwards: Iterable[Backward]) -> list[str | None]:
    return [backward.site.function if backward.site else None for backward in backwards]


def _by_step(record: Record) -> dict[int, list[Backward]]:
    return {step: list(group) for step, group in groupby(record.backwards, key=lambda b: b.steps_before)}


def _usual(record: Record) -> dict[Site | None, float]:
    """The usual size of losses, by line: a loss that happens to be near zero is not measured by itself."""
    values: dict[Site | None, list[float]] = {}
    for backward in record.backwards:
        for loss in backward.losses:
            if loss.value is not None and math.isfinite(loss.value):
                values.setdefault(backward.site, []).append(abs(loss.value))
    return {site: median(sizes) for site, sizes in values.items()}


def _compare_backward(mine: Backward, theirs: Backward, seen: _Parting, usual: Mapping[Site | None, float]) -> None:
    if mine.rng != theirs.rng and seen.same_bits:
        seen.random_moved = True
    where = f"loss of call {mine.call} of the backward at {mine.site or '?'}"
    if len(mine.losses) != len(theirs.losses):
        seen.note(f"{where}: {len(mine.losses)} outputs and {len(theirs.losses)}", math.inf)
        return
    for left, right in zip(mine.losses, theirs.losses, strict=True):
        _compare_loss(left, right, seen, where, usual.get(mine.site, 0.0))


def _compare_loss(left: Loss, right: Loss, seen: _Parting, where: str, usual: float) -> None:
    alike = left.digest == right.digest and left.numel == right.numel
    if left.value is None or right.value is None:
        if alike and left.value is right.value:
            return
        # No number says how far apart they are: nothing shows that it is rounding, unless gradients do.
        told = left.numel == right.numel and seen.unsteady is not None
        seen.note(f"{where}: other values in a tensor of {left.numel} elements", 0.0 if told else math.inf)
        return
    if alike and same(left.value, right.value):
        seen.losses = seen.losses or 0.0
        return
    gap = _gap(left.value, right.value)
    seen.losses = _larger(seen.losses, gap)
    seen.loss_first = seen.loss_first or seen.same_bits
    size = max(abs(left.value), abs(right.value), usual)
    relative = math.inf if math.isnan(gap) else gap / size if size else 0.0
    if not seen.updates and relative > seen.first_limit:
        # Before any parameter differs, nothing has grown out of rounding.
        relative = math.inf
    seen.note(f"{where}: {left.value:.9g} and {right.value:.9g}", relative)


def _compare_step(mine: Step, theirs: Step, training: Training, seen: _Parting, others: Collection[int]) -> None:
    if mine.optimizer != theirs.optimizer or mine.count != theirs.count:
        text = f"step {seen.steps} is one of {mine.name} ({mine.count} values) and of {theirs.name} ({theirs.count})"
        seen.note(text, math.inf)
        return
    found = list(of_step(mine, theirs, training, others, seen.steps))
    # Gradients were there before the parameters changed.
    seen.take(gap for gap in found if gap.before)
    if seen.roundings and not seen.updates and seen.unsteady is not None and mine.grads and theirs.grads:
        times = training.roundings(mine.grads, theirs.grads)
        if times > seen.roundings:
            seen.undecided = seen.undecided or (
                f"gradients of step {seen.steps} are {times:.0f} times their precision apart, and no parameter is yet: "
                "that is more than another order of sums makes"
            )
    if mine.digest == theirs.digest:
        seen.parameters = seen.parameters or 0.0
    else:
        apart = training.parameters(mine.params, theirs.params)
        name = training.name(apart.place)
        moved = f" ({name or 'one'} by {apart.relative:.2g} of what it has moved)" if apart.relative else ""
        seen.note(f"parameters after step {seen.steps}: largest difference {apart.distance:.3g}{moved}", apart.relative)
        seen.parameters = _larger(seen.parameters, apart.distance)
        seen.updates = max(seen.updates or 0.0, apart.relative)
        seen.noise = max(seen.noise, training.noise)
    seen.take(gap for gap in found if not gap.before)


def _gap(left: float, right: float) -> float:
    """Return the absolute difference: 0 where both are the same, infinities and NaN included, NaN where one is not
    finite."""
    if same(left, right):
        return 0.0
    gap = abs(left - right)
    return gap if math.isfinite(gap) else math.nan


def _larger(known: float | None, gap: float) -> float:
    if known is None:
        return gap
    return math.nan if math.isnan(known) or math.isnan(gap) else max(known, gap)
