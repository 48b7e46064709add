"""``apply --verify``: write only what was run and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codemods.checking.reported import Reported
from codemods.rewriting.apply import Wanted
from codemods.rewriting.limited import apply_some
from codemods.rewriting.result import ApplyResult, Dropped
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.terms.findings import Finding, Promise
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
    all rewrites are made, for whoever decides by the verdicts. What is only likely is run, too, and made where a run
    of the commands came to it and it was kept. Raises :class:`verify.errors.VerifyError` for what the
    user has to put right.
    """
    options = replace(options, likely=True)
    verification = verify(
        commands,
        options=options,
        settings=settings,
        tree=tree,
        targets=targets,
        wanted=wanted,
        jobs=jobs,
        tell=tell,
    )
    proved = [one for one in verification.rewrites if one.verdict is Verdict.KEPT]
    kept = {key for one in proved for key in one.key}
    held = {key for one in proved if not one.alone and not one.made for key in one.key}

    def chosen(findings: tuple[Finding, ...]) -> bool:
        likely = any(finding.likely is not None for finding in findings)
        if everything and not likely:
            return wanted is None or wanted(findings)
        return all(finding.key in (held if likely else kept) for finding in findings)

    result = apply_some(targets, max_hunks=max_hunks, options=options, dry_run=dry_run, jobs=jobs, wanted=chosen)
    result = replace(result, remaining=tuple(map(_advice_again, result.remaining)))
    if everything:
        return result, verification
    return replace(result, dropped=dropped_of(verification)), verification


def dropped_of(verification: Verification) -> tuple[Dropped, ...]:
    """Return what is not made of a result because no run kept it, with the verdict on each."""
    return tuple(
        Dropped(finding.rule, finding.path, finding.span.line, rewrite.verdict.value, rewrite.why)
        for rewrite in verification.rewrites
        if rewrite.verdict is not Verdict.KEPT
        for finding in rewrite.findings
    )


def _advice_again(left: Reported) -> Reported:
    """What is likely and was not made is the advice that it was."""
    if left.finding.likely is None:
        return left
    return left._replace(
        finding=replace(left.finding, promise=Promise.ADVICE), obstacle="no run has shown that it holds"
    )
