"""``apply --verify``: write only what was run and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codemods.rewriting.apply import Wanted
from codemods.rewriting.limited import apply_some
from codemods.rewriting.result import ApplyResult, Dropped
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.terms.findings import Finding
from verify.judging.bench import Telling
from verify.measured.results import Verdict, Verification
from verify.running.settings import Command, Settings
from verify.verification import verify


def apply_verified(
    targets: Sequence[SourceFile],
    commands: Sequence[Command],
    *,
    options: Options,
    settings: Settings,
    tree: Path | None = None,
    dry_run: bool = False,
    max_hunks: int | None = None,
    wanted: Wanted | None = None,
    everything: bool = False,
    jobs: int | None = None,
    tell: Telling = lambda _: None,
) -> tuple[ApplyResult, Verification]:
    """Verify the rewrites of ``targets`` by ``commands`` and make those that were kept, unless ``dry_run``.

    ``wanted`` limits them, as for :func:`codemods.rewriting.apply.apply`: what it leaves is neither run nor made.
    The result names the others as ``dropped``, each with its verdict. Where nothing could be judged, nothing is
    written. Of what was kept no more than ``max_hunks`` hunks are made, the rest is ``postponed``. With ``everything``
    all rewrites are made, for whoever decides by the verdicts. Raises :class:`verify.errors.VerifyError` for what the
    user has to put right.
    """
    verified = verify(
        commands,
        options=options,
        settings=settings,
        tree=tree,
        targets=targets,
        wanted=wanted,
        jobs=jobs,
        tell=tell,
    )
    kept = frozenset(key for group in verified.kept() for key in group)

    def was_kept(findings: tuple[Finding, ...]) -> bool:
        return all(finding.key in kept for finding in findings)

    choice = wanted if everything else was_kept
    result = apply_some(targets, max_hunks=max_hunks, options=options, dry_run=dry_run, jobs=jobs, wanted=choice)
    if everything:
        return result, verified.verification
    dropped = tuple(
        Dropped(finding.rule, finding.path, finding.span.line, rewrite.verdict.value, rewrite.why)
        for rewrite in verified.verification.rewrites
        if rewrite.verdict is not Verdict.KEPT
        for finding in rewrite.findings
    )
    return replace(result, dropped=dropped), verified.verification
