"""``codemod apply``: rewrite in place, or print the diff."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codemods.cli import _options as o
from codemods.cli._runs import RunOptions, settings_of, teller
from codemods.cli._terminal import FINE, FOUND, TROUBLE, UserError, complain, emit

if TYPE_CHECKING:
    from codemods.apply import ApplyResult
    from codemods.review import Evidence
    from verify.results import Verification

# As codemods.partition has them, which takes a moment to load.
STYLES = ("per-rule", "per-file", "one")


def command(
    paths: o.Paths,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the diff and write nothing.")] = False,
    verify: Annotated[
        list[str] | None,
        typer.Option(
            "--verify",
            metavar="COMMAND",
            help="Run this, such as 'train.py --epochs 1', and make only the rewrites that are kept; repeatable.",
        ),
    ] = None,
    steps: RunOptions.steps = None,
    batches: RunOptions.batches = None,
    timeout: RunOptions.timeout = None,
    device: RunOptions.device = None,
    python: RunOptions.python = None,
    stand_in: RunOptions.stand_in = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="With --verify: draw graph nodes, memory and loss: .png or .svg."),
    ] = None,
    max_hunks: Annotated[
        int | None,
        typer.Option("--max-hunks", min=1, metavar="N", help="Change no more than this; the rest is for the next run."),
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option("--commit", metavar="|".join(STYLES), help="Make git commits, each revertible alone."),
    ] = None,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="With --commit: in spite of uncommitted changes in other files.")
    ] = False,
    no_hooks: Annotated[
        bool, typer.Option("--no-hooks", help="With --commit: skip the hooks pre-commit and commit-msg.")
    ] = False,
    exit_code: Annotated[
        bool | None, typer.Option("--exit-code", help="With --dry-run: status 1 if there is a diff.")
    ] = None,
    select: o.Select = None,
    ignore: o.Ignore = None,
    unsafe: o.Unsafe = None,
    hidden_state: o.HiddenState = None,
    total_style: o.TotalStyle = None,
    no_grad_style: o.NoGradStyle = None,
    target_torch: o.TargetTorch = None,
    python2: o.Python2 = None,
    exclude: o.Exclude = None,
    config: o.Config = None,
    jobs: o.Jobs = None,
    format: o.Format = None,
    output: o.Output = None,
    color: o.Color = None,
    quiet: o.Quiet = None,
    verbose: o.Verbose = None,
    no_cache: o.NoCache = None,
    stdin_filename: o.StdinFilename = "<stdin>",
) -> int:
    """Rewrite files in place, or print the diff.

    With - the rewritten text goes to standard output. Exit status: 0, or 2 for bad usage, an error of ours, or a file
    that could not be written. With --verify it is that of codemod verify: 1 where a promise was broken (what was kept
    is written), 3 where nothing could be judged.
    """
    from codemods.portions import apply_some
    from codemods.reports import Report

    if commit is not None and commit not in STYLES:
        raise UserError(f"--commit {commit}: must be one of {', '.join(STYLES)}")
    if commit is None and (allow_dirty or no_hooks):
        raise UserError("--allow-dirty and --no-hooks need --commit")
    if commit is not None and (dry_run or "-" in paths):
        raise UserError(f"--commit writes files; it cannot be combined with {'--dry-run' if dry_run else '-'}")
    runs: dict[str, Any] = {"steps": steps, "batches": batches, "timeout": timeout, "device": device}
    runs |= {"python": python, "stand_in": stand_in or None}
    if not verify and any(value is not None for value in (*runs.values(), plot)):
        raise UserError("--steps, --batches, --timeout, --device, --python, --stand-in and --plot need --verify")

    job = o.settle(
        paths,
        select=select,
        ignore=ignore,
        unsafe=unsafe,
        hidden_state=hidden_state,
        total_style=total_style,
        no_grad_style=no_grad_style,
        target_torch=target_torch,
        python2=python2,
        exclude=exclude,
        config=config,
        jobs=jobs,
        format=format,
        output=output,
        color=color,
        quiet=quiet,
        verbose=verbose,
        no_cache=no_cache,
        stdin_filename=stdin_filename,
        exit_code=exit_code,
        max_hunks=max_hunks,
    )
    proven = FINE
    evidence = None
    if commit is not None:
        _require_committable(job, allow_dirty=allow_dirty)
    if verify:
        if job.stdin is not None:
            raise UserError("--verify runs a tree of files; it cannot be combined with -")
        result, evidence, proven = _verified(job, verify, runs, plot, dry_run=dry_run or commit is not None)
    else:
        with job.progress as progress:
            result = apply_some(
                job.targets.sources,
                max_hunks=job.max_hunks,
                options=job.options,
                dry_run=dry_run or job.stdin is not None or commit is not None,
                jobs=job.jobs,
                skipped=job.targets.skipped,
                progress=progress,
            )
    said = ("codemod", *sys.argv[1:])
    if commit is not None:
        result = _committed(job, result, commit, evidence, said, allow_dirty=allow_dirty, hooks=not no_hooks)
    report = replace(Report.of_apply(result, evidence), command=said)
    if dry_run and job.format != "text":
        # Other forms have the diff inside.
        emit(job.render(report, colour=job.colour()), job.output)
        return FOUND if job.exit_code and result.rewrites else proven
    if dry_run:
        colour = job.colour()
        emit(result.coloured_diff() if colour else result.diff(), job.output)
    elif job.stdin is not None:
        # Text that we could not read goes through as it came: an editor would put nothing in its place.
        emit(result.rewrites[0].encoded if result.rewrites else job.stdin, job.output)
    else:
        emit(job.render(report, colour=job.colour()), job.output)
        return TROUBLE if result.unwritten else proven
    emit(job.render(report, colour=job.colour(to_stderr=True)), None, stream=sys.stderr)
    return FOUND if job.exit_code and dry_run and result.rewrites else proven


def _require_committable(job: o.Job, *, allow_dirty: bool) -> None:
    from codemods.commits import CommitError, common_folder, require_committable

    if not job.targets.sources:
        return
    try:
        folder = common_folder(source.absolute for source in job.targets.sources)
        require_committable(folder, allow_dirty=allow_dirty)
    except CommitError as error:
        raise UserError(str(error)) from None


def _committed(
    job: o.Job,
    result: ApplyResult,
    style: str,
    evidence: Evidence | None,
    said: tuple[str, ...],
    *,
    allow_dirty: bool,
    hooks: bool,
) -> ApplyResult:
    from codemods.commits import CommitError, Wording, commit_result, written
    from codemods.reports import Detail

    try:
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
    except CommitError as error:
        raise UserError(str(error)) from None
    if job.detail is not Detail.QUIET:
        for commit in commits:
            complain(f"committed {commit.hash[:10]} {commit.subject}")
    return written(result)


def _verified(
    job: o.Job, texts: Sequence[str], runs: dict[str, Any], plot: Path | None, *, dry_run: bool
) -> tuple[ApplyResult, Evidence, int]:
    from codemods.reports import Detail
    from verify.applying import apply_verified
    from verify.errors import VerifyError
    from verify.reports import plots, render
    from verify.reports.evidence import evidence_of
    from verify.settings import entry_command

    quiet = job.detail is Detail.QUIET
    settings = settings_of(**runs)
    try:
        if plot is not None:
            plots.check(plot)
        result, verification = apply_verified(
            job.targets.sources,
            [entry_command(text, settings.python, Path.cwd()) for text in texts],
            options=job.options,
            settings=settings,
            dry_run=dry_run,
            max_hunks=job.max_hunks,
            jobs=job.jobs,
            tell=teller(quiet),
        )
        drawn = _drawn(verification, plot)
    except VerifyError as error:
        raise UserError(str(error)) from None
    if not quiet:
        colour = job.colour(to_stderr=True)
        emit(render(verification, "text", colour=colour), None, stream=sys.stderr)
    evidence = evidence_of(verification, plot=str(plot) if drawn else "")
    return replace(result, skipped=(*job.targets.skipped, *result.skipped)), evidence, verification.status


def _drawn(verification: Verification, plot: Path | None) -> bool:
    """Draw to ``plot``, if it is given; return whether there is something to see."""
    from verify.reports import plots

    try:
        if plot is not None:
            plots.save(verification, plot)
    except plots.NothingToDraw as error:
        complain(f"{plot}: {error}")
        return False
    return plot is not None
