"""``codemod fix``: from what the doctor names to a change that was run and proved; ``--write`` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from codemods.cli import _options as o
from codemods.cli._runs import RunOptions, settings_of, teller
from codemods.cli._terminal import UserError, emit, require_place

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
    write: Annotated[bool, typer.Option("--write", help="Write the repairs that were proved.")] = False,
    format: Annotated[str | None, typer.Option("--format", metavar="text|json", help="Report in this format.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file.")
    ] = None,
    config: o.Config = None,
    quiet: o.Quiet = None,
) -> int:
    """Run a script, find what is wrong, try changes, and show those that mend it with their proof.

    Nothing in the tree is changed without --write. Exit status: 0 nothing is wrong, or not any more, 1 a fault is left,
    3 the script could not be run, 2 for bad usage or an error of ours.
    """
    from verify.errors import VerifyError
    from verify.fixing import report
    from verify.fixing.fix import Fixer
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
        choices = o.settle_choices(
            str(tree or asked.script or asked.cwd), config=config, select=None, ignore=None, exclude=None, unsafe=None
        )
        root = root_of([asked], tree)
        fixer = Fixer(asked, root, settings=settings, options=choices.options, tell=teller(bool(quiet)))
        fixed = fixer.fix()
    except VerifyError as error:
        raise UserError(str(error)) from None
    written = write and bool(fixed.files)
    if written:
        _write(root, fixed.files)
    render = report.as_json if form == "json" else report.text
    emit(render(fixed, written=written), output)
    return fixed.status


def _write(root: Path, files: Mapping[str, bytes]) -> None:
    from codemods.source.errors import SourceError
    from codemods.source.files import read_source, source_from_bytes
    from codemods.source.writing import write_atomically

    try:
        for path, data in files.items():
            source = read_source(root / path)
            write_atomically(source, source_from_bytes(data, path).text)
    except SourceError as error:
        raise UserError(f"{error.skipped.path}: {error.skipped.reason}") from None
