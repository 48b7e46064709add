"""One command by shapes alone: what runs without memory can say of rewrites, for models that fit no machine here.

They show errors of shape and graph, and how much memory the tensors would take, and no number, so that no promise is
kept by them: a rewrite is broken where the rewritten program stops in an error that the original does not have, or
where that of the original is still there; whatever else is seen stands in the report of a rewrite that is not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from codemods.terms.findings import Promise
from verify.judging.bench import Telling, driven, lines_below, reached
from verify.judging.faults import symptoms
from verify.measured.records import Record
from verify.measured.results import Entry, Rewrite, Run, Verdict
from verify.measured.values import Trouble
from verify.reaching.knobs import NONE
from verify.running.rewriting import Key, Rewriter, Version
from verify.running.runner import Runner
from verify.running.settings import Command

#: Errors of torch's where something depends on values.
_OF_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException")
_NO_NUMBERS = "by shapes alone; numbers are not compared, so no promise can be kept"
#: So many rewrites are tried alone.
_MOST_ALONE = 12


class _Seen(NamedTuple):
    """A run, and the rewrites whose lines ran in it."""

    run: Run
    reached: frozenset[Key]

    @property
    def error(self) -> Trouble | None:
        return self.run.error

    @property
    def certain(self) -> bool:
        """Whether the error would also occur with real numbers: a graph error would, others only where no number was
        made up."""
        invented = any(record.invented for record in self.run.records)
        return symptoms(self.run).error is not None or not (invented or _of_values(self.error))


def judge_by_shapes(
    runner: Runner, rewriter: Rewriter, version: Version, command: Command, original: Run, tell: Telling
) -> Entry:
    """Judge the rewrites of ``version`` by runs of ``command`` without memory; ``original`` is one of the tree as it
    is."""
    groups = version.groups
    if not groups:
        return Entry(original.command, original)

    def run(keys: list[Key] | None) -> _Seen:
        made = None if keys is None else version if len(keys) == len(groups) else rewriter.some(keys)
        lines = {group.key: group.touched.before() for group in groups} if made is None else made.watch(groups)
        name = "original" if made is None else "rewritten"
        tell(f"{name}, by shapes: {command.text}")
        ran = driven(runner, rewriter, command, name, made, lines_below(rewriter, lines.values()), NONE)
        return _Seen(ran, reached(rewriter, lines, ran))

    before, after = run(None), run([group.key for group in groups])
    seen = before.reached | after.reached
    culprits = _culprits([group.key for group in groups if group.key in seen], before, after, run)
    rewrites = []
    for group in groups:
        finding = max(group.findings, key=lambda finding: finding.promise.rank)
        if group.key not in seen:
            verdict, why = Verdict.NOT_REACHED, f"no line of it ran in {runner.settings.steps} steps by shapes"
        elif group.key in culprits:
            verdict, why = Verdict.BROKEN, f"it brings {_error(culprits[group.key].run)}; by shapes alone"
        elif finding.promise is Promise.REPAIR and len(seen) == 1 and _still(before, after):
            verdict, why = Verdict.BROKEN, f"the error of the original is still there: {_error(after.run)}"
        else:
            verdict, why = Verdict.NOT_JUDGED, _shown(before, after)
        rewrites.append(Rewrite(group.findings, verdict, why))
    return Entry(original.command, before.run, None, after.run, None, None, tuple(rewrites))


def _culprits(keys: list[Key], before: _Seen, after: _Seen, run: Callable[[list[Key]], _Seen]) -> dict[Key, _Seen]:
    """The rewrites that cause an error which the original does not have, each with a run that shows it."""
    if before.error is not None or after.error is None:
        return {}
    alone = [(keys[0], after)] if len(keys) == 1 else [(key, run([key])) for key in keys[:_MOST_ALONE]]
    return {key: seen for key, seen in alone if seen.error is not None and seen.certain}


def _still(before: _Seen, after: _Seen) -> bool:
    """Whether the graph error of the original also ends the rewritten program."""
    was, now = symptoms(before.run).error, symptoms(after.run).error
    return was is not None and now is not None and (was.type, was.kind) == (now.type, now.kind)


def _shown(before: _Seen, after: _Seen) -> str:
    """What the two runs show, in one sentence."""
    was, now = before.error, after.error
    if was is None and now is None:
        steps = len(after.run.record.steps) or len(after.run.record.backwards)
        said = f"no error of shape or graph in {steps} steps, neither before nor after"
    elif now is None:
        said = f"the original stops in {_error(before.run)}, and the rewritten program does not"
    elif was is None:
        said = f"the rewritten programs stop in {_error(after.run)}"
    else:
        said = f"the original stops in {_error(before.run)}, the rewritten program in {_error(after.run)}"
    return "; ".join(part for part in (said, _memory(before.run, after.run), _NO_NUMBERS) if part)


def _memory(before: Run, after: Run) -> str:
    """The memory that the tensors of each run would take, if both got equally far."""
    peaks = [_peak(run.record) for run in (before, after)]
    if not all(peaks):
        return ""
    return f"estimated memory of all tensors at most {peaks[1]:,} bytes, in the original {peaks[0]:,}"


def _peak(record: Record) -> int:
    return max([step.peak for step in record.steps] + [backward.peak for backward in record.backwards], default=0)


def _error(run: Run) -> str:
    record, error = run.failed, run.error
    if error is None:
        return run.outcome.value
    place = f" at {record.error_site}" if record.error_site else ""
    if _of_values(error):
        return f"something that depends on values, which shapes do not have ({error.message.splitlines()[0]}){place}"
    first = error.message.strip().splitlines()
    return f"{error.type}{place}" + (f" ({first[0][:120]})" if first else "")


def _of_values(error: Trouble | None) -> bool:
    return error is not None and error.type in _OF_VALUES
