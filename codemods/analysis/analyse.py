"""From files to findings: the selected rules decide on what the simulated runs of a tree have shown.

What earlier processes have seen of the same tree is kept on disk.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from codemods.analysis import workers
from codemods.analysis.programs import observe
from codemods.analysis.project import Project, projects_of
from codemods.proofs.mentions import with_bound_names
from codemods.proofs.observations import Decision, Observation
from codemods.proofs.soundness import Conduct, ending
from codemods.rules import all_rules
from codemods.rules.base import Rule
from codemods.source.cache import Cache
from codemods.source.files import SourceFile, digest_of
from codemods.source.options import Options
from codemods.terms.findings import Finding, Skipped, in_order, promoted

_RESULTS = 8
"""Of how many trees the whole result is kept: other states of this one, other targets and other options."""

_AGE = 8
"""After how many runs that did not ask for it what a job has shown is forgotten."""

_T = TypeVar("_T")


class Analysis(NamedTuple):
    """What was found: ``findings`` in order of path and line, ``skipped`` files, ``notes`` on where a budget ended, and
    the ``conduct`` of the programs."""

    findings: list[Finding]
    skipped: list[Skipped]
    notes: list[str]
    conduct: Conduct


def analyse(
    targets: Sequence[SourceFile],
    *,
    options: Options,
    jobs: int | None = None,
    overlay: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """Find what the selected rules find in ``targets``, looking at the project around them as well.

    ``jobs`` is the number of processes, by default that of the processors. ``overlay`` gives the text of files (by
    display path) that are not written yet. ``progress`` is called with the number of runs done and of all runs.
    """
    rules = selected_rules(options)
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    notes: list[str] = []
    conduct = Conduct()
    for project in projects_of(targets, overlay or {}):
        run = functools.partial(_analysis, project, rules, options, jobs, progress)
        one = stored(project, options, run) if options.cache else run()
        notes += one.notes
        conduct.add(one.conduct)
        findings += one.findings
        skipped += one.skipped
    findings.sort(key=in_order)
    return Analysis(findings, sorted(skipped), list(dict.fromkeys(notes)), conduct)


def _analysis(
    project: Project,
    rules: list[Rule],
    options: Options,
    jobs: int | None,
    progress: Callable[[int, int], None] | None,
) -> Analysis:
    decide = functools.partial(_decide, project, rules, options)
    seen = observe(project, rules, decide, jobs=jobs, progress=progress)
    found = promoted(seen.findings) if options.likely else seen.findings
    findings = ending(found, seen.conduct, unsafe=options.unsafe)
    for shown in seen.unread:
        # most of them cannot be read at all, and the attempt says why
        project.parsed(shown)
    unparsable = [problem for shown, problem in project.broken.items() if shown in project.targets]
    return Analysis(findings, unparsable, seen.notes, seen.conduct)


def _decide(project: Project, rules: list[Rule], options: Options, observations: list[Observation]) -> list[Finding]:
    found: list[Finding] = []
    decision = Decision(project.parsed, options, found)
    noted: dict[str, list[Observation]] = {}
    for observation in observations:
        noted.setdefault(observation.rule, []).append(observation)
    for rule in rules:
        for finding in rule.decide(noted.get(rule.name, []), decision):
            if finding.path in project.targets:
                found.append(finding if finding.since else replace(finding, since=rule.since))
    return with_bound_names(found, decision)


def selected_rules(options: Options) -> list[Rule]:
    """The rules that ``options`` select, in the order of their names."""
    chosen = []
    for name, rule in sorted(all_rules().items()):
        if name in options.ignore or (options.select and name not in options.select):
            continue
        if rule.opt_in and name not in options.select:
            continue
        chosen.append(rule)
    return chosen


def stored(project: Project, options: Options, run: Callable[[], _T]) -> _T:
    """What ``run`` returns for ``project``, or returned when the project and the options were the same."""
    root = project.root
    if project.overlay or root == root.parent or root == Path.home():
        return run()
    cache = Cache(root)
    name = "result" + digest_of(f"{project.content} {options!r}".encode(errors="replace"))
    known = cache.read(name)
    if isinstance(known, tuple) and len(known) == 1:
        return known[0]  # type: ignore[no-any-return]
    jobs = _Jobs(cache, str(root))
    found = run()
    jobs.write()
    cache.write(name, (found,))
    cache.keep_newest("result", _RESULTS)
    return found


class _Jobs:
    """What the jobs of a tree have shown, each with the number of runs since anybody asked for it."""

    def __init__(self, cache: Cache, root: str) -> None:
        self.cache = cache
        self.root = root
        found = cache.read("jobs")
        self.known: dict[workers.Key, tuple[int, workers.Remembered]] = found if isinstance(found, dict) else {}
        workers.remember({key: one for key, (_, one) in self.known.items() if key[0] == root})
        workers.asked.clear()

    def write(self) -> None:
        """Keep them together with what this process has seen."""
        kept = {}
        for key, one in workers.remembered(self.root).items():
            age = 0 if key in workers.asked or key not in self.known else self.known[key][0] + 1
            if age <= _AGE:
                kept[key] = (age, one)
        self.cache.write("jobs", kept)
