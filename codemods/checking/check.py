"""From paths to findings that a report can show: discovery, reading, analysis, selection, suppression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from codemods.analysis.analyse import Analysis, analyse
from codemods.checking.groups import judge
from codemods.checking.reported import Found, Reported
from codemods.checking.selecting import asked_for, broken_cells, counted, translations, visible, without_ignored
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.terms.findings import Skipped, in_order

if TYPE_CHECKING:
    from codemods.checking.ignores import UnusedIgnore

Progress = Callable[[int, int], None]


class Analyser(Protocol):
    """The call of :func:`codemods.analysis.analyse.analyse`, for which tests put a fake."""

    def __call__(
        self,
        targets: Sequence[SourceFile],
        *,
        options: Options,
        jobs: int | None = None,
        overlay: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Analysis: ...


@dataclass(frozen=True)
class CheckResult(Found):
    """What ``check`` found, and in which files, as they were read."""

    sources: tuple[SourceFile, ...] = ()


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
        from codemods.checking.ignores import unused_ignores

        readable = {path: texts[path] for path in texts.keys() - {entry.path for entry in analysis.skipped}}
        unused = unused_ignores(asked_for(analysis.findings, texts, options), readable, options)
    sources = {source.path: source for source in targets}
    judged = judge(findings, options, sources)
    reported = [*(Reported(one.finding, None) for one in made), *(one.placed(sources) for one in judged)]
    return CheckResult(
        files=counted(targets, skipped),
        findings=tuple(sorted(reported, key=lambda one: in_order(one.finding))),
        skipped=(*skipped, *without_ignored([*broken_cells(targets), *analysis.skipped], texts)),
        notes=tuple(dict.fromkeys(analysis.notes)),
        sources=tuple(targets),
        unused=tuple(unused),
    )
