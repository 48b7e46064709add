"""What CUDA's allocator keeps beyond tensors: a cache that grows, and memory that is there in pieces only."""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

from verify.diagnosis.evidence import Sources, last, size
from verify.diagnosis.model import Clue, Fault, Kind
from verify.measured.results import Run

#: A cache is worth a word from so many bytes a step on.
_WORTH = 1 << 20
#: It grows where it has grown in so many steps after the first third.
_RISES = 3
_FEWEST_STEPS = 9
#: And what no tensor takes is so large, in proportion to the most that tensors took: all programs keep some of it.
_SHARE = 0.5
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = rf"([\d.]+) ({'|'.join(_UNITS)})"
_ASKED = re.compile(rf"Tried to allocate {_SIZE}")
#: As torch 2 says it, and as torch 1 did.
_UNUSED = re.compile(rf"and {_SIZE} is reserved by PyTorch but unallocated")
_TAKEN = re.compile(rf"{_SIZE} already allocated;.*?{_SIZE} reserved in total by PyTorch", re.DOTALL)


class Fragments(NamedTuple):
    """Bytes that an operation asked a card for, and those that the allocator had and no tensor took."""

    asked: int
    unused: int


def fragments(message: str) -> Fragments | None:
    """Read them out of the error of a card without memory; None where it does not tell.

    The allocator gives back whole blocks before it raises: what it still has lies beside tensors.
    """
    asked = _ASKED.search(message)
    if asked is None:
        return None
    if (unused := _UNUSED.search(message)) is not None:
        return Fragments(_bytes(*asked.groups()), _bytes(*unused.groups()))
    if (taken := _TAKEN.search(message)) is not None:
        allocated, reserved = _bytes(*taken.groups()[:2]), _bytes(*taken.groups()[2:])
        return Fragments(_bytes(*asked.groups()), reserved - allocated)
    return None


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNITS[unit])


def watched(run: Run) -> bool:
    """Whether ``run`` had a card with an allocator to look at."""
    event = last(run, "cache")
    return event is not None and bool(event["steps"])


def grows(run: Run) -> float | None:
    """Return the bytes a step by which a card's cache grows beyond what tensors ever took; None where it does not."""
    event = last(run, "cache")
    steps: list[list[int]] = [] if event is None else event["steps"]
    if len(steps) < _FEWEST_STEPS:
        return None
    peaks = list(itertools.accumulate((peak for _, peak in steps), max))
    unused = [reserved - peak for (reserved, _), peak in zip(steps, peaks, strict=True)][len(steps) // 3 :]
    if unused[-1] < _SHARE * peaks[-1]:
        return None
    rises = sum(after > before for before, after in itertools.pairwise(unused))
    added = (unused[-1] - unused[0]) / (len(unused) - 1)
    return added if rises >= _RISES and added >= _WORTH else None


def growing(run: Run, closer: Run | None, sources: Sources) -> list[Fault]:
    """Return the cache that grows; ``closer`` is the run that tells for which lines."""
    added = grows(run)
    event: Any = last(run, "cache")
    if added is None:
        return []
    reserved, most = event["steps"][-1][0], max(peak for _, peak in event["steps"])
    told = None if closer is None else last(closer, "cache")
    clues = [
        sources.clue("cause", row["site"], f"takes {size(row['bytes'])} more from the driver")
        for row in ([] if told is None else told["lines"])
    ]
    return [
        Fault(
            Kind.GROWING_CACHE,
            f"the CUDA cache grows by {size(added)} a step: {size(reserved)} are reserved,"
            f" and tensors took {size(most)} at most",
            clues[0].site if clues else None,
            (Clue("carrier", text="the allocator keeps blocks of each size that it was asked for"), *clues),
            "use few different sizes (pad batches to some of them), or the variable"
            " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            {"bytes_per_step": round(added), "reserved_bytes": reserved, "peak_bytes": most},
        )
    ]


def retries(run: Run) -> str:
    """Say in a sentence that steps wait for the allocator; empty where they do not."""
    event = last(run, "cache")
    if event is None or not event["retries"]:
        return ""
    return (
        f"{event['retries']} times the allocator had to give back all that it keeps to find memory: the card is nearly"
        " full, and each of these costs time"
    )
