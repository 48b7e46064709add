"""One job simulated, and what the rules note of it."""

from __future__ import annotations

import ast
import functools
import gc
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from codemods.analysis import garbage
from codemods.analysis.outline import FUNCTIONS, Definition, Outline, called_as, mentions
from codemods.analysis.project import Project
from codemods.analysis.told import told
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.graph.python.machine import Machine
from codemods.proofs.observations import Observation, Shows
from codemods.proofs.soundness import Conduct, conduct_of
from codemods.rules import all_rules
from codemods.rules.base import Rule
from codemods.source.gates import Gate
from codemods.terms.findings import Skipped

SCRIPT_BUDGET = 400_000
"""Evaluated syntax nodes that one script may take; chosen so that the largest of some hundred research scripts end well
below."""

UNCOLLECTED = 300_000
"""Objects that may be left over before garbage is looked for, syntax trees aside. Traces are taken apart by hand:
looking for garbage would take several times as long, and most of it among the syntax trees, where there is none."""

_NOTHING = Gate(())


class Noted(NamedTuple):
    """What the rules noted of one run; ``roots`` are the functions that it ran for themselves, ``leading`` the names of
    those through which a mistake in it was reached."""

    roots: frozenset[Definition]
    observations: list[Observation]
    notes: list[str]
    leading: frozenset[bytes]
    conduct: Conduct


@dataclass
class Record:
    """What one job has shown: ``loaded`` are the files it looked at, ``entered`` the functions it ran, ``called`` those
    that code of the tree called, ``candidates`` those of its file that are to be run if nothing enters them. In
    ``handing`` stand those that only hand on what they get, with who gets it, and in ``passed`` the files whose text
    showed that they need not be looked at."""

    noted: list[Noted] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    entered: set[Definition] = field(default_factory=set)
    called: set[Definition] = field(default_factory=set)
    candidates: set[Definition] = field(default_factory=set)
    handing: dict[Definition, Definition] = field(default_factory=dict)
    broken: dict[str, Skipped] = field(default_factory=dict)
    """The files that this process could not parse, by the path that is shown."""
    readable: set[str] = field(default_factory=set)
    """Those that it could."""


class Job(NamedTuple):
    """A file to be run as a script if it is one, or the functions of it to be run for themselves: these ``functions``,
    or those that switch gradients off and name one of ``names`` and are not among ``without``; ``rules`` are those that
    note what they see of it, all that are selected where it is empty."""

    relative: str
    functions: frozenset[Definition] | None = None
    budget: int = SCRIPT_BUDGET
    names: frozenset[bytes] = frozenset()
    without: frozenset[Definition] = frozenset()
    rules: frozenset[str] = frozenset()


def run_job(project: Project, rules: list[Rule], job: Job) -> Record:
    """Simulate one job and note what the rules see."""
    record = Record(loaded={job.relative})
    raw = project.raw(job.relative)
    if not job.names or mentions(raw, job.names):
        _run(project, rules, job, raw, record)
    shown = {project.display[relative] for relative in record.loaded}
    record.broken = {path: project.broken[path] for path in shown if path in project.broken}
    record.readable = shown & project.readable
    return record


def _run(project: Project, rules: list[Rule], job: Job, raw: bytes, record: Record) -> None:
    _tidy(project)
    file = project.files.glance(job.relative)
    if file is None:
        return
    if job.rules:
        rules = [rule for rule in rules if rule.name in job.rules]
    outline = Outline(file, raw, told(concerns, project, job.relative) or _NOTHING)
    if job.functions is not None:
        _simulate(project, rules, job, file, outline.nodes(job.functions), record)
    elif job.names:
        wanted = outline.switching(job.names) - job.without
        if wanted:
            _simulate(project, rules, job, file, outline.nodes(wanted), record)
    else:
        record.candidates, record.handing = outline.candidates(), outline.handing()

        def other(relative: str) -> Outline | None:
            if relative in project.paths:
                record.loaded.add(relative)
            return _outline(project, relative)

        if outline.script(other, project.files.tree):
            _simulate(project, rules, job, file, None, record)


@functools.cache
def every_gate() -> Gate:
    """The words by which a file concerns some rule, selected or not: what runs must not depend on that."""
    return Gate(entry for rule in all_rules().values() for entry in rule.gate)


def concerns(project: Project, relative: str) -> Gate | None:
    """The words of rules that stand in a file, None if there are none."""
    return every_gate().within(project.raw(relative))


def _outline(project: Project, relative: str) -> Outline | None:
    """The outline of a file in which a rule's words stand."""
    words = told(concerns, project, relative) if relative in project.paths else None
    file = project.files.glance(relative) if words is not None else None
    return Outline(file, project.raw(relative), words) if file is not None and words is not None else None


def _simulate(
    project: Project, rules: list[Rule], job: Job, file: ParsedFile, wanted: set[ast.AST] | None, record: Record
) -> None:
    project.files.keep(file)
    previous = sys.getrecursionlimit()
    sys.setrecursionlimit(max(previous, 12_000))
    try:
        machine = Machine(project.files, job.budget)
        traces = [machine.run_script(file)] if wanted is None else machine.run_functions(file, wanted)
        record.noted = [_note(trace, rules, file) for trace in traces]
        for trace in traces:
            trace.forget()
        record.loaded |= machine.run.looked_at
        record.passed |= machine.passed
        record.entered = {_definition(d, f) for d, f in machine.run.entered.items()}
        record.called = {_definition(d, f) for d, f in machine.run.called.items()}
        machine.forget()
    finally:
        sys.setrecursionlimit(previous)


def _note(trace: Trace, rules: list[Rule], file: ParsedFile) -> Noted:
    observations = [observation for rule in rules for observation in rule.observe(trace)]
    roots = frozenset(_definition(d, file) for d in trace.roots)
    return Noted(roots, observations, trace.notes, _leading(trace, observations), conduct_of(trace))


def _leading(trace: Trace, observations: list[Observation]) -> frozenset[bytes]:
    """The names of the functions that lead to a forward with gradients on, in a run in which a mistake was noted."""
    if all(o.shows is not Shows.FAULT for o in observations):
        return frozenset()
    places = [place for forward in trace.forwards if forward.grad is not False for place in forward.place.chain()]
    return frozenset(
        called_as(function.definition.name, function.cls.name if function.cls is not None else None)
        for function in (place.frame.function for place in places)
        if function is not None and isinstance(function.definition, FUNCTIONS)
    )


def _definition(node: ast.AST, file: ParsedFile) -> Definition:
    return (file.relative.as_posix(), node.lineno, node.col_offset)  # type: ignore[attr-defined]


def _tidy(project: Project) -> None:
    """Between two runs: bound the memory that files and garbage take."""
    files = project.files
    if files.trim():
        # little is left, and looking through it takes a moment
        garbage.unfreeze()
    elif gc.get_count()[0] - files.objects < UNCOLLECTED:
        return
    gc.collect()
    # what is left are syntax trees and modules, which stay: they need not be looked through again
    garbage.freeze()
    files.objects = 0
