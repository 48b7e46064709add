"""The whole of ``codemod doctor``: one run that watches everything, and others where it asks for a closer look."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verify.diagnosis import allocator, devices, graphs, learning, resources
from verify.diagnosis.evidence import Sources, events, last
from verify.diagnosis.folded import Graph
from verify.diagnosis.measures import measured
from verify.diagnosis.model import BEARABLE, GROWTH, Diagnosis, DoctorRun, Fault, Kind
from verify.diagnosis.pictures import reading
from verify.errors import OutOfTime, VerifyError
from verify.isolation import Limits, Place, Workspace
from verify.judging.endings import ending_text
from verify.judging.faults import died, symptoms
from verify.judging.leaving import made_up
from verify.measured.limits import left_out, stood_in
from verify.measured.results import Outcome, Run
from verify.running import missing
from verify.running.pieces import brought_past
from verify.running.runner import Runner
from verify.running.settings import Command, Settings

Telling = Callable[[str], None]

#: Of the limit, how much a process may have before it says what holds its memory.
_NEAR = 0.8
#: What the pictures of faults are told for.
_PICTURES = {
    Kind.SECOND_BACKWARD: "second",
    Kind.CHANGED_IN_PLACE: "inplace",
    Kind.GROWING_GRAPH: "growth",
    Kind.OUT_OF_MEMORY: "memory",
}
#: What made-up values can bring about, which have no graph.
_OF_VALUES = frozenset({Kind.LOSS_CUT_OFF, Kind.NO_GRADIENT, Kind.UNUSED_FORWARDS, Kind.OTHER_DEVICE})
WATCHED = (
    "errors of autograd",
    "growth of graphs, tensors and containers",
    "memory by line",
    "gradients and optimizers",
    "unused forwards",
    "the time of steps",
)
#: What is watched as well where a program is on a card.
ON_A_CARD = ("the CUDA cache",)


def diagnose(
    command: Command,
    root: Path,
    *,
    settings: Settings,
    tell: Telling = lambda _: None,
    place: Callable[..., Place] = Workspace,
    picture: bool = False,
) -> Diagnosis:
    """Run ``command`` on the tree at ``root`` and say what is wrong with it.

    ``picture``: tell the graph of an ordinary step too. Raises :class:`VerifyError` for what the user has to put right
    before anything can be run.
    """
    with Runner(root, settings, place) as runner:
        found = examine(command, runner, tell=tell, picture=picture)
    if not cut_short(found, settings):
        return found
    with Runner(root, whole_epochs(settings), place) as longer:
        longer.take_up(runner)
        whole = examine(command, longer, tell=tell, picture=picture)
    grown = tuple(fault for fault in whole.faults if fault.kind in GROWTH)
    return replace(found, faults=(*grown, *found.faults), runs=(*found.runs, *whole.runs))


def cut_short(diagnosis: Diagnosis, settings: Settings) -> bool:
    """Whether nothing was found that ends a training, and epochs were so short that growth within one would not show:
    a total that every epoch begins anew looks like a window of a few steps then."""
    worse = any(fault.kind not in BEARABLE for fault in diagnosis.faults)
    return diagnosis.capped and settings.batches is None and not worse and not diagnosis.reason


def whole_epochs(settings: Settings) -> Settings:
    """``settings`` with which no epoch is cut short."""
    return replace(settings, batches=0)


def looking(settings: Settings) -> float:
    """How many seconds may be spent on values for what a program lacks: unless the user says, as many as on a run."""
    return settings.timeout if settings.reach is None else settings.reach


def grows(diagnosis: Diagnosis) -> bool:
    """Whether something was seen to grow."""
    return any(fault.kind in GROWTH for fault in diagnosis.faults)


def examine(
    command: Command,
    runner: Runner,
    *,
    tell: Telling = lambda _: None,
    files: Mapping[str, bytes] | None = None,
    picture: bool = False,
    names: bool = True,
    mended: Callable[[Run], bool] = lambda _: False,
    reach: float | None = None,
) -> Diagnosis:
    """The same by ``runner``, with ``files`` (by path below the root) in place of the tree's.

    Without ``names`` it is said what is wrong, and no other run is made to say who did it, nor to find what stands in
    for what the program lacks: ``runner`` knows that from others. ``mended``: whether a run ends where a change mends
    it; ``reach``: the seconds in which values are made up for what it lacks. Raises as :func:`diagnose`.
    """
    root = runner.root
    if command.script is not None and not command.script.resolve().is_relative_to(root.resolve()):
        raise VerifyError(f"{command.text}: lies outside {root}; name the tree with --tree")
    trouble = runner.trouble()
    if trouble:
        return Diagnosis(command.text, str(root), (), (), (), (), 0, 0, (), trouble)
    seconds = looking(runner.settings) if reach is None else reach
    return _Examination(command, runner, tell, files or {}, picture, names, mended, seconds).result()


def plain_plan(settings: Settings) -> dict[str, Any]:
    """What the probe's doctor is told in a run that watches everything; see :mod:`verify.probe.doctor`."""
    return {"ceiling": int(_NEAR * Limits(0.0, settings.memory).memory_bytes), "picture": False}


def faults(
    first: Run,
    sources: Sources,
    *,
    closer: Run | None = None,
    flow: Run | None = None,
    timed: Run | None = None,
    placed: Run | None = None,
    traced: Run | None = None,
) -> list[Fault]:
    """Return what is wrong: ``first`` is the run that watched everything, the others looked closer, if they were made.

    Steps that get slower are a fault only where ``timed`` saw them too.
    """
    rootless = learning.rootless(first)
    ungraded = [] if rootless else learning.no_gradient(first, flow, sources)
    return [
        *devices.mixed(placed, sources),
        *graphs.second_backwards(closer or first, sources),
        *graphs.changes_in_place(closer or first, sources),
        *resources.memory(first, sources),
        *graphs.growing_graphs(first, sources),
        *learning.cut_off(first, flow, sources),
        *ungraded,
        *learning.not_in_optimizer(first, sources),
        *learning.never_cleared(first, sources),
        *resources.stores(first),
        *allocator.growing(first, traced, sources),
        *([] if rootless else graphs.unused_forwards(first, sources, ungraded)),
        *([] if timed is None else resources.slower(first, timed, sources)),
    ]


def pictured(fault: Fault, closer: Run, first: Run, sources: Sources) -> Fault:
    """Return ``fault`` with the graph at it, where one was told."""
    purpose = _PICTURES.get(fault.kind)
    run = first if purpose in ("growth", "memory") else closer
    return fault if purpose is None else replace(fault, graph=graph(run, purpose, sources))


def graph(run: Run, purpose: str, sources: Sources) -> Graph | None:
    """Return the last graph that ``run`` told for ``purpose``."""
    found = [event for event in events(run, "graph") if event["for"] == purpose]
    return reading.graph_of(found[-1], sources) if found else None


@dataclass(eq=False)
class _Examination:
    """The runs of one diagnosis."""

    _command: Command
    _runner: Runner
    _tell: Telling
    _files: Mapping[str, bytes]
    _picture: bool
    _names: bool
    _mended: Callable[[Run], bool]
    _reach: float

    def __post_init__(self) -> None:
        self._made: list[DoctorRun] = []
        #: The runs that look closer, each of the program as it is.
        self._later: list[Run] = []
        self._sources = Sources(self._runner.root, self._files)

    def result(self) -> Diagnosis:
        """Make the runs, and what they show."""
        first = self._first()
        self._later.clear()
        closer = self._closer(first) if self._names else first
        flow = self._flow(first) if self._names else None
        timed = self._timed(first)
        placed = self._placed(first)
        traced = self._traced(first) if self._names else None
        found = faults(first, self._sources, closer=closer, flow=flow, timed=timed, placed=placed, traced=traced)
        if self._runner.leaving is not None:
            found = [fault for fault in found if fault.kind not in _OF_VALUES]
        return self._told(first, [pictured(fault, closer, first, self._sources) for fault in found])

    def _run(self, name: str, plan: Mapping[str, Any]) -> Run:
        self._tell(f"{name}: {self._command.text}")
        more = {"doctor": {**plain_plan(self._runner.settings), **plan}, "params": False}
        run = self._runner.run(name, self._command, files=self._files, more=more)
        self._made.append(DoctorRun(name, ending_text(run), run.wall))
        if "devices" not in plan:
            # Where one tensor stands for another, errors may be of that alone.
            self._later.append(run)
        return run

    def _first(self) -> Run:
        plan = {"picture": self._picture}
        run = self._run("watching everything", plan)
        if not self._names:
            return run
        run = brought_past(
            self._runner, self._command, run, lambda how: self._run(f"the same {how}", plan), self._mended
        )
        return self._without(run, plan) if missing.ended_by(run) is not None and self._runner.settings.data else run

    def _without(self, run: Run, plan: Mapping[str, Any]) -> Run:
        """A run with made-up values for what ended ``run``; ``run``, where that comes to no backward."""
        runner, known = self._runner, self._runner.instead
        with contextlib.suppress(OutOfTime):
            runner.instead, runner.leaving = made_up(runner, self._command, self._reach, self._tell)
            without = self._run("the same with made-up values for what it lacks", plan)
            if without.record.backwards:
                return without
        runner.instead, runner.leaving = known, None
        return run

    def _closer(self, first: Run) -> Run:
        """A second run that looks for names and writes where the first one met an error; the first where none did."""
        second, change = last(first, "second"), last(first, "inplace")
        if second is not None:
            keys = ("number", "user", "freed_index")
            run = self._run("who holds the freed graph", {key: second[key] for key in keys})
            wanted = "second"
        elif change is not None:
            run = self._run("who changes the saved tensor", {"writes": True})
            wanted = "inplace"
        else:
            return first
        return run if events(run, wanted) else first

    def _flow(self, first: Run) -> Run | None:
        """A run that follows graphs, where a loss or a parameter is cut off."""
        places = [[row["index"], p["place"], p["name"]] for row, silent in learning.silent(first) for p in silent]
        if not places and not learning.rootless(first):
            return None
        return self._run("where graphs end", {"flow": places})

    def _placed(self, first: Run) -> Run | None:
        """A run that follows where tensors are."""
        return self._run("which tensor is on which device", {"devices": True}) if devices.asked(first) else None

    def _timed(self, first: Run) -> Run | None:
        return None if resources.slows(first) is None else self._run("which line gets slower", {"pace": True})

    def _traced(self, first: Run) -> Run | None:
        return None if allocator.grows(first) is None else self._run("what the CUDA cache grows for", {"cache": True})

    def _told(self, first: Run, faults: list[Fault]) -> Diagnosis:
        record = first.record
        peak = resources.peak(first)
        diagnosis = Diagnosis(
            command=self._command.text,
            root=str(self._runner.root),
            faults=tuple(faults),
            remarks=(*learning.remarks(first), *(text for text in (peak, allocator.retries(first)) if text)),
            watched=(*WATCHED, *(ON_A_CARD if allocator.watched(first) else ())),
            unwatched=self._unwatched(first),
            steps=len(record.steps),
            backwards=len(record.backwards),
            runs=tuple(self._made),
            measures=measured(first),
            graph=graph(first, "step", self._sources),
            loaded=record.loaded,
            capped=bool(record.capped),
            limits=tuple(dict.fromkeys((*stood_in(first.records), *left_out(record)))),
        )
        return self._stopped(first, diagnosis)

    def _unwatched(self, first: Run) -> tuple[str, ...]:
        record = first.record
        found = [*record.notes, *first.notes]
        if len(record.steps) < 3 and first.outcome is Outcome.OK:
            found.append(f"growth and time: {len(record.steps)} optimizer steps were made")
        if record.devices:
            found.append("memory of a CUDA device: there is none, the CPU took its place")
        if self._runner.leaving is not None:
            found.append("what learns: made-up values have no graph")
        found += [_astray(run) for run in self._strayed(first)]
        found += [f"what comes after step {len(record.steps)}"] if record.end == "steps" else []
        return tuple(dict.fromkeys(found))

    def _stopped(self, first: Run, diagnosis: Diagnosis) -> Diagnosis:
        """Add the reason why the program stopped, where no fault is it."""
        other = symptoms(first).other
        explained = {fault.kind for fault in diagnosis.faults} & {Kind.LOSS_CUT_OFF, Kind.OTHER_DEVICE}
        if other is not None and not explained:
            where = f" at {first.record.error_site}" if first.record.error_site is not None else ""
            reason = f"the program stops{where} with {other.type}, which is not a fault that the doctor knows"
            return replace(
                diagnosis,
                reason=reason,
                advice=self._advice(first),
                traceback=first.record.traceback,
                stop=first.record.error_site,
            )
        astray = self._strayed(first)
        if astray and not diagnosis.faults:
            said = astray[0].record.traceback or astray[0].output[-1500:]
            return replace(diagnosis, reason=_astray(astray[0]), traceback=said, stop=astray[0].record.error_site)
        if diagnosis.faults or (diagnosis.backwards and first.outcome in (Outcome.OK, Outcome.RAISED)):
            return diagnosis
        said = first.record.traceback or first.output[-1500:]
        return replace(diagnosis, reason=_reason(first), advice=self._advice(first), traceback=said)

    def _strayed(self, first: Run) -> list[Run]:
        """Those of the later runs that ended by an error which the first one did not have."""
        known = symptoms(first).other is not None
        return [run for run in self._later if (died(run) and not died(first)) or (symptoms(run).other and not known)]

    def _advice(self, first: Run) -> tuple[str, ...]:
        """What to do about what the program lacks, if that ended it."""
        lacking, runner = missing.ended_by(first), self._runner
        if lacking is None:
            return ()
        return missing.advice(lacking, self._command, runner.root, runner.settings, runner.lacks)


def _astray(run: Run) -> str:
    return f"{run.name}: the run that was to tell {ending_text(run)}, as the first one did not"


def _reason(run: Run) -> str:
    if run.outcome is Outcome.NOT_STARTED:
        return "; ".join(run.notes) or "the program could not be started"
    if not run.record.backwards and run.outcome is Outcome.TIMEOUT:
        return "the program comes to no backward in the time that it has; --timeout gives it more"
    if not run.record.backwards:
        return f"the program {ending_text(run)} without a backward, so there is no training to look at"
    return f"the program {ending_text(run)}"
