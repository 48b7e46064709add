"""Which programs of a tree are simulated, in which processes, and what the rules note of each.

First every file that may matter runs as a script, then every function that none of those runs entered, with arguments
that cannot be seen. A run is remembered by the texts of the files it loaded: after an edit only what loads the edited file
runs again.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from codemods.graph.machine import NEVER_OF_THE_TREE, Machine
from codemods.graph.program import ParsedFile, Tree
from codemods.graph.trace import Trace
from codemods.rules.base import Observation, Rule
from codemods.trees import Project

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

SCRIPT_BUDGET = 400_000
FUNCTION_BUDGET = 250_000
"""Evaluated syntax nodes that one run may take; chosen so that the largest of some hundred research scripts end well below."""

PARALLEL_FROM = 24
"""Files from which on a pool of processes pays for its start."""

Definition = tuple[str, int, int]
"""A function by its file (path below the root), line and column: the same in all processes."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Seen(NamedTuple):
    """What all runs have shown."""

    observations: list[Observation]
    notes: list[str]


@dataclass
class Record:
    """What one job has shown: ``loaded`` are the files it looked at, ``entered`` the functions it ran, ``called`` those
    that code of the tree called."""

    observations: list[Observation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)
    entered: set[Definition] = field(default_factory=set)
    called: set[Definition] = field(default_factory=set)


class Job(NamedTuple):
    """A file to be run as a script, or (with ``functions``) the functions of it to be run for themselves."""

    relative: str
    functions: frozenset[Definition] | None


def observe(
    project: Project,
    rules: list[Rule],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Seen:
    """Simulate what may matter in ``project`` and gather the observations of ``rules``."""
    concerned = _concerned(project, rules)
    with _Workers(project, rules, jobs, len(concerned)) as workers:
        total = 2 * len(concerned)
        scripts = workers.run([Job(r, None) for r in concerned], progress, 0, total)
        entered = {d for record in scripts for d in record.entered}
        words = _words(rules)
        wanted = {r: _unreached(project, r, entered, words) for r in concerned}
        alone = workers.run(
            [Job(r, frozenset(found)) for r, found in wanted.items() if found], progress, len(concerned), total
        )
        called = {d for record in alone for d in record.called}
        again = [Job(r, frozenset(found - called)) for r, found in wanted.items() if found & called and found - called]
        kept = [record for record, (r, found) in zip(alone, _nonempty(wanted), strict=True) if not found & called]
        kept += workers.run(again, None, total, total)
    if progress is not None:
        progress(total, total)
    records = scripts + kept
    return Seen([o for r in records for o in r.observations], [n for r in records for n in r.notes])


def _nonempty(wanted: dict[str, set[Definition]]) -> list[tuple[str, set[Definition]]]:
    return [(relative, found) for relative, found in wanted.items() if found]


# which files and functions


def _concerned(project: Project, rules: list[Rule]) -> list[str]:
    """The files that a rule may have something to say about, and those that import one of these."""
    words = _words(rules)
    bytes_of = {relative: project.raw(relative) for relative in project.paths}
    direct = {r for r, raw in bytes_of.items() if (b"torch" in raw or b"import" in raw) and words.search(raw)}
    tree = project.files.tree
    chosen = set(direct)
    for relative, raw in bytes_of.items():
        if relative not in direct and any(found in direct for found in _imports(tree, relative, raw)):
            chosen.add(relative)
    return sorted(chosen)


def _words(rules: list[Rule]) -> re.Pattern[bytes]:
    words = sorted({re.escape(word) for rule in rules for word in rule.gate}, key=len, reverse=True)
    return re.compile(b"|".join(words))


_FROM = re.compile(rb"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*import[ \t]+([^\n#]+)", re.MULTILINE)


def _imports(tree: Tree, relative: str, raw: bytes) -> Iterable[str]:
    """The files of the tree that a file imports, by a look at its text."""
    importer = PurePosixPath(relative)
    for source, names in _FROM.findall(raw):
        module = source.decode(errors="replace")
        dots = len(module) - len(module.lstrip("."))
        if dots:
            found = tree.resolve_relative(module[dots:] or None, dots, importer)
        elif module.partition(".")[0] in NEVER_OF_THE_TREE:
            continue
        else:
            found = tree.resolve(module, importer)
        if found is None:
            continue
        yield found
        if found.endswith(("/", "__init__.py")):
            folder = found.removesuffix("__init__.py")
            for name in re.findall(rb"\w+", names):
                member = tree.at(folder + name.decode(errors="replace"))
                if member is not None:
                    yield member
    for modules in _IMPORT.findall(raw):
        for part in modules.split(b","):
            name = part.split()[0].decode(errors="replace") if part.split() else ""
            if name and name.partition(".")[0] not in NEVER_OF_THE_TREE:
                found = tree.resolve(name, importer)
                if found is not None:
                    yield found


def _unreached(
    project: Project, relative: str, entered: set[Definition], words: re.Pattern[bytes]
) -> set[Definition]:
    """The functions of a file that no run entered, in the definitions that may matter or that use one of those."""
    file = project.files.file(relative)
    if file is None:
        return set()
    lines = project.raw(relative).splitlines(keepends=True)
    segments: list[tuple[ast.stmt, bytes]] = []
    for statement in file.tree.body:
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            segments.append((statement, b"".join(lines[statement.lineno - 1 : statement.end_lineno])))
    chosen = [statement for statement, text in segments if words.search(text)]
    if chosen:
        names = re.compile(rb"\b(?:" + b"|".join(re.escape(s.name.encode()) for s in chosen) + rb")\b")  # type: ignore[attr-defined]
        chosen += [statement for statement, text in segments if statement not in chosen and names.search(text)]
    return {
        (relative, node.lineno, node.col_offset)
        for statement in chosen
        for node in ast.walk(statement)
        if isinstance(node, _FUNCTIONS) and (relative, node.lineno, node.col_offset) not in entered
    }


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

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def run(
        self, jobs: list[Job], progress: Callable[[int, int], None] | None, done: int, total: int
    ) -> list[Record]:
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


def _work(job: Job) -> Record:
    assert _worker is not None
    return run_job(*_worker, job)


def run_job(project: Project, rules: list[Rule], job: Job) -> Record:
    """Simulate one job and note what the rules see."""
    record = Record()
    files = project.files
    file = files.file(job.relative)
    record.loaded.add(job.relative)
    if file is None:
        return record
    previous = sys.getrecursionlimit()
    sys.setrecursionlimit(max(previous, 12_000))
    try:
        machine = Machine(files, SCRIPT_BUDGET if job.functions is None else FUNCTION_BUDGET)
        if job.functions is None:
            traces = [machine.run_script(file)]
        else:
            traces = machine.run_functions(file, _nodes(file, job.relative, job.functions))
        for trace in traces:
            _note(trace, rules, record)
        record.loaded |= machine.looked_at
        record.entered = {_definition(d, f) for d, f in machine.entered.items()}
        record.called = {_definition(d, f) for d, f in machine.called.items()}
    finally:
        sys.setrecursionlimit(previous)
    return record


def _note(trace: Trace, rules: list[Rule], record: Record) -> None:
    record.notes += trace.notes
    for rule in rules:
        record.observations += rule.observe(trace)


def _nodes(file: ParsedFile, relative: str, wanted: frozenset[Definition]) -> set[ast.AST]:
    return {
        node
        for node in ast.walk(file.tree)
        if isinstance(node, _FUNCTIONS) and (relative, node.lineno, node.col_offset) in wanted
    }


def _definition(node: ast.AST, file: ParsedFile) -> Definition:
    return (file.relative.as_posix(), node.lineno, node.col_offset)  # type: ignore[attr-defined]


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
