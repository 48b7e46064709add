"""``codemod apply``: rewrite in place, or print the diff."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codemods.cli import _options as o
from codemods.cli import _scope as s
from codemods.cli._runs import RunOptions, settings_of, teller
from codemods.cli._terminal import FINE, FOUND, TROUBLE, UserError, emit

if TYPE_CHECKING:
    from codemods.apply import ApplyResult


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
    since: s.Since = None,
    baseline: s.BaselineFile = None,
    add_ignores: s.AddIgnores = False,
    reason: s.Reason = None,
) -> int:
    """Rewrite files in place, or print the diff.

    With - the rewritten text goes to standard output. Exit status: 0, or 2 for bad usage, an error of ours, or a file
    that could not be written. With --verify it is that of codemod verify: 1 where a promise was broken (what was kept
    is written), 3 where nothing could be judged.
    """
    from codemods.apply import apply
    from codemods.reports import Report

    runs: dict[str, Any] = {"steps": steps, "batches": batches, "timeout": timeout, "device": device}
    runs |= {"python": python, "stand_in": stand_in or None}
    if not verify and any(value is not None for value in runs.values()):
        raise UserError("--steps, --batches, --timeout, --device, --python and --stand-in need --verify")

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
    )
    s.require_comments(job, add_ignores, reason)
    if add_ignores and dry_run:
        raise UserError("--add-ignores writes files; it cannot be combined with --dry-run")
    limited = since is not None or bool(baseline)
    if verify and limited:
        raise UserError("--since and --baseline cannot be combined with --verify")
    proven = FINE
    if verify:
        if job.stdin is not None:
            raise UserError("--verify runs a tree of files; it cannot be combined with -")
        result, proven = _verified(job, verify, runs, dry_run=dry_run)
    else:
        wanted = s.wanted(job, since, baseline) if limited else None
        with job.progress as progress:
            result = apply(
                job.targets.sources,
                options=job.options,
                dry_run=dry_run or job.stdin is not None,
                jobs=job.jobs,
                skipped=job.targets.skipped,
                progress=progress,
                wanted=wanted,
            )
    report = Report.of_apply(result)
    if dry_run:
        colour = job.colour()
        emit(result.coloured_diff() if colour else result.diff(), job.output)
    elif job.stdin is not None:
        # Text that we could not read goes through as it came: an editor would put nothing in its place.
        emit(result.rewrites[0].encoded if result.rewrites else job.stdin, job.output)
    else:
        emit(job.render(report, colour=job.colour()), job.output)
        if add_ignores:
            proven = s.ignore_remaining(job, result, reason) or proven
        return TROUBLE if result.unwritten else proven
    emit(job.render(report, colour=job.colour(to_stderr=True)), None, stream=sys.stderr)
    return FOUND if job.exit_code and dry_run and result.rewrites else proven


def _verified(job: o.Job, texts: Sequence[str], runs: dict[str, Any], *, dry_run: bool) -> tuple[ApplyResult, int]:
    from codemods.reports import Detail
    from verify.applying import apply_verified
    from verify.errors import VerifyError
    from verify.reports import render
    from verify.settings import entry_command

    quiet = job.detail is Detail.QUIET
    settings = settings_of(**runs)
    try:
        result, verification = apply_verified(
            job.targets.sources,
            [entry_command(text, settings.python, Path.cwd()) for text in texts],
            options=job.options,
            settings=settings,
            dry_run=dry_run,
            jobs=job.jobs,
            tell=teller(quiet),
        )
    except VerifyError as error:
        raise UserError(str(error)) from None
    if not quiet:
        colour = job.colour(to_stderr=True)
        emit(render(verification, "text", colour=colour), None, stream=sys.stderr)
    return replace(result, skipped=(*job.targets.skipped, *result.skipped)), verification.status
