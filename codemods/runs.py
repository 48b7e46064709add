"""Which programs of a tree are simulated, in which processes, and what the rules note of each.

First every file that may matter runs as a script, then every function that none of those runs entered, with arguments
that cannot be seen; then, where that makes a finding, those functions that may switch gradients off around it. A run
is remembered by the texts of the files it loaded: after an edit only what loads the edited file runs again.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from codemods.findings import Finding
from codemods.gates import Gate
from codemods.graph.machine import Machine
from codemods.graph.program import ParsedFile
from codemods.graph.trace import Trace
from codemods.roots import FUNCTIONS, Definition, Outline, called_as, imports, may_act, may_switch, mentions
from codemods.rules.base import Observation, Rule
from codemods.trees import Project

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

SCRIPT_BUDGET = 400_000
FUNCTION_BUDGET = 250_000
"""Evaluated syntax nodes that one run may take; chosen so that the largest of some hundred research scripts end well
below."""

FUNCTIONS_BUDGET = 12_000_000
"""What all functions together may take that no script reaches: in a library of thousands each gets less."""

LEAST_BUDGET = 6_000

PARALLEL_FROM = 24
"""Files from which on a pool of processes pays for its start."""


class Seen(NamedTuple):
    """What all runs have shown: the findings, and where a budget ended."""

    findings: list[Finding]
    notes: list[str]


class Noted(NamedTuple):
    """What the rules noted of one run; ``roots`` are the functions that it ran for themselves, ``leading`` the names of
    those through which a mistake in it was reached."""

    roots: frozenset[Definition]
    observations: list[Observation]
    notes: list[str]
    leading: frozenset[bytes]


@dataclass
class Record:
    """What one job has shown: ``loaded`` are the files it looked at, ``entered`` the functions it ran, ``called`` those
    that code of the tree called, ``candidates`` those of its file that are to be run if nothing enters them."""

    noted: list[Noted] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)
    entered: set[Definition] = field(default_factory=set)
    called: set[Definition] = field(default_factory=set)
    candidates: set[Definition] = field(default_factory=set)


class Job(NamedTuple):
    """A file to be run as a script if it is one, or the functions of it to be run for themselves: these ``functions``,
    or those that switch gradients off and name one of ``names`` and are not among ``without``."""

    relative: str
    functions: frozenset[Definition] | None = None
    budget: int = SCRIPT_BUDGET
    names: frozenset[bytes] = frozenset()
    without: frozenset[Definition] = frozenset()


def observe(
    project: Project,
    rules: list[Rule],
    decide: Callable[[list[Observation]], list[Finding]],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Seen:
    """Simulate what may matter in ``project`` and make findings of what ``rules`` observe.

    ``decide`` makes findings of observations; where there are some, callers are looked for that switch gradients off.
    """
    direct, importers = _concerned(project, rules)
    programs = sorted(direct + [r for r in importers if may_act(project.raw(r))])
    with _Workers(project, rules, jobs, len(direct) + len(importers)) as workers:
        total = len(programs) + len(direct)
        scripts = workers.run([Job(r) for r in programs], progress, 0, total)
        entered = {d for record in scripts for d in record.entered}
        wanted = {r: record.candidates - entered for r, record in zip(programs, scripts, strict=True)}
        budget = _function_budget(sum(map(len, wanted.values())))
        alone = workers.run(
            [Job(r, frozenset(found), budget) for r, found in wanted.items() if found], progress, len(programs), total
        )
        noted = _settled(workers, scripts, alone, budget)
        findings = _decided(project, decide, noted)
        doubtful = {(f.rule, f.path) for f in findings}
        names = frozenset(name for one in noted if _shows(one, doubtful) for name in one.leading)
        if names:
            entered |= {d for record in alone for d in record.entered}
            without = _by_file(entered)
            switching = sorted(r for r in (*direct, *importers) if may_switch(project.raw(r)))
            more = workers.run(
                [Job(r, None, budget, names, without.get(r, frozenset())) for r in switching], None, total, total
            )
            if any(record.noted for record in more):
                noted = _settled(workers, scripts, alone + more, budget)
                findings = _decided(project, decide, noted)
    if progress is not None:
        progress(total, total)
    return Seen(findings, [n for one in noted for n in one.notes])


def _decided(
    project: Project, decide: Callable[[list[Observation]], list[Finding]], noted: list[Noted]
) -> list[Finding]:
    # the files with findings are needed all at once
    if project.files.trim(project.files.room // 8):
        gc.unfreeze()
    return decide([o for one in noted for o in one.observations])


def _settled(workers: _Workers, scripts: list[Record], alone: list[Record], budget: int) -> list[Noted]:
    """What counts of all runs: a function that was run for itself, and that another one turns out to call, does not."""
    called = {d for record in alone for d in record.called}
    noted = [noted for record in alone for noted in record.noted]
    mixed = [one.roots - called for one in noted if one.roots & called]
    again = workers.run([Job(min(left)[0], left, budget) for left in mixed if left], None, 0, 0)
    kept = [one for one in noted if not one.roots & called]
    return [one for record in (*scripts, *again) for one in record.noted] + kept


def _shows(noted: Noted, doubtful: Collection[tuple[str, str]]) -> bool:
    """Whether a run shows a mistake that counts among the findings: a rule and a path."""
    return any(o.verdict == "fault" and (o.rule, o.path) in doubtful for o in noted.observations)


def _by_file(definitions: Iterable[Definition]) -> dict[str, frozenset[Definition]]:
    found: dict[str, set[Definition]] = {}
    for definition in definitions:
        found.setdefault(definition[0], set()).add(definition)
    return {relative: frozenset(inside) for relative, inside in found.items()}


# which files


def _concerned(project: Project, rules: list[Rule]) -> tuple[list[str], list[str]]:
    """The files in which a rule's words stand; and those that import one of them and may act, or switch gradients
    off."""
    gate = _gate(rules)
    tree = project.files.tree
    direct: set[str] = set()
    others: list[str] = []
    for relative in project.paths:
        raw = project.raw(relative)
        if gate.within(raw) is not None:
            direct.add(relative)
        elif may_switch(raw) or may_act(raw):
            others.append(relative)
    importers = [r for r in others if any(found in direct for found in imports(tree, r, project.raw(r)))]
    reached = _reaching(project)
    return sorted(direct & reached), sorted(reached.intersection(importers))


def _reaching(project: Project) -> set[str]:
    """The files that are targets, or import one, directly or through others: no other run says anything of them."""
    targets = {relative for relative, shown in project.display.items() if shown in project.targets}
    if len(targets) == len(project.paths):
        return targets
    tree = project.files.tree
    importers: dict[str, set[str]] = {}
    for relative in project.paths:
        for found in imports(tree, relative, project.raw(relative)):
            importers.setdefault(found, set()).add(relative)
    reached, stack = set(targets), list(targets)
    while stack:
        relative = stack.pop()
        *folders, _ = relative.split("/")
        for name in (relative, "".join(f"{folder}/" for folder in folders)):
            for importer in importers.get(name, ()):
                if importer not in reached:
                    reached.add(importer)
                    stack.append(importer)
    return reached


def _function_budget(functions: int) -> int:
    return max(LEAST_BUDGET, min(FUNCTION_BUDGET, FUNCTIONS_BUDGET // max(1, functions)))


# running


class _Workers:
    """Runs jobs, in this process or in several."""

    def __init__(self, project: Project, rules: list[Rule], jobs: int | None, files: int) -> None:
        self.project = project
        self.rules = rules
        self.names = tuple(rule.name for rule in rules)
        wanted = jobs if jobs is not None else (os.cpu_count() or 1)
        self.processes = min(wanted, max(1, files // 8)) if files >= PARALLEL_FROM else 1
        self._pool: ProcessPoolExecutor | None = None
        self._collects = gc.isenabled()

    def __enter__(self) -> _Workers:
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        gc.unfreeze()
        if self._collects:
            gc.enable()

    def run(self, jobs: list[Job], progress: Callable[[int, int], None] | None, done: int, total: int) -> list[Record]:
        """The records of ``jobs``, in their order."""
        records: list[Record | None] = [_remembered(self.project, self.names, job) for job in jobs]
        todo = [i for i, record in enumerate(records) if record is None]
        done += len(jobs) - len(todo)
        for i, record in zip(todo, self._results([jobs[i] for i in todo]), strict=True):
            records[i] = record
            _remember(self.project, self.names, jobs[i], record)
            done += 1
            if progress is not None:
                progress(done, total)
        return [record for record in records if record is not None]

    def _results(self, jobs: list[Job]) -> Iterable[Record]:
        if self.processes < 2 or len(jobs) < 2:
            for job in jobs:
                yield run_job(self.project, self.rules, job)
            return
        if self._pool is None:
            from concurrent.futures import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(
                self.processes, initializer=_start_worker, initargs=(self.project.for_worker(), self.names)
            )
        yield from self._pool.map(_work, jobs, chunksize=max(1, min(8, len(jobs) // (self.processes * 4))))


_worker: tuple[Project, list[Rule]] | None = None


def _start_worker(project: Project, names: tuple[str, ...]) -> None:
    from codemods.rules import rule

    global _worker
    _worker = (project, [rule(name) for name in names])
    gc.disable()


def _work(job: Job) -> Record:
    assert _worker is not None
    return run_job(*_worker, job)


def run_job(project: Project, rules: list[Rule], job: Job) -> Record:
    """Simulate one job and note what the rules see."""
    record = Record(loaded={job.relative})
    raw = project.raw(job.relative)
    if job.names and not mentions(raw, job.names):
        return record
    _tidy(project)
    file = project.files.glance(job.relative)
    if file is None:
        return record
    gate = _gate(rules)
    outline = Outline(file, raw, gate.within(raw) or _NOTHING)
    if job.functions is not None:
        _simulate(project, rules, job, file, outline.nodes(job.functions), record)
    elif job.names:
        wanted = outline.switching(job.names) - job.without
        if wanted:
            _simulate(project, rules, job, file, outline.nodes(wanted), record)
    else:
        record.candidates = outline.candidates()
        if outline.script(lambda found: _outline(project, found, gate), project.files.tree):
            _simulate(project, rules, job, file, None, record)
    return record


def _gate(rules: list[Rule]) -> Gate:
    return Gate(entry for rule in rules for entry in rule.gate)


_NOTHING = Gate(())


def _outline(project: Project, relative: str, gate: Gate) -> Outline | None:
    """The outline of a file in which a rule's words stand."""
    raw = project.raw(relative) if relative in project.paths else b""
    concerns = gate.within(raw)
    file = project.files.glance(relative) if concerns is not None else None
    return Outline(file, raw, concerns) if file is not None and concerns is not None else None


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
        record.loaded |= machine.looked_at
        record.entered = {_definition(d, f) for d, f in machine.entered.items()}
        record.called = {_definition(d, f) for d, f in machine.called.items()}
    finally:
        sys.setrecursionlimit(previous)


def _note(trace: Trace, rules: list[Rule], file: ParsedFile) -> Noted:
    observations = [observation for rule in rules for observation in rule.observe(trace)]
    roots = frozenset(_definition(d, file) for d in trace.roots)
    return Noted(roots, observations, trace.notes, _leading(trace, observations))


def _leading(trace: Trace, observations: list[Observation]) -> frozenset[bytes]:
    """The names of the functions that lead to a forward with gradients on, in a run in which a mistake was noted."""
    if all(o.verdict != "fault" for o in observations):
        return frozenset()
    places = [place for forward in trace.forwards if forward.grad is not False for place in forward.place.chain()]
    return frozenset(
        called_as(function.definition.name, function.cls.name if function.cls is not None else None)
        for function in (place.frame.function for place in places)
        if function is not None and isinstance(function.definition, FUNCTIONS)
    )


def _definition(node: ast.AST, file: ParsedFile) -> Definition:
    return (file.relative.as_posix(), node.lineno, node.col_offset)  # type: ignore[attr-defined]


UNCOLLECTED = 300_000
"""Objects that may be left over before garbage is looked for, syntax trees aside. Traces are taken apart by hand:
looking for garbage would take several times as long, and most of it among the syntax trees, where there is none."""


def _tidy(project: Project) -> None:
    """Between two runs: bound the memory that files and garbage take."""
    files = project.files
    if files.trim():
        gc.unfreeze()
    if gc.get_count()[0] - files.objects < UNCOLLECTED:
        return
    gc.collect()
    # what is left are syntax trees and modules, which stay: they need not be looked through again
    gc.freeze()
    files.objects = 0


# remembering


_memory: OrderedDict[object, tuple[dict[str, int], Record]] = OrderedDict()
_MEMORY = 20_000


def _key(project: Project, names: tuple[str, ...], job: Job) -> object:
    return (str(project.root), len(project.paths), names, job)


def _remember(project: Project, names: tuple[str, ...], job: Job, record: Record) -> None:
    texts = {relative: _text_hash(project, relative) for relative in record.loaded}
    _memory[_key(project, names, job)] = (texts, record)
    if len(_memory) > _MEMORY:
        _memory.popitem(last=False)


def _remembered(project: Project, names: tuple[str, ...], job: Job) -> Record | None:
    found = _memory.get(_key(project, names, job))
    if found is None:
        return None
    texts, record = found
    if any(_text_hash(project, relative) != text for relative, text in texts.items()):
        return None
    return record


def _text_hash(project: Project, relative: str) -> int:
    known = project.hashes.get(relative)
    if known is None:
        known = project.hashes[relative] = hash(project.raw(relative))
    return known
