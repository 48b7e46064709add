"""The ways to have rewrites made: proven first, asked about, recorded, committed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.cli import _options as o
from codemods.cli._runs import RunOptions, TrialOptions, draw, require_plottable, settings_of, teller
from codemods.cli._terminal import complain, emit
from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from codemods.interactive.terminal import Terminal
    from codemods.rewriting.apply import Wanted
    from codemods.rewriting.changes import Evidence, Key, Proof
    from codemods.rewriting.result import ApplyResult


def require_plain_apply(given: Mapping[str, bool]) -> None:
    """Raise :class:`UserError` for an option, one of those ``given``, that --add-ignores makes no sense with."""
    why = {
        "--dry-run": "writes files",
        "-i": "comments on all that is left, and i of -i on what you choose",
        "--patch": "writes comments that no patch would hold",
        "--commit": "writes comments that no commit would hold",
        "--max-hunks": "would suppress what is left for the next run",
    }
    for option in (option for option, is_given in given.items() if is_given):
        reason = why.get(option, "would suppress what was not asked about; check --add-ignores does not")
        raise UserError(f"apply --add-ignores {reason}; it cannot be combined with {option}")


def require_committable_tree(job: o.Job, *, allow_dirty: bool) -> None:
    """Raise :class:`UserError` where no commits could be made, before any work is done."""
    from codemods.commits.making import common_folder, require_committable

    if not job.targets.sources:
        return
    folder = common_folder(source.absolute for source in job.targets.sources)
    require_committable(folder, allow_dirty=allow_dirty)


def committed(
    job: o.Job,
    result: ApplyResult,
    style: str,
    evidence: Evidence | None,
    said: tuple[str, ...],
    *,
    allow_dirty: bool,
    hooks: bool,
) -> ApplyResult:
    """Write what ``result`` would change, as commits."""
    from codemods.commits.making import Wording, commit_result
    from codemods.reports import Detail
    from codemods.rewriting.apply import written

    commits = commit_result(
        result,
        style=style,
        options=job.options,
        jobs=job.jobs,
        proofs=evidence.proofs if evidence else None,
        wording=Wording(command=said),
        hooks=hooks,
        allow_dirty=allow_dirty,
    )
    if job.detail is not Detail.QUIET:
        for commit in commits:
            complain(f"committed {commit.hash[:10]} {commit.subject}")
    return written(result)


def terminal_of_user() -> Terminal:
    """Return the terminal to ask on; raises :class:`UserError` where there is none."""
    from codemods.interactive.terminal import NoTerminal, Terminal

    try:
        return Terminal()
    except NoTerminal:
        raise UserError("-i asks questions: standard input and standard error must be a terminal") from None


def asked(
    terminal: Terminal, job: o.Job, before: ApplyResult, proofs: Mapping[Key, Proof], resume: Path | None
) -> tuple[ApplyResult, frozenset[Key]]:
    """Ask about each change; return what was accepted, and which of it has text of the user's own."""
    from codemods.interactive.items import Texts
    from codemods.interactive.session import ask

    sources = job.targets.sources
    texts = Texts(before, sources)
    try:
        screen = terminal.opened(texts, colour=job.colour(to_stderr=True))
        outcome = ask(before, sources, screen, texts, options=job.options, jobs=job.jobs, proofs=proofs, resume=resume)
    except KeyboardInterrupt:
        complain("interrupted, nothing was written")
        raise
    return outcome.result, outcome.own


def verified(
    job: o.Job,
    texts: Sequence[str],
    runs: TrialOptions,
    plot: Path | None,
    *,
    wanted: Wanted | None,
    dry_run: bool,
    everything: bool,
    quoted: bool = False,
) -> tuple[ApplyResult, Evidence, int]:
    """Make the rewrites that were kept; with ``everything`` all of them, for whoever decides by the verdicts.

    What the programs said is told on the terminal; in commits and texts only if it is to be ``quoted``.
    """
    from codemods.reports import Detail
    from verify.applying import apply_verified, dropped_of
    from verify.reports import render
    from verify.reports.discreet import discreet
    from verify.reports.evidence import evidence_of
    from verify.running.settings import entry_command

    quiet = job.detail is Detail.QUIET
    settings = settings_of(RunOptions(**vars(runs)))
    require_plottable(plot)
    result, verification = apply_verified(
        job.targets.sources,
        [entry_command(text, settings.python, Path.cwd(), option="--verify") for text in texts],
        options=job.options,
        settings=settings,
        dry_run=dry_run,
        max_hunks=job.max_hunks,
        wanted=wanted,
        everything=everything,
        jobs=job.jobs,
        tell=teller(quiet),
    )
    drawn = draw(verification, plot)
    if not quiet:
        colour = job.colour(to_stderr=True)
        emit(render(verification, "text", colour=colour), None, stream=sys.stderr)
    evidence = evidence_of(verification, plot=str(plot) if drawn else "", quoted=quoted)
    if result.dropped and not quoted:
        result = replace(result, dropped=dropped_of(discreet(verification)))
    return replace(result, skipped=(*job.targets.skipped, *result.skipped)), evidence, verification.status
