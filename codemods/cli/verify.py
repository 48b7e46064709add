"""``codemod verify``: run original and rewritten briefly, and hold every rewrite to its promise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from codemods.cli import _help as h
from codemods.cli import _options as o
from codemods.cli._choices import settle_choices
from codemods.cli._groups import expanded
from codemods.cli._ours import PICTURE
from codemods.cli._places import require_apart, require_place
from codemods.cli._runs import (
    ProgramOptions,
    Reach,
    RunOptions,
    ShapesOnly,
    Tolerance,
    Within,
    draw,
    masked_words,
    report_format,
    require_plottable,
    settings_of,
    teller,
)
from codemods.cli._terminal import emit, require_choice, wants_colour
from codemods.reports import Detail
from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from verify.measured.results import Verification
    from verify.running.against import HandRewriter
    from verify.running.settings import Command

_FORMATS = ("text", "json", "html", "markdown")


@expanded
def command(
    *,
    program: ProgramOptions,
    runs: RunOptions,
    entry: Annotated[
        list[str] | None,
        h.run("--entry", metavar="COMMAND", help="Run this whole command, such as 'train.py --epochs 1'; repeatable."),
    ] = None,
    against: Annotated[
        Path | None,
        h.proof("--against", metavar="PATH", help="Judge the changes in this file or folder instead of ours."),
    ] = None,
    promise: Annotated[
        str | None,
        h.proof("--promise", metavar="exact|equivalent|repair|behaviour", help="Hold --against to this promise."),
    ] = None,
    tolerance: Tolerance = None,
    reach: Reach = None,
    within: Within = None,
    shapes_only: ShapesOnly = False,
    rules: o.RuleOptions,
    format: Annotated[
        str | None, h.report("--format", metavar="text|json|html|markdown", help="Report in this format.")
    ] = None,
    output: Annotated[
        Path | None,
        h.report("--output", "-o", metavar="FILE", help="Write the report to this file: .html, .json, .md or text."),
    ] = None,
    plot: Annotated[
        Path | None, h.report("--plot", metavar="FILE", help="Draw graph nodes, memory and loss: .png or .svg.")
    ] = None,
    color: o.Color = None,
    quiet: o.Quiet = None,
    verbose: o.Verbose = None,
) -> int:
    """Run a script as it is and rewritten, and compare the two.

    Checks that every rewrite keeps its promise. Changes nothing in the tree.

    Exit status: 0 if every promise held, 1 if one was broken, 3 if none could be judged, 2 for bad usage or an internal
    error.
    """
    from verify.reports import render
    from verify.verification import verify

    form = report_format(format, output, _FORMATS)
    require_plottable(plot)
    require_place(plot, PICTURE)
    require_apart({"--output": output, "--plot": plot}, program.files)
    settings = settings_of(runs, tolerance=tolerance, reach=reach, within=within, shapes=shapes_only)
    commands = program.commands(entry or (), settings.python)
    choices = settle_choices(
        str(program.tree or commands[0].script or commands[0].cwd),
        **vars(rules),
        color=color,
        quiet=quiet,
        verbose=verbose,
    )
    verification = verify(
        commands,
        options=choices.options,
        settings=settings,
        tree=program.tree,
        rewriter=_by_hand(against, promise, commands, program.tree),
        exclude=choices.exclude,
        jobs=choices.jobs,
        tell=teller(choices.detail is Detail.QUIET),
    )
    result = _described(verification, runs.env)
    color = choices.settled["color"]
    emit(render(result, form, colour=output is None and wants_colour(sys.stdout, color)), output)
    if output is not None and choices.detail is not Detail.QUIET:
        emit(render(result, "text", colour=wants_colour(sys.stderr, color)), None, stream=sys.stderr)
    draw(result, plot)
    return result.status


def _described(result: Verification, env: Sequence[str] | None) -> Verification:
    """Return ``result`` with what makes it again: the words of the command line, and where they were said."""
    from dataclasses import replace

    told = {"command_line": masked_words(["codemod", *sys.argv[1:]], env), "folder": str(Path.cwd())}
    return replace(result, settings={**result.settings, **told})


def _by_hand(
    against: Path | None, promise: str | None, commands: Sequence[Command], tree: Path | None
) -> HandRewriter | None:
    from codemods.source.files import is_there
    from codemods.terms.findings import Promise
    from verify.running.against import HandRewriter
    from verify.verification import root_of

    known = [each.value for each in Promise if each is not Promise.ADVICE]
    if promise is not None:
        require_choice("--promise", promise, known)
    if against is None:
        if promise is not None:
            raise UserError("--promise needs --against; our own rewrites state theirs")
        return None
    if not is_there(against):
        raise UserError(f"{against}: no such file or folder")
    root = root_of(commands, tree)
    return HandRewriter(against, Promise(promise or "exact"), root=root, script=commands[0].script)
