"""``codemod check``: report findings, change nothing."""

from __future__ import annotations

import sys
from dataclasses import replace

from codemods.cli import _options as o
from codemods.cli import _scope as s
from codemods.cli._groups import expanded
from codemods.cli._terminal import FINE, FOUND, emit, is_watched
from codemods.terms.errors import UserError


@expanded
def command(
    *,
    paths: o.Paths = None,
    rules: o.RuleOptions,
    format: o.Format = None,
    output: o.Output = None,
    also: o.Also = None,
    screen: o.ScreenOptions,
    exit_zero: o.ExitZero = None,
    since: s.Since = None,
    baseline: s.BaselineFile = None,
    update_baseline: s.UpdateBaseline = False,
    report_unused_ignores: s.ReportUnusedIgnores = None,
    add_ignores: s.AddIgnores = False,
    reason: s.Reason = None,
    remove_unused_ignores: s.RemoveUnusedIgnores = False,
) -> int:
    """Report findings and change nothing.

    Writes suppression comments and the baseline only on request.

    Exit status: 0 without findings, 1 with findings or with files that could not be checked, 2 for bad usage or an
    internal error.
    """
    if update_baseline and since is not None:
        raise UserError("--update-baseline writes all that is found; it cannot be combined with --since")
    s.require_no_report(
        {
            "--update-baseline": update_baseline,
            "--add-ignores": add_ignores,
            "--remove-unused-ignores": remove_unused_ignores,
        },
        {"--format": format, "--output": output, "--also": also},
    )
    s.require_no_place(paths or ())
    from codemods.checking import ignores
    from codemods.checking.check import check
    from codemods.reports import Report, shows_edits
    from codemods.rewriting.apply import apply

    job = o.settle(
        paths or ["."],
        also=also,
        **vars(rules),
        format=format,
        output=output,
        **vars(screen),
        baseline=baseline,
        report_unused_ignores=report_unused_ignores,
        exit_zero=exit_zero,
    )
    s.require_comments(job, add_ignores, reason, remove_unused_ignores)
    file = job.settled["baseline"]
    scope = s.scope(job, since, None if update_baseline else file)
    with job.progress as progress:
        result = check(
            job.targets.sources,
            options=job.options,
            jobs=job.jobs,
            skipped=job.targets.skipped,
            progress=progress,
            report_unused_ignores=remove_unused_ignores or bool(job.settled["report_unused_ignores"]),
        )
    if update_baseline:
        return s.update(job, result, file)
    result = scope.of_check(result, job.targets.sources, job.options)
    if add_ignores:
        found = [one.finding for one in result.findings]
        return s.tell_ignored(job, ignores.add_ignores(found, job.targets.sources, (reason or "").strip()))
    if remove_unused_ignores:
        done = ignores.remove_unused_ignores(result.unused, job.targets.sources)
        return s.tell_ignored(job, done, "comment", "taken out or cut")
    fixes = None
    shown = (job.format, *(name for name, _ in job.further))
    if any(map(shows_edits, shown)) and any(reported.fixable for reported in result.findings):
        keys = {reported.finding.key for reported in result.findings}
        fixes = apply(
            job.targets.sources,
            options=job.options,
            dry_run=True,
            jobs=job.jobs,
            wanted=lambda findings: all(finding.key in keys for finding in findings),
        )
    report = replace(Report.of_check(result, fixes), command=("codemod", *sys.argv[1:]))
    watched = job.output is None and is_watched(sys.stdout)
    emit(job.render(report, colour=job.colour(), watched=watched), job.output)
    job.also(report)
    failed = result.findings or result.unused or result.skipped
    return FOUND if failed and not job.settled["exit_zero"] else FINE
