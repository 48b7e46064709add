"""``codemod patch``: a reviewed patch on files that have changed since."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from codemods.cli import _help as h
from codemods.cli import _options as o
from codemods.cli._choices import CHOICES
from codemods.cli._ours import DIFF, kind_of
from codemods.cli._places import require_apart, require_place
from codemods.cli._terminal import ProgressBar, emit, emit_diff, read_stdin, require_choice, wants_colour
from codemods.terms.errors import UserError

FORMATS = ("text", "json")


def command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `codemod apply --patch` wrote, or a unified diff; - for stdin.")
    ],
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Only patch these files and folders.", show_default=False)
    ] = None,
    root: Annotated[
        Path | None, h.where("--root", metavar="DIR", help="The folder that its paths are relative to.")
    ] = None,
    dry_run: Annotated[bool, h.review("--dry-run", help="Print the diff and write nothing.")] = False,
    jobs: o.Jobs = None,
    format: Annotated[str, h.report("--format", metavar="|".join(FORMATS), help="Report in this format.")] = "text",
    output: o.Output = None,
    color: Annotated[str, h.report("--color", metavar="|".join(CHOICES["color"]), help="Colour the output.")] = "auto",
    quiet: Annotated[bool, h.report("--quiet", "-q", help="Tell only what was refused.")] = False,
) -> int:
    """Fit a reviewed patch to files that changed since.

    Exit status: 0 if every hunk is applied or was applied before, 1 if one was refused, 2 for bad usage, a damaged
    patch or a file that could not be written.
    """
    from codemods.patches.bundle import load
    from codemods.patches.fitting import fit
    from codemods.patches.parsing import PatchError
    from codemods.patches.results import as_json, as_text
    from codemods.reports import Detail
    from codemods.source.errors import SourceError
    from codemods.source.files import is_there, read_bytes

    require_choice("--format", format, FORMATS)
    require_choice("--color", color, CHOICES["color"])
    if root is not None and not root.is_dir():
        raise UserError(f"--root {root}: no such folder")
    require_place(output, DIFF if dry_run else kind_of(format))
    require_apart({"--output": output}, [] if file == "-" else [Path(file)])
    missing = [path for path in paths or () if not is_there(path)]
    if missing:
        raise UserError(f"{missing[0]}: no such file or folder")
    detail = Detail.QUIET if quiet else Detail.NORMAL
    try:
        data = read_stdin() if file == "-" else read_bytes(file, file)
        with ProgressBar(quiet=quiet) as progress:
            result = fit(load(data), root=root or ".", paths=paths or (), dry_run=dry_run, jobs=jobs, progress=progress)
    except PatchError as error:
        raise UserError(f"{'standard input' if file == '-' else file}: {error}") from None
    except SourceError as error:
        raise UserError(str(error)) from None

    def report(colour: bool) -> str:
        return as_json(result) if format == "json" else as_text(result, detail, colour=colour)

    to_output = output is None and wants_colour(sys.stdout, color)
    if dry_run:
        emit_diff(result, output, colour=to_output)
        emit(report(wants_colour(sys.stderr, color)), None, stream=sys.stderr)
    else:
        emit(report(to_output), output)
    return result.status
