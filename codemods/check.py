"""From paths to findings that a report can show: discovery, reading, analysis, selection, suppression."""

from __future__ import annotations

import functools
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from codemods.analysis import Analysis, analyse
from codemods.findings import Finding, Promise, Skipped
from codemods.options import Options
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, display_path, read_source, source_from_bytes
from codemods.source.suppressions import Suppressions

if TYPE_CHECKING:
    from codemods.baseline import Fingerprint
    from codemods.edits.model import Edit
    from codemods.ignores import UnusedIgnore
    from codemods.source.python2 import Translation

Progress = Callable[[int, int], None]


class Analyser(Protocol):
    """The call of :func:`codemods.analysis.analyse`, for which tests put a fake."""

    def __call__(
        self,
        targets: Sequence[SourceFile],
        *,
        options: Options,
        jobs: int | None = None,
        overlay: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Analysis: ...


class Reported(NamedTuple):
    """A finding with what ``apply`` with the same options would do: change it, or not because of ``obstacle``."""

    finding: Finding
    obstacle: str | None

    @property
    def fixable(self) -> bool:
        return self.obstacle is None


@dataclass(frozen=True, eq=False)
class Group:
    """Findings that are mended together or not at all, with the files that this changes.

    ``indices`` are their places in the list that was grouped; ``obstacle`` says why they cannot be mended, if so.
    """

    indices: tuple[int, ...]
    findings: tuple[Finding, ...]
    obstacle: str | None

    @functools.cached_property
    def edits(self) -> dict[str, list[Edit]]:
        """The edits by path, each once, in order."""
        made: dict[str, list[Edit]] = defaultdict(list)
        for path, edit in dict.fromkeys(edit for finding in self.findings for edit in finding.edits):
            made[path].append(edit)
        return dict(made)


@dataclass(frozen=True)
class CheckResult:
    """What ``check`` found: ``files`` counts those looked at and those ``skipped``."""

    files: int
    findings: tuple[Reported, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    unused: tuple[UnusedIgnore, ...] = ()
    """Suppression comments that do nothing, where they were asked for."""
    elsewhere: int = 0
    """Findings left out because they are on lines that did not change."""
    frozen: int = 0
    """Findings left out because a baseline knows them."""
    gone: tuple[Fingerprint, ...] = ()
    """What the baseline knows and is there no more."""


class Targets(NamedTuple):
    """The files to work on: those that could be read, and those that could not."""

    sources: list[SourceFile]
    skipped: list[Skipped]


def read_targets(
    paths: Sequence[str], *, exclude: Sequence[str] = (), exclude_root: str | os.PathLike[str] | None = None
) -> Targets:
    """Find and read the files that ``paths`` stand for; see :func:`codemods.source.discovery.discover`.

    Raises :class:`~codemods.source.errors.MissingPath` for a path that does not exist; what exists and cannot be
    read is in the result.
    """
    from codemods.source.discovery import discover

    found = discover(paths, exclude=exclude, exclude_root=exclude_root)
    sources, skipped = [], list(found.problems)
    for path in found.files:
        try:
            sources.append(read_source(path))
        except SourceError as error:
            skipped.append(error.skipped)
    return Targets(sources, skipped)


def text_target(data: bytes, filename: str) -> Targets:
    """Return ``data``, the bytes of standard input, as the one file to work on, under the name ``filename``."""
    try:
        return Targets([source_from_bytes(data, display_path(filename), filename)], [])
    except SourceError as error:
        return Targets([], [error.skipped])


def check(
    targets: Sequence[SourceFile],
    *,
    options: Options,
    jobs: int | None = None,
    skipped: Sequence[Skipped] = (),
    progress: Progress | None = None,
    analyse: Analyser = analyse,
    report_unused_ignores: bool = False,
) -> CheckResult:
    """Find what the selected rules find in ``targets``, less what comments in them suppress.

    ``skipped`` are files that could not even be read; they are passed on. With ``report_unused_ignores`` the comments
    that suppress nothing are in the result too. Raises nothing for a file of the user.
    """
    made = translations(targets, options)
    overlay = {one.source.path: one.text for one in made}
    analysis = analyse(targets, options=options, jobs=jobs, progress=progress, overlay=overlay or None)
    texts = {source.path: source.text for source in targets} | overlay
    findings = visible(analysis.findings, texts, options)
    unused: Sequence[UnusedIgnore] = ()
    if report_unused_ignores:
        from codemods.ignores import unused_ignores

        readable = {path: texts[path] for path in texts.keys() - {entry.path for entry in analysis.skipped}}
        unused = unused_ignores(asked_for(analysis.findings, texts, options), readable, options)
    reported = [*(Reported(one.finding, None) for one in made), *judge(findings, options, texts)]
    return CheckResult(
        files=len(targets) + len(skipped),
        findings=tuple(sorted(reported, key=lambda one: (one.finding.path, one.finding.span, one.finding.rule))),
        skipped=(*skipped, *analysis.skipped),
        notes=tuple(dict.fromkeys(analysis.notes)),
        unused=tuple(unused),
    )


def translations(targets: Sequence[SourceFile], options: Options) -> list[Translation]:
    """Return the translations of those of ``targets`` that are Python 2, if ``options`` ask for them."""
    if not options.python2:
        return []
    from codemods.source import python2

    return python2.translations(targets)


def selected(finding: Finding, options: Options) -> bool:
    """Tell whether ``options`` ask for the rule of ``finding``; an opt-in one has to be named."""
    if finding.rule in options.ignore:
        return False
    if finding.opt_in or options.select:
        return finding.rule in options.select
    return True


def asked_for(findings: Iterable[Finding], texts: Mapping[str, str], options: Options) -> list[Finding]:
    """Return those of ``findings`` that are in one of ``texts``, by path, and whose rule ``options`` ask for there.

    A finding in another file is left out, because nobody asked about that file.
    """
    return [
        finding
        for finding in findings
        if finding.path in texts
        and selected(finding, options)
        and finding.rule not in options.per_file_ignores.rules(finding.path)
    ]


def visible(findings: Iterable[Finding], texts: Mapping[str, str], options: Options) -> list[Finding]:
    """Return those of ``findings`` that are asked for and not suppressed, in order of path and position.

    ``texts`` are the files by path, as they were when the findings were made.
    """
    suppressions: dict[str, Suppressions] = {}
    chosen = []
    for finding in asked_for(findings, texts, options):
        if finding.path not in suppressions:
            suppressions[finding.path] = Suppressions.of(texts[finding.path])
        if not suppressions[finding.path].covers(finding.rule, finding.span.line, finding.span.end_line):
            chosen.append(finding)
    return sorted(chosen, key=lambda finding: (finding.path, finding.span, finding.rule))


def judge(findings: Sequence[Finding], options: Options, paths: Collection[str]) -> list[Reported]:
    """Return ``findings`` in their order, each with whether ``apply`` would change it; see :func:`group_findings`."""
    obstacles: dict[int, str | None] = {}
    for group in group_findings(findings, options, paths):
        obstacles.update(dict.fromkeys(group.indices, group.obstacle))
    return [Reported(finding, obstacles[index]) for index, finding in enumerate(findings)]


def group_findings(findings: Sequence[Finding], options: Options, paths: Collection[str]) -> list[Group]:
    """Return ``findings`` in groups of partners, in order of their first.

    A group has an obstacle if one of its findings cannot be mended with ``options``, names a partner that is not among
    ``findings`` (not selected, or suppressed), or changes a file outside ``paths``.
    """
    by_key: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for index, finding in enumerate(findings):
        by_key[finding.key].append(index)
    leader = list(range(len(findings)))

    def lead(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    for index, finding in enumerate(findings):
        for partner in finding.partners:
            for other in by_key.get(partner, ()):
                low, high = sorted((lead(index), lead(other)))
                leader[high] = low
    members: dict[int, list[int]] = defaultdict(list)
    for index in range(len(findings)):
        members[lead(index)].append(index)
    groups = []
    for indices in members.values():
        group = tuple(findings[index] for index in indices)
        obstacles = (_obstacle(finding, options, by_key, paths) for finding in group)
        groups.append(Group(tuple(indices), group, next((o for o in obstacles if o is not None), None)))
    return groups


def older(version: str, other: str) -> bool:
    """Tell whether the release ``version`` comes before ``other``: ``0.3.1`` before ``0.4``."""
    return _release(version) < _release(other)


def _release(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3]]
    return (*numbers, 0, 0, 0)[:3]


def _obstacle(
    finding: Finding, options: Options, known: Mapping[tuple[str, str, int], Sequence[int]], paths: Collection[str]
) -> str | None:
    place = f"{finding.path}:{finding.span.line}"
    if not finding.fixable(unsafe=options.unsafe):
        if finding.promise is Promise.BEHAVIOUR and finding.edits:
            return f"{finding.rule} at {place} changes what is learned and needs --unsafe"
        return f"{finding.rule} at {place} is advice"
    if finding.since and options.target_torch != "current" and older(options.target_torch, finding.since):
        return f"{finding.rule} at {place} writes what PyTorch has since {finding.since} only"
    for rule, path, line in finding.partners:
        if (rule, path, line) not in known:
            return f"makes sense only together with {rule} at {path}:{line}, which is not selected"
    for path, _ in finding.edits:
        if path not in paths:
            return f"would change {path} too, which is not among the files to change"
    return None
