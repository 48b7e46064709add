"""``codemod doctor``: run a script briefly, and say what is wrong with it, where, and by whose doing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from codemods.cli import _options as o
from codemods.cli._runs import RunOptions, settings_of, teller
from codemods.cli._terminal import UserError, emit, require_place, wants_colour

_FORMATS = ("text", "json")


def command(
    script: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCRIPT [-- ARGS]", help="The script to run, and its arguments.", show_default=False),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module instead of a script.")
    ] = None,
    entry: Annotated[
        str | None,
        typer.Option("--entry", metavar="COMMAND", help="Run this whole command, such as 'torchrun train.py'."),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option("--tree", metavar="FOLDER", help="The root of the tree; by default the project of the script."),
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
    isolation: RunOptions.isolation = None,
    env: RunOptions.env = None,
    expose: RunOptions.expose = None,
    format: Annotated[str | None, typer.Option("--format", metavar="text|json", help="Report in this format.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file.")
    ] = None,
    color: o.Color = None,
    quiet: o.Quiet = None,
) -> int:
    """Run a script briefly and say what is wrong with it: cause, carrier, consumer, by line and variable.

    Nothing in the tree is changed. Exit status: 0 nothing wrong was seen, 1 a fault is named, 3 the script could not
    be run, 2 for bad usage or an error of ours.
    """
    from verify.diagnosis import json, text
    from verify.diagnosis.diagnose import diagnose
    from verify.errors import VerifyError
    from verify.running.settings import entry_command, script_command
    from verify.verification import root_of

    words = list(script or ())
    form = format or ("json" if output is not None and output.suffix == ".json" else "text")
    if form not in _FORMATS:
        raise UserError(f"--format {form}: must be one of {', '.join(_FORMATS)}")
    require_place(output)
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
        isolation=isolation,
        env=env,
        expose=expose,
    )
    try:
        if entry is not None:
            if words or module is not None:
                raise UserError("name a script, -m or --entry, not two of them")
            asked = entry_command(entry, settings.python, Path.cwd())
        elif module is not None:
            asked = script_command(module, words, settings.python, module=True)
        elif words:
            asked = script_command(words[0], words[1:], settings.python)
        else:
            raise UserError("name a script to run, or give --entry")
        result = diagnose(asked, root_of([asked], tree), settings=settings, tell=teller(bool(quiet)))
    except VerifyError as error:
        raise UserError(str(error)) from None
    if form == "json":
        emit(json.render(result), output)
    else:
        emit(text.render(result, colour=output is None and wants_colour(sys.stdout, color or "auto")), output)
    return result.status
