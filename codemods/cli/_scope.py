"""The options about which findings count, and about the comments and the baseline that say so."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from codemods.cli import _help as h
from codemods.cli._options import Job
from codemods.cli._terminal import TROUBLE, complain
from codemods.reports import Detail
from codemods.terms.counting import plain_count_text
from codemods.terms.errors import UserError
from codemods.terms.findings import Finding, ShownLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from codemods.checking.check import CheckResult
    from codemods.checking.ignores import Ignored
    from codemods.checking.scope import Scope
    from codemods.source.files import SourceFile

Since = Annotated[
    str | None, h.what("--since", metavar="REV", help="Only report findings on lines changed since this git revision.")
]
BaselineFile = Annotated[
    str | None, h.what("--baseline", metavar="FILE", help="Only report findings that this baseline file lacks.")
]
UpdateBaseline = Annotated[
    bool, h.leave("--update-baseline", help="Record all findings in the baseline and drop those that are gone.")
]
AddIgnores = Annotated[bool, h.leave("--add-ignores", help="Add a suppression comment to every remaining finding.")]
Reason = Annotated[
    str | None, h.leave("--reason", metavar="TEXT", help="Give this reason in the comments of --add-ignores.")
]
ReportUnusedIgnores = Annotated[
    bool | None,
    h.leave("--report-unused-ignores/--no-report-unused-ignores", help="Report suppression comments that do nothing."),
]
RemoveUnusedIgnores = Annotated[
    bool, h.leave("--remove-unused-ignores", help="Remove suppression comments that do nothing.")
]


def scope(job: Job, since: str | None, baseline: str | Path | None) -> Scope:
    """Return the findings of ``job`` that are asked for; raises :class:`UserError` where that cannot be told."""
    from codemods.checking.scope import Scope

    return Scope.of(job.targets.sources, since=since, baseline=Path(baseline) if baseline else None)


PLACE = re.compile(r"(?P<path>.+?)(?::cell (?P<cell>\d+))?:(?P<line>\d+)(?::\d+)?:?")
"""A place as reports print it."""


def require_places(places: Sequence[str]) -> None:
    """Raise :class:`UserError` for an entry of ``places`` that names no line of a file."""
    for place in places:
        if PLACE.fullmatch(place) is None:
            raise UserError(f"--at {place}: must be PATH:LINE, as check prints it")


def require_no_place(paths: Sequence[str]) -> None:
    """Raise :class:`UserError` for one of ``paths`` that is a line of a file, as reports print it."""
    for path in paths:
        match = PLACE.fullmatch(path)
        if match is not None and not os.path.lexists(path) and os.path.isfile(match["path"]):
            raise UserError(f"{path}: a line of a file; codemod explain tells about it, codemod apply --at mends it")


def wanted(
    job: Job, since: str | None, baseline: str | None, places: Sequence[str]
) -> Callable[[tuple[Finding, ...]], bool]:
    """Return what ``apply`` is to ask about findings; raises :class:`UserError` where that cannot be told.

    Where ``places`` are given, one of the findings that are mended together has to stand at one of them.
    """
    if places and since is None and not baseline:
        return _at(job, places)
    within = _within(job, since, baseline)
    here = _at(job, places) if places else None
    return lambda findings: within(findings) and (here is None or here(findings))


def tell_missed(job: Job, places: Sequence[str], found: Sequence[Finding]) -> None:
    """Say at which of ``places`` none of ``found``, all that can be mended there, stands."""
    if job.detail is Detail.QUIET:
        return
    met = _places_of({source.path: source for source in job.targets.sources}, found)
    for place, asked in _asked(places).items():
        if asked not in met:
            complain(f"--at {place}: nothing to fix there")


def _asked(places: Sequence[str]) -> dict[str, tuple[str, ShownLine]]:
    from codemods.source.files import display_path

    return {
        place: (
            display_path(match["path"]),
            ShownLine(int(match["cell"]) if match["cell"] else None, int(match["line"])),
        )
        for place, match in zip(places, map(PLACE.fullmatch, places), strict=True)
        if match is not None
    }


def _places_of(sources: Mapping[str, SourceFile], findings: Iterable[Finding]) -> set[tuple[str, ShownLine]]:
    return {
        (finding.path, sources[finding.path].place(finding.span.line))
        for finding in findings
        if finding.path in sources
    }


def _at(job: Job, places: Sequence[str]) -> Callable[[tuple[Finding, ...]], bool]:
    asked = set(_asked(places).values())
    sources = {source.path: source for source in job.targets.sources}
    unknown = sorted({path for path, _ in asked} - sources.keys())
    if unknown and job.stdin is None:
        raise UserError(f"--at {unknown[0]}: not one of the files to check")
    return lambda findings: not asked.isdisjoint(_places_of(sources, findings))


def _within(job: Job, since: str | None, baseline: str | None) -> Callable[[tuple[Finding, ...]], bool]:
    from codemods.checking.check import check

    if job.stdin is not None:
        raise UserError("--since and --baseline are about files; they cannot be combined with -")
    within = scope(job, since, baseline)
    with job.progress as progress:
        found = check(job.targets.sources, options=job.options, jobs=job.jobs, progress=progress)
    return within.wanted(found, job.targets.sources, job.options)


def update(job: Job, result: CheckResult, baseline: str | Path | None) -> int:
    """Write the baseline and say what it holds."""
    from codemods.checking.scope import update_baseline

    if not baseline:
        raise UserError("--update-baseline needs --baseline FILE, or baseline in [tool.codemod]")
    done = update_baseline(Path(baseline), result, job.targets.sources, job.options)
    if job.detail is not Detail.QUIET:
        complain(f"{baseline}: {done.count} in the baseline, {done.added} added, {done.dropped} dropped")
    return 0


def require_comments(job: Job, add: bool, reason: str | None, remove: bool = False) -> None:
    """Raise :class:`UserError` where comments cannot be written as was asked for."""
    from codemods.source.suppressing import is_reason

    if reason is not None and not add:
        raise UserError("--reason needs --add-ignores")
    if reason is not None and not is_reason(reason):
        raise UserError("--reason: must be one line, and nothing that would be read as another comment")
    for given, option in ((add, "--add-ignores"), (remove, "--remove-unused-ignores")):
        if given and job.stdin is not None:
            raise UserError(f"{option} writes files; it cannot be combined with -")
        if given and job.options.python2:
            raise UserError(f"{option} needs the files as they are; it cannot be combined with --python2")


def require_no_report(writing: Mapping[str, bool], telling: Mapping[str, object]) -> None:
    """Raise :class:`UserError` where more than one of the options ``writing`` is given, or one beside what only a
    report has use for, one of ``telling``."""
    given = [option for option, is_given in writing.items() if is_given]
    if len(given) > 1:
        raise UserError(f"{given[0]} and {given[1]} exclude each other")
    for option in (option for option, value in telling.items() if given and value):
        raise UserError(f"{given[0]} writes no report; it cannot be combined with {option}")


def tell_ignored(job: Job, done: Ignored, noun: str = "finding", verb: str = "suppressed") -> int:
    """Say what became of comments; return the exit status."""
    for entry in done.unwritten:
        complain(f"{entry.place}: not saved: {entry.reason}")
    if job.detail is not Detail.QUIET:
        files = plain_count_text(len(done.paths), "file")
        print(f"{plain_count_text(done.number, noun)} {verb} in {files}", file=sys.stderr)
    return TROUBLE if done.unwritten else 0
