"""What a run comes to: what learns, time, memory, losses."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from verify.diagnosis.evidence import last
from verify.diagnosis.model import Measures
from verify.measured.results import Run


def measured(run: Run) -> Measures:
    """Return what ``run``, the first one of a diagnosis, comes to."""
    learning, holdings, walks = (last(run, what) for what in ("learning", "holdings", "walks"))
    taught: Mapping[str, Any] = {"meant": 0, "learning": 0, "idle": []} if learning is None else learning["taught"]
    backwards = [one for one in run.record.backwards if one.error is None and not one.grad]
    # A turn ends with the step of one optimizer: of versions with more and fewer backwards the turns compare.
    steps = [step for step in run.record.steps if step.optimizer == run.record.steps[0].optimizer]
    moments = [one.time for one in (steps if len(steps) > 1 else backwards)]
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    rows = [] if walks is None else walks["backwards"]
    walked = [loss for one in run.record.backwards[:1] for loss in one.losses[:1]]
    return Measures(
        meant=taught["meant"],
        learning=taught["learning"],
        idle=tuple(taught["idle"]),
        starved=tuple(_starved([] if learning is None else learning["optimizers"])),
        seconds=statistics.median(gaps[len(gaps) // 2 :]) if gaps else None,
        saved=None if holdings is None else holdings["saved"],
        nodes=rows[-1][1] + rows[-1][2] if rows else None,
        losses=tuple(loss.value for one in backwards for loss in one.losses[:1] if loss.value is not None),
        first=walked[0].value if walked else None,
    )


def _starved(optimizers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Each parameter that other steps learn from, and those of an optimizer that holds it too never do."""
    for row in optimizers:
        for silent in row["silent"] if row["steps"] else ():
            if silent["reached"]:
                yield f"{silent['name'] or 'a parameter'} for optimizer {row['index'] + 1} ({row['name']})"
