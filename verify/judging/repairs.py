"""What a repair must not change: the values up to the error, and whatever a leak never touched."""

from __future__ import annotations

import dataclasses

from verify.comparing.compare import compare
from verify.measured.records import Backward, Loss
from verify.measured.results import Difference, Run

#: Before any parameter has moved otherwise, nothing but the order of a sum makes a loss another one.
_LAST_DIGITS = 1e-6


def other_loss(before: Run, after: Run) -> str:
    """Say that the loss on which ``before`` failed never appears in ``after``; empty if it does, or none is known.

    Both computed the same until then, so the forward of that loss was changed, or its backward is gone.
    """
    failed = next((backward for backward in before.record.backwards if backward.error is not None), None)
    if failed is None:
        return ""
    # Blocks may have been swapped within a turn.
    near = after.record.backwards[: 2 * failed.index + 2]
    if any(_same(failed, backward) for backward in near):
        return ""
    match = next((backward for backward in near if backward.index == failed.index), None)
    if match is None:
        return ""
    values = " and ".join(f"{loss.value:.9g}" for loss in (*failed.losses, *match.losses) if loss.value is not None)
    where = f"the loss on which the original failed, of call {failed.call} of the backward at {failed.site or '?'},"
    return f"{where} is another one{f': {values}' if values else ''}; no run shows whether that is intended"


def _same(one: Backward, other: Backward) -> bool:
    return len(one.losses) == len(other.losses) and all(map(_alike, one.losses, other.losses))


def _alike(one: Loss, other: Loss) -> bool:
    if one.digest == other.digest or one.value is None or other.value is None:
        return one.numel == other.numel and one.digest == other.digest
    return abs(one.value - other.value) <= _LAST_DIGITS * max(abs(one.value), abs(other.value))


def other_traces(before: Run, after: Run, tolerance: float) -> tuple[bool | None, str]:
    """Hold all but losses and updates of two programs together that make the same updates.

    Returns True where they agree, False where they do not, None where nothing tells what a difference would come to;
    and what differs.
    """
    # Of gradients that no optimizer uses nothing is made, and to cut a graph changes them.
    unused = (before.unsteady or frozenset()) | {"waiting gradients"}
    whole = compare(dataclasses.replace(before, unsteady=unused), after, tolerance=tolerance)
    if whole.difference is Difference.DIFFERENT:
        return False, whole.first
    return (None, whole.undecided) if whole.undecided else (True, "")
