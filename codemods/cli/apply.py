"""``codemod apply``: rewrite in place, or print the diff."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from codemods.cli import _applying as ways
from codemods.cli import _help as h
from codemods.cli import _options as o
from codemods.cli import _runs as r
from codemods.cli import _scope as s
from codemods.cli._groups import expanded
from codemods.cli._ours import PATCH, PICTURE, REVIEW
from codemods.cli._places import require_place
from codemods.cli._terminal import FINE, FOUND, TROUBLE, emit, emit_diff, require_choice
from codemods.source.options import STYLES
from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from codemods.reports import Report
    from codemods.rewriting.changes import Evidence, Key
    from codemods.rewriting.result import ApplyResult


@expanded
def command(
    *,
    paths: o.Paths = None,
    dry_run: Annotated[
        bool, h.review("--dry-run", help="Print the diff and change no file; as check, keep .codemod_cache.")
    ] = False,
    interactive: Annotated[
        bool, h.review("--interactive", "-i", help="Show each change and ask whether to apply it.")
    ] = False,
    resume: Annotated[
        Path | None,
        h.review(
            "--resume", metavar="FILE", help="With -i: keep the answers in this file, and go on from those that it has."
        ),
    ] = None,
    patch: Annotated[
        Path | None,
        h.review(
            "--patch", metavar="FILE", help="Also write the changes to this file, for git apply and codemod patch."
        ),
    ] = None,
    verify: Annotated[
        list[str] | None,
        h.proof(
            "--verify",
            metavar="COMMAND",
            help="Run this command, such as 'train.py --epochs 1', and apply only what is kept; repeatable.",
        ),
    ] = None,
    runs: r.TrialOptions,
    quote_output: Annotated[
        bool,
        h.proof(
            "--quote-output", help="Quote what scripts raised and printed, in commits and texts too; needs --verify."
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        h.proof("--plot", metavar="FILE", help="With --verify: draw graph nodes, memory and loss: .png or .svg."),
    ] = None,
    at: Annotated[
        list[str] | None,
        h.what(
            "--at",
            metavar="PATH:LINE",
            help="Only fix the findings at this PATH:LINE, as check prints it; repeatable.",
        ),
    ] = None,
    max_hunks: Annotated[
        int | None,
        h.review(
            "--max-hunks", min=1, metavar="N", help="Change at most this many hunks; leave the rest for the next run."
        ),
    ] = None,
    commit: Annotated[
        str | None,
        h.review("--commit", metavar="|".join(STYLES), help="Make git commits that can each be reverted alone."),
    ] = None,
    allow_dirty: Annotated[
        bool, h.review("--allow-dirty", help="With --commit: allow uncommitted changes in other files.")
    ] = False,
    no_hooks: Annotated[
        bool, h.review("--no-hooks", help="With --commit: skip the hooks pre-commit and commit-msg.")
    ] = False,
    exit_code: Annotated[
        bool | None, h.report("--exit-code", help="With --dry-run: exit with 1 if there is a diff.")
    ] = None,
    rules: o.RuleOptions,
    format: o.Format = None,
    output: o.Output = None,
    also: o.Also = None,
    screen: o.ScreenOptions,
    since: s.Since = None,
    baseline: s.BaselineFile = None,
    add_ignores: s.AddIgnores = False,
    reason: s.Reason = None,
) -> int:
    """Rewrite files in place, or print the diff.

    With - as PATH, print the rewritten text.

    Exit status: 0, or 2 for bad usage, an internal error, or a file that could not be written. With --verify: 1 if a
    promise was broken (rewrites that kept theirs are written), 3 if nothing could be judged.
    """
    from codemods import reports
    from codemods.patches import bundle
    from codemods.rewriting.apply import write
    from codemods.rewriting.limited import apply_some
    from codemods.rewriting.saving import ignore_remaining

    paths = paths or ["."]
    s.require_no_place(paths)
    s.require_places(at or ())
    _require_ways_of_review(commit, allow_dirty, no_hooks, dry_run, interactive, patch, resume, stdin="-" in paths)
    limited = since is not None or bool(baseline) or bool(at)
    if add_ignores:
        ways.require_plain_apply(
            {
                "--dry-run": dry_run,
                "-i": interactive,
                "--patch": patch is not None,
                "--commit": commit is not None,
                "--since": since is not None,
                "--baseline": bool(baseline),
                "--at": bool(at),
                "--max-hunks": max_hunks is not None,
            }
        )
    if not verify and (runs != r.TrialOptions() or plot is not None):
        named = ", ".join(f"--{field.name.replace('_', '-')}" for field in fields(runs))
        raise UserError(f"{named} and --plot need --verify")

    require_place(plot, PICTURE)
    if quote_output and not verify:
        raise UserError("--quote-output needs --verify")
    terminal = ways.terminal_of_user() if interactive else None
    job = o.settle(
        paths,
        beside={"--patch": patch, "--resume": resume, "--plot": plot},
        diff=dry_run,
        also=also,
        **vars(rules),
        format=format,
        output=output,
        **vars(screen),
        exit_code=exit_code,
        max_hunks=max_hunks,
    )
    s.require_comments(job, add_ignores, reason)
    proven = FINE
    evidence: Evidence | None = None
    # What is reviewed, recorded or committed first is written afterwards.
    on_paper = dry_run or interactive or patch is not None or commit is not None
    if commit is not None:
        ways.require_committable_tree(job, allow_dirty=allow_dirty)
    if verify and job.stdin is not None:
        raise UserError("--verify runs a tree of files; it cannot be combined with -")
    wanted = s.wanted(job, since, baseline, at or ()) if limited else None
    if verify:
        result, evidence, proven = ways.verified(
            job, verify, runs, plot, wanted=wanted, dry_run=on_paper, everything=interactive, quoted=quote_output
        )
    else:
        with job.progress as progress:
            result = apply_some(
                job.targets.sources,
                max_hunks=job.max_hunks,
                options=job.options,
                dry_run=on_paper or job.stdin is not None,
                jobs=job.jobs,
                skipped=job.targets.skipped,
                progress=progress,
                wanted=wanted,
            )
    s.tell_missed(job, at or (), [*result.fixed, *result.postponed])
    said = tuple(r.masked_words(["codemod", *sys.argv[1:]], runs.env))
    proofs = evidence.proofs if evidence else {}
    own: frozenset[Key] = frozenset()
    if terminal is not None:
        result, own = ways.asked(terminal, job, result, proofs, resume)
    if patch is not None:
        bundle.save(result, patch, options=job.options, proofs=proofs, own=own)
    if commit is not None:
        result = ways.committed(job, result, commit, evidence, said, allow_dirty=allow_dirty, hooks=not no_hooks)
    elif on_paper and not dry_run:
        result = write(result)
    report = replace(reports.Report.of_apply(result, evidence), command=said)
    if not dry_run and job.stdin is None:
        emit(job.render(report, colour=job.colour()), job.output)
        job.also(report)
        if add_ignores:
            done = ignore_remaining(result, job.targets.sources, (reason or "").strip())
            proven = s.tell_ignored(job, done) or proven
        return TROUBLE if result.unwritten else proven
    _show_text(job, result, report, dry_run=dry_run)
    job.also(report)
    return FOUND if job.exit_code and dry_run and result.rewrites else proven


def _require_ways_of_review(
    commit: str | None,
    allow_dirty: bool,
    no_hooks: bool,
    dry_run: bool,
    interactive: bool,
    patch: Path | None,
    resume: Path | None,
    *,
    stdin: bool,
) -> None:
    """Raise UserError where what is asked for before changes are written does not go together."""
    if commit is not None:
        require_choice("--commit", commit, STYLES)
    if commit is None and (allow_dirty or no_hooks):
        raise UserError("--allow-dirty and --no-hooks need --commit")
    if commit is not None and (dry_run or stdin):
        raise UserError(f"--commit writes files; it cannot be combined with {'--dry-run' if dry_run else '-'}")
    if commit is not None and (interactive or patch is not None):
        raise UserError(f"--commit and {'-i' if interactive else '--patch'} are two ways to review; choose one")
    if resume is not None and not interactive:
        raise UserError("--resume needs -i")
    require_place(patch, PATCH)
    require_place(resume, REVIEW)
    if stdin and (interactive or patch is not None):
        raise UserError(f"{'-i' if interactive else '--patch'} works on files; it cannot be combined with -")


def _show_text(job: o.Job, result: ApplyResult, report: Report, *, dry_run: bool) -> None:
    """Show what was not written to files: the diff, or the text that came in; the report goes beside it."""
    if dry_run and job.format != "text":
        # Other forms have the diff inside.
        emit(job.render(report, colour=job.colour()), job.output)
        return
    if dry_run:
        emit_diff(result, job.output, colour=job.colour())
    else:
        # Text that we could not read goes through as it came: an editor would put nothing in its place.
        assert job.stdin is not None
        emit(result.rewrites[0].encoded if result.rewrites else job.stdin, job.output)
    emit(job.render(report, colour=job.colour(to_stderr=True)), None, stream=sys.stderr)
