"""``codemod verify``: run original and rewritten briefly, and hold every rewrite to its promise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codemods.cli import _options as o
from codemods.cli._runs import RunOptions, masked_words, settings_of, teller
from codemods.cli._terminal import UserError, complain, emit, require_place, wants_colour
from codemods.reports import Detail

if TYPE_CHECKING:
    from verify.measured.results import Verification
    from verify.running.against import HandRewriter
    from verify.running.settings import Command


def command(
    script: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCRIPT [-- ARGS]", help="The script to run, and its arguments.", show_default=False),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module instead of a script.")
    ] = None,
    entry: Annotated[
        list[str] | None,
        typer.Option(
            "--entry", metavar="COMMAND", help="Run this whole command, such as 'train.py --epochs 1'; repeatable."
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option("--tree", metavar="FOLDER", help="The root of the tree; by default the project of the script."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="PATH", help="Judge the changes in this file or folder instead of ours."),
    ] = None,
    promise: Annotated[
        str | None,
        typer.Option("--promise", metavar="exact|equivalent|repair|behaviour", help="Hold --against to this promise."),
    ] = None,
    steps: RunOptions.steps = None,
    batches: RunOptions.batches = None,
    timeout: RunOptions.timeout = None,
    device: RunOptions.device = None,
    python: RunOptions.python = None,
    stand_in: RunOptions.stand_in = None,
    no_data: RunOptions.no_data = False,
    memory: RunOptions.memory = None,
    memory_limit: RunOptions.memory_limit = None,
    disk: RunOptions.disk = None,
    network: RunOptions.network = False,
    seed: RunOptions.seed = 0,
    tolerance: RunOptions.tolerance = None,
    reach: RunOptions.reach = None,
    shapes_only: RunOptions.shapes_only = False,
    isolation: RunOptions.isolation = None,
    env: RunOptions.env = None,
    expose: RunOptions.expose = None,
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
    format: Annotated[
        str | None, typer.Option("--format", metavar="text|json|html|markdown", help="Report in this format.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the report to this file: .html, .json, .md or text."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw graph nodes, memory and loss: .png or .svg.")
    ] = None,
    color: o.Color = None,
    quiet: o.Quiet = None,
    verbose: o.Verbose = None,
) -> int:
    """Run original and rewritten briefly, and hold every rewrite to its promise.

    Nothing in the tree is changed. Exit status: 0 every promise held, 1 one was broken, 3 could not be judged, 2 for
    bad usage or an error of ours.
    """
    from verify.errors import VerifyError
    from verify.reports import render
    from verify.running.settings import entry_command, script_command
    from verify.verification import verify

    words = list(script or ())
    form = _form(format, output)
    require_place(output)
    if plot is not None:
        _plottable(plot)
    settings = settings_of(
        steps=steps,
        batches=batches,
        timeout=timeout,
        device=device,
        python=python,
        stand_in=stand_in,
        no_data=no_data,
        memory=memory,
        memory_limit=memory_limit,
        disk=disk,
        network=network,
        seed=seed,
        tolerance=tolerance,
        reach=reach,
        isolation=isolation,
        env=env,
        expose=expose,
        shapes=shapes_only,
    )
    try:
        commands = [entry_command(text, settings.python, Path.cwd()) for text in entry or ()]
        if module is not None:
            commands.insert(0, script_command(module, words, settings.python, module=True))
        elif words:
            commands.insert(0, script_command(words[0], words[1:], settings.python))
        if not commands:
            raise UserError("name a script to run, or give --entry")
        choices = o.settle_choices(
            str(tree or commands[0].script or commands[0].cwd),
            config=config,
            select=select,
            ignore=ignore,
            exclude=exclude,
            unsafe=unsafe,
            hidden_state=hidden_state,
            total_style=total_style,
            no_grad_style=no_grad_style,
            target_torch=target_torch,
            python2=python2,
            jobs=jobs,
            color=color,
            quiet=quiet,
            verbose=verbose,
        )
        verified = verify(
            commands,
            options=choices.options,
            settings=settings,
            tree=tree,
            rewriter=_by_hand(against, promise, commands, tree),
            exclude=choices.exclude,
            jobs=choices.jobs,
            tell=teller(choices.detail is Detail.QUIET),
        )
    except VerifyError as error:
        raise UserError(str(error)) from None
    result = _described(verified.verification, env)
    color = choices.settled["color"]
    emit(render(result, form, colour=output is None and wants_colour(sys.stdout, color)), output)
    if output is not None and choices.detail is not Detail.QUIET:
        emit(render(result, "text", colour=wants_colour(sys.stderr, color)), None, stream=sys.stderr)
    if plot is not None:
        _plot(result, plot)
    return result.status


def _described(result: Verification, env: Sequence[str] | None) -> Verification:
    """Return ``result`` with what makes it again: the words of the command line, and where they were said."""
    from dataclasses import replace

    told = {"command_line": masked_words(["codemod", *sys.argv[1:]], env), "folder": str(Path.cwd())}
    return replace(result, settings={**result.settings, **told})


def _by_hand(
    against: Path | None, promise: str | None, commands: Sequence[Command], tree: Path | None
) -> HandRewriter | None:
    from codemods.terms.findings import Promise
    from verify.running.against import HandRewriter
    from verify.verification import root_of

    known = [each.value for each in Promise if each is not Promise.ADVICE]
    if promise is not None and promise not in known:
        raise UserError(f"--promise {promise}: must be one of {', '.join(known)}")
    if against is None:
        if promise is not None:
            raise UserError("--promise needs --against; our own rewrites state theirs")
        return None
    if not against.exists():
        raise UserError(f"{against}: no such file or folder")
    root = root_of(commands, tree)
    return HandRewriter(against, Promise(promise or "exact"), root=root, script=commands[0].script)


def _form(format: str | None, output: Path | None) -> str:
    known = ("text", "json", "html", "markdown")
    if format is None:
        suffix = output.suffix.lstrip(".").lower() if output is not None else ""
        suffix = "markdown" if suffix == "md" else suffix
        return suffix if suffix in known else "text"
    if format not in known:
        raise UserError(f"--format {format}: must be one of {', '.join(known)}")
    return format


def _plottable(path: Path) -> None:
    from verify.errors import VerifyError
    from verify.reports import plots

    try:
        plots.check(path)
    except VerifyError as error:
        raise UserError(str(error)) from None


def _plot(result: Verification, path: Path) -> None:
    from verify.errors import VerifyError
    from verify.reports import plots

    try:
        plots.save(result, path)
    except plots.NothingToDraw as error:
        # What was asked for was done, and the report says why there is nothing to see.
        complain(f"{path}: {error}")
    except VerifyError as error:
        raise UserError(str(error)) from None
