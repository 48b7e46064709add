"""``codemod apply``: rewrite in place, or print the diff."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from codemods.cli import _options as o
from codemods.cli._terminal import FINE, FOUND, TROUBLE, emit


def command(
    paths: o.Paths,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the diff and write nothing.")] = False,
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
    that could not be written.
    """
    from codemods.apply import apply
    from codemods.reports import Report

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
    with job.progress as progress:
        result = apply(
            job.targets.sources,
            options=job.options,
            dry_run=dry_run or job.stdin is not None,
            jobs=job.jobs,
            skipped=job.targets.skipped,
            progress=progress,
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
        return TROUBLE if result.unwritten else FINE
    emit(job.render(report, colour=job.colour(to_stderr=True)), None, stream=sys.stderr)
    return FOUND if job.exit_code and dry_run and result.rewrites else FINE
