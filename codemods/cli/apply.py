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
    from codemods.interactive.terminal import Terminal
    from codemods.review import Key, Proof


def command(
    paths: o.Paths,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the diff and write nothing.")] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Show each change and ask whether to make it.")
    ] = False,
    patch: Annotated[
        Path | None,
        typer.Option(
            "--patch", metavar="FILE", help="Also write what is changed there, for git apply and codemod patch."
        ),
    ] = None,
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
) -> int:
    """Rewrite files in place, or print the diff.

    With - the rewritten text goes to standard output. Exit status: 0, or 2 for bad usage, an error of ours, or a file
    that could not be written. With --verify it is that of codemod verify: 1 where a promise was broken (what was kept
    is written), 3 where nothing could be judged.
    """
    from codemods.apply import apply, write
    from codemods.reports import Report

    runs: dict[str, Any] = {"steps": steps, "batches": batches, "timeout": timeout, "device": device}
    runs |= {"python": python, "stand_in": stand_in or None}
    if not verify and any(value is not None for value in runs.values()):
        raise UserError("--steps, --batches, --timeout, --device, --python and --stand-in need --verify")
    if "-" in paths and (interactive or patch is not None):
        raise UserError(f"{'-i' if interactive else '--patch'} works on files; it cannot be combined with -")
    terminal = _terminal() if interactive else None

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
    proven = FINE
    proofs: dict[Key, Proof] = {}
    # What is reviewed or recorded first is written afterwards.
    on_paper = dry_run or interactive or patch is not None
    if verify and job.stdin is not None:
        raise UserError("--verify runs a tree of files; it cannot be combined with -")
    if verify:
        result, proven, proofs = _verified(job, verify, runs, dry_run=on_paper, everything=interactive)
    else:
        with job.progress as progress:
            result = apply(
                job.targets.sources,
                options=job.options,
                dry_run=on_paper or job.stdin is not None,
                jobs=job.jobs,
                skipped=job.targets.skipped,
                progress=progress,
            )
    own: frozenset[Key] = frozenset()
    if terminal is not None:
        result, own = _asked(terminal, job, result, proofs)
    if patch is not None:
        _record(result, patch, job, proofs, own)
    if on_paper and not dry_run:
        result = write(result)
    report = Report.of_apply(result)
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


def _terminal() -> Terminal:
    from codemods.interactive.terminal import NoTerminal, Terminal

    try:
        return Terminal()
    except NoTerminal:
        raise UserError("-i asks questions: standard input and standard error must be a terminal") from None


def _asked(
    terminal: Terminal, job: o.Job, before: ApplyResult, proofs: dict[Key, Proof]
) -> tuple[ApplyResult, frozenset[Key]]:
    from codemods.interactive.items import Texts
    from codemods.interactive.session import ask

    sources = job.targets.sources
    texts = Texts(before, sources)
    try:
        screen = terminal.opened(texts, colour=job.colour(to_stderr=True))
        outcome = ask(before, sources, screen, texts, options=job.options, jobs=job.jobs, proofs=proofs)
    except KeyboardInterrupt:
        complain("interrupted, nothing was written")
        raise
    return outcome.result, outcome.own


def _record(result: ApplyResult, file: Path, job: o.Job, proofs: dict[Key, Proof], own: frozenset[Key]) -> None:
    from codemods.patches.bundle import BundleError, save

    try:
        save(result, file, options=job.options, proofs=proofs, own=own)
    except BundleError as error:
        raise UserError(str(error)) from None


def _verified(
    job: o.Job, texts: Sequence[str], runs: dict[str, Any], *, dry_run: bool, everything: bool
) -> tuple[ApplyResult, int, dict[Key, Proof]]:
    """Make the rewrites that were kept; with ``everything`` all of them, for whoever decides by the verdicts."""
    from codemods.apply import apply
    from codemods.reports import Detail
    from codemods.review import Proof
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
    if everything:
        result = apply(job.targets.sources, options=job.options, dry_run=True, jobs=job.jobs)
    proofs = {
        frozenset(finding.key for finding in rewrite.findings): Proof(rewrite.verdict.value, rewrite.why)
        for rewrite in verification.rewrites
    }
    return replace(result, skipped=(*job.targets.skipped, *result.skipped)), verification.status, proofs
