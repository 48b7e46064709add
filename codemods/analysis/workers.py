"""Jobs run in this process or in several.

A job is remembered by the texts of the files that it loaded or asked: after an edit only what did so with the edited
file runs again.
"""

from __future__ import annotations

import gc
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from codemods.analysis import garbage
from codemods.analysis.job import Job, Record, run_job
from codemods.analysis.project import Project
from codemods.analysis.told import found_readable, readable, was_read
from codemods.rules.base import Rule

if TYPE_CHECKING:
    from codemods.analysis.pool import Pool

Key = tuple[str, str, tuple[str, ...], Job]
"""The root of a tree, its names, the rules, and the job."""

Remembered = tuple[dict[str, str], Record]
"""Digests of the files that a job depends on, and what it has shown."""

PARALLEL_FROM = 24
"""Files from which on a pool of processes pays for its start."""

PARALLEL_READING = 4_000_000
"""Characters from which on it does so where they are only read."""

_PORTION = 40
"""Texts that a process reads at a time."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Runs jobs, in this process or in several."""

    def __init__(self, project: Project, rules: list[Rule], jobs: int | None, files: int) -> None:
        self.project = project
        self.rules = rules
        self.names = tuple(rule.name for rule in rules)
        self.wanted = jobs if jobs is not None else cores()
        self.processes = min(self.wanted, max(1, files // 8)) if files >= PARALLEL_FROM else 1
        self._pool: Pool | None = None
        self._collects = gc.isenabled()

    def __enter__(self) -> Workers:
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.end()
        garbage.unfreeze()
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
        found = [record for record in records if record is not None]
        for record in found:
            self.project.broken.update(record.broken)
            self.project.readable |= record.readable
        return found

    def _results(self, jobs: list[Job]) -> Iterable[Record]:
        if self.processes < 2 or len(jobs) < 2:
            for job in jobs:
                yield run_job(self.project, self.rules, job)
            return
        portion = max(1, min(8, len(jobs) // (self.processes * 4)))
        yield from self._several(self.processes).map(_work, jobs, portion)

    def unread(self) -> list[str]:
        """The targets that Python does not take as they stand, by the path that is shown."""
        project = self.project
        unknown = [shown for shown in project.targets if shown not in project.readable]
        todo = [shown for shown in unknown if not was_read(project.target_text(shown))]
        if self.wanted > 1 and sum(len(project.target_text(shown)) for shown in todo) >= PARALLEL_READING:
            portions = [todo[i : i + _PORTION] for i in range(0, len(todo), _PORTION)]
            for portion, bad in zip(portions, self._several(self.wanted).map(_unread, portions), strict=True):
                for shown in portion:
                    found_readable(project.target_text(shown), shown not in bad)
        return [shown for shown in unknown if not readable(project.target_text(shown))]

    def _several(self, processes: int) -> Pool:
        if self._pool is None:
            from codemods.analysis.pool import Pool

            self._pool = Pool(processes, _start_worker, self.project.for_worker(), self.names)
        return self._pool


_worker: tuple[Project, list[Rule]] | None = None


def _start_worker(project: Project, names: tuple[str, ...]) -> None:
    from codemods.rules import rule

    global _worker
    _worker = (project, [rule(name) for name in names])
    gc.disable()


def _work(job: Job) -> Record:
    assert _worker is not None
    return run_job(*_worker, job)


def _unread(portion: list[str]) -> list[str]:
    assert _worker is not None
    project, _ = _worker
    return [shown for shown in portion if not readable(project.target_text(shown))]


# remembering


_memory: OrderedDict[Key, Remembered] = OrderedDict()

_MEMORY = 20_000

asked: set[Key] = set()
"""What was asked for."""


def remembered(root: str) -> dict[Key, Remembered]:
    """What is remembered of the jobs of the tree at ``root``."""
    return {key: known for key, known in _memory.items() if key[0] == root}


def remember(known: dict[Key, Remembered]) -> None:
    """Remember what another process has seen, where this one has seen nothing."""
    for key, one in known.items():
        _memory.setdefault(key, one)


def _key(project: Project, names: tuple[str, ...], job: Job) -> Key:
    return (str(project.root), project.names, names, job)


def _remember(project: Project, names: tuple[str, ...], job: Job, record: Record) -> None:
    texts = {relative: project.digest(relative) for relative in record.loaded | record.passed}
    _memory[_key(project, names, job)] = (texts, record)
    if len(_memory) > _MEMORY:
        _memory.popitem(last=False)


def _remembered(project: Project, names: tuple[str, ...], job: Job) -> Record | None:
    key = _key(project, names, job)
    asked.add(key)
    found = _memory.get(key)
    if found is None:
        return None
    texts, record = found
    if any(relative not in project.paths or project.digest(relative) != text for relative, text in texts.items()):
        return None
    return record
