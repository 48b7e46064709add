"""Which programs of a tree are simulated, in which processes, and what the rules note of each.

First every file that may matter runs as a script, then every function that none of those runs entered, with arguments
that cannot be seen. A run is remembered by the texts of the files it loaded: after an edit only what loads the edited
file runs again.
"""

from __future__ import annotations

import ast
import gc
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
"""Evaluated syntax nodes that one run may take; chosen so that the largest of some hundred research scripts end well
below."""

FUNCTIONS_BUDGET = 20_000_000
"""What all functions together may take that no script reaches: in a library of thousands each gets less."""

LEAST_BUDGET = 15_000

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
    that code of the tree called, ``roots`` those that ran for themselves."""

    observations: list[Observation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)
    entered: set[Definition] = field(default_factory=set)
    called: set[Definition] = field(default_factory=set)
    roots: set[Definition] = field(default_factory=set)


class Job(NamedTuple):
    """A file to be run as a script, or (with ``functions``) the functions of it to be run for themselves."""

    relative: str
    functions: frozenset[Definition] | None
    budget: int = SCRIPT_BUDGET


def observe(
    project: Project,
    rules: list[Rule],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Seen:
    """Simulate what may matter in ``project`` and gather the observations of ``rules``."""
    concerned = _reaching(project, _concerned(project, rules))
    with _Workers(project, rules, jobs, len(concerned)) as workers:
        total = 2 * len(concerned)
        scripts = workers.run([Job(r, None) for r in concerned if _is_script(project, r)], progress, 0, total)
        entered = {d for record in scripts for d in record.entered}
        words = _words(rules)
        matter = _that_matter(project, concerned, words)
        wanted = {r: _unreached(project, r, entered, words, matter) for r in concerned}
        budget = _function_budget(wanted)
        alone = workers.run(
            [Job(r, frozenset(found), budget) for r, found in wanted.items() if found], progress, len(concerned), total
        )
        called = {d for record in alone for d in record.called}
        kept = [record for record in alone if not record.roots & called]
        again = [
            Job(r, frozenset(found - called), budget)
            for record, (r, found) in zip(alone, _nonempty(wanted), strict=True)
            if record.roots & called and found - called
        ]
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
    direct = {r for r, raw in bytes_of.items() if words.search(raw)}
    tree = project.files.tree
    chosen = set(direct)
    for relative, raw in bytes_of.items():
        if relative not in direct and any(found in direct for found in _imports(tree, relative, raw)):
            chosen.add(relative)
    return sorted(chosen)


def _reaching(project: Project, concerned: list[str]) -> list[str]:
    """Those of the files that are targets, or import one, directly or through others: no other run says anything of
    them."""
    targets = {relative for relative, shown in project.display.items() if shown in project.targets}
    if len(targets) == len(project.paths):
        return concerned
    tree = project.files.tree
    importers: dict[str, set[str]] = {}
    for relative in project.paths:
        for found in _imports(tree, relative, project.raw(relative)):
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
    return [relative for relative in concerned if relative in reached]


def _function_budget(wanted: dict[str, set[Definition]]) -> int:
    count = sum(len(found) for found in wanted.values())
    return max(LEAST_BUDGET, min(FUNCTION_BUDGET, FUNCTIONS_BUDGET // max(1, count)))


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


_CONTEXT = re.compile(rb"no_grad|inference_mode|set_grad_enabled")


def _is_script(project: Project, relative: str) -> bool:
    """Whether running a file does more than to define and import."""
    project.files.trim()
    file = project.files.file(relative)
    return file is not None and any(_acts(statement) for statement in file.tree.body)


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AugAssign, ast.Match)):
        return True
    if isinstance(statement, (ast.If, ast.Try)):
        inner = [*statement.body, *statement.orelse]
        return any(_acts(s) for s in inner)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await))


_NAME = re.compile(rb"[A-Za-z_]\w*")


def _that_matter(project: Project, concerned: list[str], words: re.Pattern[bytes]) -> frozenset[bytes]:
    """The names of the functions and methods in which a rule's words stand."""
    names: set[bytes] = set()
    for relative in concerned:
        raw = project.raw(relative)
        project.files.trim()
        file = project.files.file(relative) if words.search(raw) else None
        if file is None:
            continue
        lines = _lines(raw)
        for statement, text in _segments(file, lines):
            if words.search(text):
                names.add(statement.name.encode())
                if isinstance(statement, ast.ClassDef):
                    names |= {m.name.encode() for m in statement.body if isinstance(m, _FUNCTIONS)}
    return frozenset(names - {b"__init__", b"forward", b"__call__"})


def _lines(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


def _segments(
    file: ParsedFile, lines: list[bytes]
) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, bytes]]:
    return [
        (statement, b"".join(lines[statement.lineno - 1 : statement.end_lineno]))
        for statement in file.tree.body
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef))
    ]


def _unreached(
    project: Project, relative: str, entered: set[Definition], words: re.Pattern[bytes], matter: frozenset[bytes]
) -> set[Definition]:
    """The functions of a file that no run entered, in the definitions that may matter or that use one of those.

    Where gradients are switched off around something that matters, the caller matters too.
    """
    project.files.trim()
    file = project.files.file(relative)
    if file is None:
        return set()
    lines = _lines(project.raw(relative))
    segments = _segments(file, lines)
    chosen = [
        statement
        for statement, text in segments
        if words.search(text) or (_CONTEXT.search(text) and not matter.isdisjoint(_NAME.findall(text)))
    ]
    if chosen:
        names = re.compile(rb"\b(?:" + b"|".join(re.escape(s.name.encode()) for s in chosen) + rb")\b")
        chosen += [statement for statement, text in segments if statement not in chosen and names.search(text)]
    return {
        (relative, node.lineno, node.col_offset)
        for statement in chosen
        for node in _roots(statement, lines, words)
        if (relative, node.lineno, node.col_offset) not in entered
    }


MANY_METHODS = 60
"""From so many methods on, only those of a class are run for themselves in which a rule's words stand."""


def _roots(
    statement: ast.stmt, lines: list[bytes], words: re.Pattern[bytes]
) -> Iterable[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a definition that are run for themselves: it, or its methods; nobody can call what is nested."""
    if isinstance(statement, _FUNCTIONS):
        yield statement
    elif isinstance(statement, ast.ClassDef):
        methods = [m for m in statement.body if isinstance(m, _FUNCTIONS)]
        for method in methods:
            if len(methods) < MANY_METHODS or words.search(b"".join(lines[method.lineno - 1 : method.end_lineno])):
                yield method


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


def _work(job: Job) -> Record:
    assert _worker is not None
    return run_job(*_worker, job)


def run_job(project: Project, rules: list[Rule], job: Job) -> Record:
    """Simulate one job and note what the rules see."""
    record = Record()
    files = project.files
    files.trim()
    file = files.file(job.relative)
    record.loaded.add(job.relative)
    if file is None:
        return record
    previous = sys.getrecursionlimit()
    sys.setrecursionlimit(max(previous, 12_000))
    # nearly all that a run makes lives until its end: looking for garbage meanwhile costs a fifth of its time
    collecting = gc.isenabled()
    gc.disable()
    try:
        machine = Machine(files, job.budget)
        if job.functions is None:
            traces = [machine.run_script(file)]
        else:
            traces = machine.run_functions(file, _nodes(file, job.relative, job.functions))
        for trace in traces:
            _note(trace, rules, record)
        record.loaded |= machine.looked_at
        record.entered = {_definition(d, f) for d, f in machine.entered.items()}
        record.called = {_definition(d, f) for d, f in machine.called.items()}
        record.roots = {_definition(d, file) for d in machine.roots}
    finally:
        sys.setrecursionlimit(previous)
        if collecting:
            gc.enable()
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
