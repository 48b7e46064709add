"""How a run ended, and whether it ended worse or earlier than another."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from codemods.terms.counting import count_text
from verify.comparing.learning import idle_optimizers
from verify.judging.faults import died
from verify.measured.records import Record
from verify.measured.results import STOPPED, Outcome, Run

#: Processes that train together are ended when one has made its steps; the others may be so many behind.
_BEHIND = 2


class Quality(enum.IntEnum):
    """How well a run ended, best first: at its end or after its steps, at a limit, without a report, badly, not
    started.

    ``os._exit(0)`` and replacing the process by another program are ends without a report.
    """

    WELL = 0
    LIMIT = 1
    GONE = 2
    DEAD = 3
    NEVER = 4


def quality(run: Run) -> Quality:
    """Return how well ``run`` ended."""
    if run.outcome in (Outcome.NOT_STARTED, Outcome.NO_TORCH):
        return Quality.NEVER
    if died(run):
        return Quality.DEAD
    if run.outcome in (Outcome.TIMEOUT, Outcome.DISK):
        return Quality.LIMIT
    main = next((record for record in run.records if record.process == "main"), None)
    if main is None:
        return Quality.WELL
    if run.status and main.end == "exit" and main.status:
        # Its workers were stopped by the probe, which says nothing of itself.
        return Quality.DEAD
    return Quality.GONE if main.end in (None, "left") else Quality.WELL


def worse(before: Run, after: Run) -> str:
    """Say how ``after`` ended worse than ``before``; empty if it did not."""
    one, other = quality(before), quality(after)
    if other <= one:
        return ""
    if other is Quality.NEVER:
        return "the rewritten program does not start"
    return f"the rewritten program {ending_text(after)}, which the one before does not"


def earlier(before: Run, after: Run, *, calls: bool = False, resized: bool = False) -> str:
    """Say in which process ``after`` ended by itself after fewer optimizer steps than ``before``; empty if in none.

    With ``calls`` backwards are counted where neither makes steps. With ``resized`` an optimizer may train other
    parameters than before.
    """
    theirs = {record.process: record for record in after.records}
    for mine in before.records:
        other = theirs.get(mine.process)
        if other is None:
            if mine.steps or mine.backwards:
                return f"process {mine.process} does not train in the rewritten program"
            continue
        if other.end == "watchdog" or _ended_by_mate(other, after):
            continue
        idle = idle_optimizers(mine, other, resized=resized)
        if idle:
            return f"in the rewritten program {idle[0]} no longer makes steps"
        if other.end in STOPPED:
            continue
        if len(other.steps) < len(mine.steps):
            made = count_text(len(mine.steps), "step")
            return f"the rewritten program {ending_text(after)}: {len(other.steps)} of {made}"
        if calls and not mine.steps and len(other.backwards) < len(mine.backwards):
            made = count_text(len(mine.backwards), "backward")
            return f"the rewritten program {ending_text(after)}: {len(other.backwards)} of {made}"
    return ""


def cut_short(before: Run, after: Run) -> str:
    """Say that ``before`` was stopped from outside before it reached the place where ``after`` fails; empty if not.

    How far a program gets in a given time depends on the machine, and what it would have done next is unknown.
    """
    if quality(before) is not Quality.LIMIT or not died(after):
        return ""
    if any(len(one) > len(other) for one, other in zip(_calls(before), _calls(after), strict=True)):
        return ""
    return (
        f"the original {ending_text(before)}, and it is not known whether it would go on where the rewritten one stops"
    )


def _calls(run: Run) -> tuple[Sequence[object], ...]:
    return run.record.backwards, run.record.steps, run.record.outputs


def ending_text(run: Run) -> str:
    """Return how ``run`` ended, as a verb: ``ends with status 3``."""
    limit = {
        Outcome.TIMEOUT: "does not end in time",
        Outcome.MEMORY: "runs out of memory",
        Outcome.DISK: "writes too much",
    }.get(run.outcome)
    if limit is not None:
        return limit
    error = run.error
    if error is not None:
        return f"raises {error.type}"
    if run.status is not None and run.status < 0:
        return f"is killed by signal {-run.status}"
    if run.status:
        return f"ends with status {run.status}"
    return "leaves without a word" if quality(run) is Quality.GONE else "ends"


def _ended_by_mate(record: Record, run: Run) -> bool:
    """Whether ``record`` may have been cut short because a process that trains with it was stopped by the probe."""
    return any(
        mate is not record and mate.end in STOPPED and len(record.steps) + _BEHIND >= len(mate.steps)
        for mate in run.records
    )
