"""The sentences of a report: the verdict over all, what limits it, what went wrong in a run."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from codemods.terms.counting import count_text
from verify.measured.limits import left_out, stood_in
from verify.measured.records import BY_SHAPES, Record
from verify.measured.results import Entry, Outcome, Rewrite, Run, Verdict, Verification
from verify.measured.steered import Driven, Knob, KnobKind
from verify.measured.values import TroubleKind
from verify.reports.figures import ended_well

#: How many lines of a program's output are shown if it left no traceback.
OUTPUT_LINES = 15
#: Some messages of torch go on for four lines; so many characters of one are told below the table.
MESSAGE = 108
_SITES = 5


class Breakdown(NamedTuple):
    """A run that did not end well. ``place`` is ``path:line in function``, empty where no line of the user's is known;
    ``details`` is the traceback, or (``printed``) what the program printed last. ``expected``: this is what the rewrite
    repairs."""

    run: str
    summary: str
    place: str
    details: str
    printed: bool
    expected: bool


def headline(verification: Verification) -> str:
    """Return the verdict over everything in one sentence, as :attr:`Verification.status` has it."""
    verdicts = Counter(rewrite.verdict for rewrite in verification.rewrites)
    broken, kept, missed = verdicts[Verdict.BROKEN], verdicts[Verdict.KEPT], verdicts[Verdict.NOT_REACHED]
    partly = verdicts[Verdict.PARTLY_REACHED]
    if verification.status == 1:
        if broken == len(verification.rewrites):
            return "no promise held" if broken > 1 else "the promise was broken"
        return f"{broken:,} of {count_text(len(verification.rewrites), 'promise')} broken"
    if not verification.judged:
        return "could not be judged"
    if verification.status == 3:
        if partly and missed + partly == len(verification.rewrites):
            return "not all rewritten lines ran"
        if kept:
            return f"{kept:,} of {count_text(len(verification.rewrites), 'promise')} held; not all could be judged"
        return "the rewritten lines did not run" if missed == len(verification.rewrites) else "could not be judged"
    if not verification.rewrites:
        return "nothing was rewritten, so there is no promise to hold"
    if missed or partly:
        return "every promise that was put to the test held"
    return "every promise held" if kept > 1 else "the promise held"


def tally(verification: Verification) -> tuple[tuple[Verdict, int], ...]:
    """Return how many rewrites met each verdict, those that were met."""
    counts = Counter(rewrite.verdict for rewrite in verification.rewrites)
    return tuple((verdict, counts[verdict]) for verdict in Verdict if counts[verdict])


def tally_text(verification: Verification) -> str:
    """Return ``2 kept, 1 not reached``; empty where the headline has said it all."""
    if len(verification.rewrites) < 2:
        return ""
    return ", ".join(f"{count:,} {verdict.value}" for verdict, count in tally(verification))


def command_text(command: Sequence[str]) -> str:
    """Return a command as one would type it: without the folder of the program."""
    program, *arguments = command
    return shlex.join([os.path.basename(program), *arguments])


def reason_text(rewrite: Rewrite, verification: Verification) -> str:
    """Return the why of a rewrite with the findings that were changed along with it. Where nothing was judged, that
    a line was not reached has the reason that is given for everything, and needs none of its own."""
    others = [
        f"{finding.rule} {finding.path}:{verification.place(finding.path, finding.span.line)}"
        for finding in rewrite.findings
        if finding is not rewrite.finding
    ]
    why = rewrite.why if verification.judged or rewrite.verdict is not Verdict.NOT_REACHED else ""
    if why and len(verification.entries) > 1 and rewrite.verdict is not Verdict.NOT_REACHED:
        why = f"run {rewrite.run + 1}: {why}"
    parts = [why, f"together with {', '.join(others)}" if others else "", rewrite.without]
    return "; ".join(part for part in parts if part)


def title(verification: Verification, entry: Entry) -> str:
    """Return what stands above ``entry``: its command, of several runs its number and what sets it apart."""
    if len(verification.entries) < 2:
        return command_text(entry.command)
    number = next(number for number, each in enumerate(verification.entries, 1) if each is entry)
    return f"run {number}: {command_text(entry.command)}" + (f" ({entry.plan})" if entry.plan else "")


def setting(entry: Entry) -> str:
    """Return where ``entry`` was run: device, torch and Python, threads; empty where no torch was
    seen."""
    about = entry.original.record.about
    if not about:
        return ""
    parts = [str(about.get("device") or "")]
    parts += [f"{name} {about[key]}" for name, key in (("torch", "torch"), ("Python", "python")) if about.get(key)]
    parts += [count_text(int(about["threads"]), "thread")] if about.get("threads") else []
    parts += [f"sandbox: {entry.original.sandbox}"] if entry.original.sandbox else []
    return ", ".join(part for part in parts if part)


def limits(verification: Verification) -> list[str]:
    """Return what limits the claims that may be made: made-up data, a device that was not there, capped loaders,
    what could not be compared."""
    return list(dict.fromkeys(_limits(verification)))


def _limits(verification: Verification) -> Iterator[str]:
    yield from stood_in(list(_records(verification)))
    missing = dict.fromkeys(what for record in _records(verification) for what in record.devices)
    if missing:
        yield f"this machine has no such device, the CPU took its place: {', '.join(missing)}"
    yield from _by_shapes(verification)
    for entry in verification.entries:
        # Edits shift lines: of one loader in both programs, one line is told. The run that got furthest saw them all.
        furthest = max(_runs(entry), key=lambda run: sum(len(record.capped) for record in run.records))
        for record in furthest.records:
            yield from map(_capped, record.capped)
            yield from map(_knob, record.knobs)
            yield from map(_driven, record.driven)
        for record in entry.original.records:
            yield from left_out(record)
        if entry.comparison is not None:
            yield from (f"not compared: {what}" for what in entry.comparison.not_compared)


def _by_shapes(verification: Verification) -> Iterator[str]:
    """What a run without memory cannot show."""
    if not any(record.about.get("device") == BY_SHAPES for record in _records(verification)):
        return
    yield "by shapes alone errors of shape and graph can be shown and memory estimated, nothing about numbers"
    read = dict.fromkeys(str(site) for record in _records(verification) for site in record.invented if site)
    if read:
        more = f" and {len(read) - _SITES} more" if len(read) > _SITES else ""
        yield f"numbers that are read out of tensors are made up (1 each): {', '.join(list(read)[:_SITES])}{more}"


def notes(verification: Verification) -> list[str]:
    """Return what the probe, the runs and the judge had to note, each once."""
    return list(dict.fromkeys(_notes(verification)))


def _notes(verification: Verification) -> Iterator[str]:
    for entry in verification.entries:
        yield from entry.notes
        if entry.comparison is not None and entry.comparison.compared:
            counts = ", ".join(f"{what} ({count:,})" for what, count in entry.comparison.compared.items())
            yield f"compared beside losses and parameters: {counts}"
        for run in _runs(entry):
            yield from run.notes
            for record in run.records:
                yield from record.notes


def basis(entry: Entry) -> str:
    """Return which program ``entry.rewritten`` is where that is not the one with every rewrite; empty where it is.

    The search for what breaks goes on without it (:mod:`verify.judging.stages`), and ends with all the rest.
    """
    broken = sum(rewrite.verdict is Verdict.BROKEN for rewrite in entry.rewrites)
    if not broken or broken == len(entry.rewrites) or entry.rewritten is None:
        return ""
    left_out = "the rewrite that broke its promise" if broken == 1 else f"the {broken:,} rewrites that broke theirs"
    return f"rewritten is the program without {left_out}"


def stages(entry: Entry) -> list[str]:
    """Return what the runs with only some of the rewrites showed."""
    return [f"with {name}: {_summary(run)}" for name, run in entry.staged]


def breakdowns(entry: Entry) -> list[Breakdown]:
    """Return the runs of ``entry`` that did not end well: the original, the shown ones, and one for each other way in
    which runs with some of the rewrites ended. Those that ended as the original did are left out: the table has them.
    """
    found = []
    original, mended = entry.original, entry.rewritten is not None and ended_well(entry.rewritten)
    if not ended_well(original):
        found.append(_breakdown("original", original, expected=mended))
    for name, run in (("original again", entry.again), ("rewritten", entry.rewritten)):
        if run is not None and not ended_well(run) and not _alike(original, run):
            found.append(_breakdown(name, run, expected=False))
    told = [run for run in (original, entry.again, entry.rewritten) if run is not None]
    for name, run in entry.staged:
        if not ended_well(run) and not any(_alike(each, run) for each in told):
            found.append(_breakdown(f"with {name}", run, expected=False))
            told.append(run)
    # What neither raised nor printed anything has nothing to add to the table.
    return [breakdown for breakdown in found if breakdown.details or not breakdown.printed]


def _alike(one: Run, other: Run) -> bool:
    """Whether both ended in the same way; the line may be another one, edits shift lines."""
    return one.outcome is other.outcome and (one.error and one.error[:2]) == (other.error and other.error[:2])


def _breakdown(name: str, run: Run, expected: bool) -> Breakdown:
    site, details = run.failed.error_site, run.failed.traceback.strip("\n")
    printed = "\n".join(run.output.strip("\n").splitlines()[-OUTPUT_LINES:])
    place = f"{site} in {site.function}" if site else ""
    return Breakdown(name, _summary(run), place, details or printed, not details, expected)


def _summary(run: Run) -> str:
    trouble = run.error
    if trouble is None:
        return run.outcome.value
    first = next(iter(trouble.message.strip().splitlines()), "")
    if trouble.kind == TroubleKind.FREED:
        # What follows in parentheses is torch's advice to retain the graph, which is the wrong one here.
        first = first.split(" (", 1)[0]
    told = shortened(f"{trouble.type}: {first}" if first else trouble.type)
    return told if run.outcome is Outcome.RAISED else f"{run.outcome.value}: {told}"


def shortened(text: str, length: int = MESSAGE) -> str:
    """Return ``text``, cut with an ellipsis after ``length`` characters: at the end of a word, where one is near."""
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    word = cut.rfind(" ")
    return (cut[:word] if word > length * 0.8 else cut) + "…"


def _capped(loader: Mapping[str, Any]) -> str:
    site, length = loader.get("site"), loader.get("length")
    place = f"{site[0]}:{site[1]}: " if site else ""
    whole = f" of {length:,}" if isinstance(length, int) else ""
    return f"{place}DataLoader stopped after {loader.get('cap')}{whole} batches"


def _knob(knob: Knob) -> str:
    place, turns = f"{knob.path}:{knob.line}", knob.turns
    if knob.kind is KnobKind.LOOP:
        return f"{place}: to reach the code after it, the loop was ended after {count_text(turns, 'iteration')}"
    if knob.kind is KnobKind.BATCH:
        return f"{place}: for want of time, batches had {count_text(turns, 'item')}"
    return f"{place}: to reach what it guards, the bound counted as {'met' if turns else 'not met'}"


def _driven(driven: Driven) -> str:
    return f"{driven.name} in {driven.path} was called by itself at the end of the run, {driven.how}"


def _runs(entry: Entry) -> Iterator[Run]:
    yield from (run for run in (entry.original, entry.again, entry.rewritten) if run is not None)


def _records(verification: Verification) -> Iterator[Record]:
    for entry in verification.entries:
        for run in _runs(entry):
            yield from run.records
