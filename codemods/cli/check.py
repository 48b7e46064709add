"""``codemod check``: report findings, change nothing."""

from __future__ import annotations

from codemods.cli import _options as o
from codemods.cli._terminal import FINE, FOUND, emit


def command(
    paths: o.Paths,
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
    """Report findings and change nothing.

    Exit status: 0 without findings, 1 with findings, 2 for bad usage or an error of ours.
    """
    from codemods.check import check
    from codemods.reports import Report, holds_diff

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
    )
    with job.progress as progress:
        result = check(
            job.targets.sources,
            options=job.options,
            jobs=job.jobs,
            skipped=job.targets.skipped,
            progress=progress,
        )
    fixes = None
    if holds_diff(job.format):
        from codemods.apply import apply

        fixes = apply(job.targets.sources, options=job.options, dry_run=True, jobs=job.jobs)
    emit(job.render(Report.of_check(result, fixes), colour=job.colour()), job.output)
    return FOUND if result.findings else FINE
