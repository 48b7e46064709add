"""Records and runs made by hand, in a few words each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from verify.measured.records import Backward, Census, Forwards, Holder, Loss, Record, Step, Tensors
from verify.measured.results import Outcome, Run
from verify.measured.values import SUMS, Site, Trouble, Values

FREED = Trouble("RuntimeError", "Trying to backward through the graph a second time (...)", "freed")
OTHER = Trouble("ValueError", "bad luck", "other")


def loss(value: float) -> Loss:
    """A loss; equal values have equal digests, nan too."""
    return Loss(value, f"digest of {value!r}", 1)


def values(*tensors: Sequence[float]) -> Values:
    """What is read of these tensors: the sums of each are its own values, equal values have equal digests."""
    rows = [struct.pack(f"<{SUMS}d", *tensor, *[0.0] * (SUMS - len(tensor))) for tensor in tensors]
    return Values(f"digest of {tensors!r}", sum(map(len, tensors)), b"".join(rows))


START = Tensors(("weight",), ("float32",), values([-1.0]))


def record(
    losses: Sequence[float | Sequence[float]],
    parameters: Sequence[float] | None = None,
    *,
    error: Trouble | None = None,
    at: int | None = None,
    leak: bool | None = False,
    live: Sequence[int] | None = None,
    rng: Sequence[str] | None = None,
    wasted: int = 0,
    end: str | None = None,
    process: str = "main",
) -> Record:
    """A training of a step an entry of ``losses`` (several numbers: several backwards before the step).

    ``error`` comes out of the backward after the last step (``at`` None), else out of no backward.
    """
    made = Record(process=process)
    for number, entry in enumerate(losses):
        for value in [entry] if isinstance(entry, (int, float)) else entry:
            made.backwards.append(_backward(len(made.backwards), value, number, rng[number] if rng else "r"))
        parameter = parameters[number] if parameters is not None else float(number)
        made.steps.append(
            Step(
                optimizer=0,
                name="SGD",
                call=number + 1,
                site=Site("train.py", 9, "train"),
                time=float(number),
                live=live[number] if live else 10,
                params=values([parameter]),
                tensors=START,
                bytes=0,
                peak=0,
            )
        )
    if error is not None:
        made.error = error
        made.error_site = Site("train.py", 8, "train")
        if error.kind in ("freed", "inplace"):
            made.backwards.append(_backward(len(made.backwards), 0.5, len(made.steps), "r", error=error))
    if leak is not None:
        holders = (Holder("losses", "train", 100, 10),) if leak else ()
        made.census = Census(len(made.steps), {len(made.steps): 5}, leak, holders)
    if wasted:
        made.forwards = [Forwards(Site("train.py", 20, "evaluate"), wasted, 0, 1)]
    made.end = end or ("raised" if error else "steps")
    return made


def _backward(index: int, value: float, steps: int, rng: str, error: Trouble | None = None) -> Backward:
    fields: dict[str, Any] = {"site": Site("train.py", 8, "train"), "call": index + 1, "time": float(index)}
    return Backward(
        index=index,
        losses=(loss(value),),
        rng=rng,
        retain=False,
        create=False,
        grad=False,
        nodes=5,
        live=5,
        seconds=0.0,
        bytes=0,
        peak=0,
        error=error,
        steps_before=steps,
        **fields,
    )


def run(*records: Record, outcome: Outcome | None = None, name: str = "original") -> Run:
    """A run of these processes."""
    raised = any(made.error for made in records)
    return Run(
        name=name,
        command=("python", "train.py"),
        outcome=outcome or (Outcome.RAISED if raised else Outcome.OK),
        status=1 if raised else 0,
        wall=1.0,
        peak=1,
        records=records,
        output="",
    )
