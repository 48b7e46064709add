"""Which programs of a tree are simulated, and which observations count.

First every file that may matter runs as a script, then every function that none of those runs entered, with arguments
that cannot be seen; then, where that makes a finding, those functions that may switch gradients off around it.

What runs does not depend on the rules that are selected, and what runs for the findings of one rule says nothing of
another: a rule finds the same alone and among all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from codemods.analysis import garbage
from codemods.analysis.concerned import concerned
from codemods.analysis.job import Job, Noted, Record
from codemods.analysis.outline import Definition, may_act, may_switch
from codemods.analysis.project import Project
from codemods.analysis.workers import Workers
from codemods.proofs.observations import Observation, Shows
from codemods.proofs.soundness import Conduct
from codemods.rules.base import Rule
from codemods.terms.findings import Finding

FUNCTION_BUDGET = 250_000
"""What a script has as :data:`~codemods.analysis.job.SCRIPT_BUDGET`, for a function that is run for itself."""

FUNCTIONS_BUDGET = 12_000_000
"""What all functions together may take that no script reaches: in a library of thousands each gets less."""

LEAST_BUDGET = 6_000


class Seen(NamedTuple):
    """What all runs have shown: the findings, where a budget ended, how the program behaves, and the targets that
    Python does not take as they stand, whether or not anything runs them."""

    findings: list[Finding]
    notes: list[str]
    conduct: Conduct
    unread: list[str]


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
    direct, importers = concerned(project)
    programs = sorted(direct + [r for r in importers if may_act(project.raw(r))])
    with Workers(project, rules, jobs, len(direct) + len(importers)) as workers:
        total = len(programs) + len(direct)
        scripts = workers.run([Job(r) for r in programs], progress, 0, total)
        entered = {d for record in scripts for d in record.entered}
        entered |= {d for record in scripts for d in record.handing if _only_hands_on(d, record.handing, entered)}
        wanted = {r: record.candidates - entered for r, record in zip(programs, scripts, strict=True)}
        budget = max(LEAST_BUDGET, min(FUNCTION_BUDGET, FUNCTIONS_BUDGET // max(1, sum(map(len, wanted.values())))))
        alone = workers.run(
            [Job(r, frozenset(found), budget) for r, found in wanted.items() if found], progress, len(programs), total
        )
        noted = dict.fromkeys((rule.name for rule in rules), _settled(workers, scripts, alone, budget))
        findings = _decided(project, decide, noted)
        asking: dict[frozenset[bytes], list[str]] = {}
        for name, known in noted.items():
            doubtful = {f.path for f in findings if f.rule == name}
            leading = frozenset(way for one in known if _shows(one, name, doubtful) for way in one.leading)
            if leading:
                asking.setdefault(leading, []).append(name)
        entered |= {d for record in alone for d in record.entered}
        without = _by_file(entered)
        switching = sorted(r for r in (*direct, *importers) if may_switch(project.raw(r))) if asking else []
        for leading, names in asking.items():
            asked = frozenset(names)
            more = workers.run(
                [Job(r, None, budget, leading, without.get(r, frozenset()), asked) for r in switching],
                None,
                total,
                total,
            )
            if any(record.noted for record in more):
                noted |= dict.fromkeys(names, _settled(workers, scripts, alone + more, budget))
        if asking:
            findings = _decided(project, decide, noted)
        unread = workers.unread()
    if progress is not None:
        progress(total, total)
    conduct = Conduct()
    # most rules have one list together
    lists = {id(known): known for known in noted.values()}.values()
    runs = {id(one): one for known in lists for one in known}.values()
    for one in runs:
        conduct.add(one.conduct)
    notes = list(dict.fromkeys(note for one in runs for note in one.notes))
    return Seen(findings, notes, conduct, unread)


def _only_hands_on(function: Definition, handing: dict[Definition, Definition], entered: set[Definition]) -> bool:
    """Whether a function only hands its arguments to one that scripts enter: unseen callers may call either."""
    seen: set[Definition] = set()
    while function in handing and function not in seen:
        seen.add(function)
        function = handing[function]
        if function in entered:
            return True
    return False


def _decided(
    project: Project, decide: Callable[[list[Observation]], list[Finding]], noted: dict[str, list[Noted]]
) -> list[Finding]:
    """The findings of each rule, from the observations that count."""
    # the files with findings are needed all at once
    if project.files.trim(project.files.room // 8):
        garbage.unfreeze()
    by_rule: dict[int, dict[str, list[Observation]]] = {}
    for known in {id(known): known for known in noted.values()}.values():
        mine = by_rule[id(known)] = {}
        for observation in (o for one in known for o in one.observations):
            mine.setdefault(observation.rule, []).append(observation)
    return decide([o for name, known in noted.items() for o in by_rule[id(known)].get(name, ())])


def _settled(workers: Workers, scripts: list[Record], alone: list[Record], budget: int) -> list[Noted]:
    """The runs that count: not that of a function run by itself which another one turned out to call."""
    called = {d for record in alone for d in record.called}
    noted = [noted for record in alone for noted in record.noted]
    mixed = [one.roots - called for one in noted if one.roots & called]
    again = workers.run([Job(min(left)[0], left, budget) for left in mixed if left], None, 0, 0)
    kept = [one for one in noted if not one.roots & called]
    return [one for record in (*scripts, *again) for one in record.noted] + kept


def _shows(noted: Noted, rule: str, doubtful: Collection[str]) -> bool:
    """Whether a run shows a fault of a rule in one of the files ``doubtful``."""
    return any(o.shows is Shows.FAULT and o.rule == rule and o.path in doubtful for o in noted.observations)


def _by_file(definitions: Iterable[Definition]) -> dict[str, frozenset[Definition]]:
    found: dict[str, set[Definition]] = {}
    for definition in definitions:
        found.setdefault(definition[0], set()).add(definition)
    return {relative: frozenset(inside) for relative, inside in found.items()}
