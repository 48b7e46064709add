"""How a run ended, and whether it ended worse or earlier than another."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from codemods.terms.counting import count_text
from verify.comparing.learning import idle_optimizers
from verify.judging.faults import died
from verify.measured.records import Record
from verify.measured.results import STOPPED, Outcome, Run

#: Processes that train together are ended when one has made its steps; the others may be so many behind.
_BEHIND = 2
#: A stretch of the program that takes so many times as long as in the other one hangs; so many times, and it goes on.
_HANGS, _GOES_ON = 5.0, 2.0
#: From so many steps on their times tell how fast the machine is; before, a stretch may be slower still.
_FEWEST, _UNTOLD = 3, 10.0
#: A busy machine lets a program wait for so many seconds.
_STALLS = 5.0


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
    if other <= one or pace(before, after) is Pace.GOES_ON:
        return ""
    if other is Quality.NEVER:
        return "the rewritten program does not start"
    return f"the rewritten program {ending_text(after)}, which the one before does not"


def earlier(before: Run, after: Run, *, calls: bool = False, resized: bool = False) -> str:
    """Say in which process ``after`` ended by itself after fewer optimizer steps than ``before``; empty if in none.

    With ``calls`` backwards are counted where neither makes steps. With ``resized`` an optimizer may train other
    parameters than before.
    """
    for mine, other in before.beside(after):
        if other is None:
            if mine.steps or mine.backwards:
                return f"process {mine.process} does not train in the rewritten program"
            continue
        if other.end == "watchdog" or (other.end is None and out_of_time(after)) or _ended_by_mate(other, after):
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


class Pace(enum.Enum):
    """What a run that had no more time was doing when it was stopped."""

    GOES_ON = enum.auto()
    HANGS = enum.auto()
    UNKNOWN = enum.auto()


def out_of_time(run: Run) -> bool:
    """Whether ``run`` was stopped because its time was over."""
    return run.outcome is Outcome.TIMEOUT


def pace(before: Run, after: Run) -> Pace | None:
    """Say whether ``after``, which had no more time, hangs where ``before`` goes on; None where it had time enough.

    A machine that is busy with others makes either program slow. So what counts is the stretch in which ``after`` was
    stopped: how long it took so far, against how long ``before`` took for the same one, each at its speed up to there.
    """
    if not out_of_time(after):
        return None
    mine, theirs = _times(before.record), _times(after.record)
    since = _until(after) - (theirs[-1] if theirs else 0.0)
    usual = _stretch(mine, len(theirs), before)
    count = min(len(mine), len(theirs))
    if count < _FEWEST or mine[count - 1] <= mine[0]:
        return Pace.HANGS if since > max(_UNTOLD * usual, _STALLS) else Pace.UNKNOWN
    slower = (theirs[count - 1] - theirs[0]) / (mine[count - 1] - mine[0])
    if since <= _GOES_ON * slower * usual:
        return Pace.GOES_ON
    return Pace.HANGS if since > max(_HANGS * max(slower, 1.0) * usual, _STALLS) else Pace.UNKNOWN


def _stretch(times: Sequence[float], place: int, run: Run) -> float:
    """The seconds after step ``place`` until the next one, or the end; the longest there were, where ``run`` made no
    more than these."""
    ends = [*times, _until(run)]
    stretches = [later - earlier for earlier, later in zip([0.0, *times], ends, strict=True)]
    return stretches[place] if place < len(stretches) else max(stretches)


def _times(record: Record) -> list[float]:
    """When its steps ended; where it makes none, when its backwards began."""
    return [each.time for each in record.steps or record.backwards]


def _until(run: Run) -> float:
    """When the process that trains ended; where it could not say so, when the whole run did."""
    return run.wall if math.isnan(run.record.ended) else run.record.ended


def cut_short(before: Run, after: Run) -> str:
    """Say that one of them was stopped from outside before it could show whether it fails; empty if not.

    How far a program gets in a given time depends on the machine, and what it would have done next is unknown.
    """
    if pace(before, after) is Pace.UNKNOWN and quality(after) is Quality.LIMIT:
        made = count_text(len(before.record.steps), "step")
        return (
            f"the rewritten program {ending_text(after)} ({len(after.record.steps)} of {made}), and it is not known "
            "whether it hangs or the machine was busy"
        )
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
