"""From paths to findings that a report can show: discovery, reading, analysis, selection, suppression."""

from __future__ import annotations

import functools
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from codemods.analysis import Analysis, analyse
from codemods.findings import Finding, Place, Promise, Skipped
from codemods.options import Options
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, display_path, read_source, source_from_bytes
from codemods.source.suppressions import Suppressions
from codemods.uniting import united

if TYPE_CHECKING:
    from codemods.baseline import Fingerprint
    from codemods.edits.model import Edit
    from codemods.ignores import UnusedIgnore
    from codemods.source.python2 import Translation

Progress = Callable[[int, int], None]
Files = Collection[str] | Mapping[str, SourceFile]


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

    def placed(self, sources: Mapping[str, SourceFile]) -> Reported:
        """The same, with lines of notebooks that its words mention as people find them."""
        return self._replace(finding=placed(self.finding, sources))


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
    sources: tuple[SourceFile, ...] = ()
    """The files looked at, as they were read."""
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
    sources = {source.path: source for source in targets}
    judged = judge(findings, options, sources)
    reported = [*(Reported(one.finding, None) for one in made), *(one.placed(sources) for one in judged)]
    return CheckResult(
        files=counted(targets, skipped),
        findings=tuple(sorted(reported, key=lambda one: (one.finding.path, one.finding.span, one.finding.rule))),
        skipped=(*skipped, *broken_cells(targets), *analysis.skipped),
        notes=tuple(dict.fromkeys(analysis.notes)),
        sources=tuple(targets),
        unused=tuple(unused),
    )


def placed(finding: Finding, sources: Mapping[str, SourceFile]) -> Finding:
    """Return ``finding`` with the lines of notebooks that its words mention as people find them: ``line 3 of cell 2``.

    ``sources`` are the files by path, with the texts in which the finding stands.
    """

    def told(path: str, words: str) -> str:
        source = sources.get(path)
        if source is None or source.notebook is None:
            return words
        words = _LINE_MENTIONED.sub(lambda match: _line_of_cell(source.place(int(match[1]))), words)
        return source.notebook.spelled(words)

    if all(
        sources[path].notebook is None for path in {finding.path, *(s.path for s in finding.trail)} & sources.keys()
    ):
        return finding
    trail = tuple(step._replace(note=told(step.path, step.note)) for step in finding.trail)
    return replace(
        finding,
        message=told(finding.path, finding.message),
        remedy=told(finding.path, finding.remedy),
        trail=trail,
    )


_LINE_MENTIONED = re.compile(r"\bline (\d+)\b")


def _line_of_cell(place: Place) -> str:
    return f"line {place.line} of cell {place.cell}"


def broken_cells(targets: Iterable[SourceFile]) -> list[Skipped]:
    """Return the cells of notebooks among ``targets`` that are no Python."""
    return [entry for source in targets if source.notebook is not None for entry in source.notebook.skipped]


def counted(targets: Sequence[SourceFile], skipped: Iterable[Skipped]) -> int:
    """Return how many files ``targets`` are, together with those ``skipped`` that could not even be read."""
    return len(targets) + sum(entry.cell is None for entry in skipped)


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


def judge(findings: Sequence[Finding], options: Options, files: Files) -> list[Reported]:
    """Return ``findings`` in their order, each with whether ``apply`` would change it; see :func:`group_findings`."""
    obstacles: dict[int, str | None] = {}
    for group in group_findings(findings, options, files):
        obstacles.update(dict.fromkeys(group.indices, group.obstacle))
    return [Reported(finding, obstacles[index]) for index, finding in enumerate(findings)]


def group_findings(findings: Sequence[Finding], options: Options, files: Files) -> list[Group]:
    """Return ``findings`` in groups of partners, in order of their first.

    A group has an obstacle if one of its findings cannot be mended with ``options``, names a partner that is not among
    ``findings`` (not selected, or suppressed), changes a file outside ``files``, or would move code from one cell of a
    notebook to another. ``files`` are paths, or by path the files with the texts in which the findings stand.
    """
    by_key: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for index, finding in enumerate(findings):
        by_key[finding.key].append(index)
    ties = ((index, *by_key.get(partner, ())) for index, finding in enumerate(findings) for partner in finding.partners)
    groups = []
    for indices in united(len(findings), ties):
        group = tuple(findings[index] for index in indices)
        obstacles = (_obstacle(finding, options, by_key, files) for finding in group)
        groups.append(Group(indices, group, next((o for o in obstacles if o is not None), None)))
    return groups


def older(version: str, other: str) -> bool:
    """Tell whether the release ``version`` comes before ``other``: ``0.3.1`` before ``0.4``."""
    return _release(version) < _release(other)


def _release(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3]]
    return (*numbers, 0, 0, 0)[:3]


def _obstacle(
    finding: Finding, options: Options, known: Mapping[tuple[str, str, int], Sequence[int]], files: Files
) -> str | None:
    place = _shown(finding.path, finding.span.line, files)
    if not finding.fixable(unsafe=options.unsafe):
        if finding.promise is Promise.BEHAVIOUR and finding.edits:
            return f"{finding.rule} at {place} changes what is learned and needs --unsafe"
        return f"{finding.rule} at {place} is advice"
    if finding.since and options.target_torch != "current" and older(options.target_torch, finding.since):
        return f"{finding.rule} at {place} writes what PyTorch has since {finding.since} only"
    for rule, path, line in finding.partners:
        if (rule, path, line) not in known:
            return f"makes sense only together with {rule} at {_shown(path, line, files)}, which is not selected"
    for path, edit in finding.edits:
        if path not in files:
            return f"would change {path} too, which is not among the files to change"
        source = files[path] if isinstance(files, Mapping) else None
        if source is not None and source.notebook is not None and (reason := _across_cells(edit, source)):
            return reason
    return None


def _shown(path: str, line: int, files: Files) -> str:
    source = files.get(path) if isinstance(files, Mapping) else None
    return f"{path}:{line if source is None else source.place(line)}"


def _across_cells(edit: Edit, source: SourceFile) -> str | None:
    """Return why ``edit`` cannot be made in a notebook: it would reach from one cell into another."""
    from codemods.edits.model import MoveStatement, WrapBlock

    if isinstance(edit, WrapBlock):
        first, last = source.place(edit.first.line), source.place(edit.last.line)
        doing = "put code under one header"
    elif isinstance(edit, MoveStatement):
        anchor = edit.anchor.end_line if edit.where in ("after", "last-in") else edit.anchor.line
        first, last = source.place(edit.target.line), source.place(anchor)
        doing = "move a statement"
    else:
        return None
    if first.cell == last.cell:
        return None
    return f"would {doing} across cells {first.cell} and {last.cell} of {source.path}"
