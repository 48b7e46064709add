"""``codemod doctor``: run a script briefly, and say what is wrong with it, where, and by whose doing."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated

from codemods.cli import _help as h
from codemods.cli import _options as o
from codemods.cli._groups import expanded
from codemods.cli._ours import PICTURE
from codemods.cli._places import require_apart, require_place
from codemods.cli._runs import Entry, ProgramOptions, RunOptions, report_format, settings_of, teller
from codemods.cli._terminal import complain, emit, wants_colour
from codemods.terms.errors import UserError

_FORMATS = ("text", "json", "html")


@expanded
def command(
    *,
    program: ProgramOptions,
    runs: RunOptions,
    entry: Entry = None,
    format: Annotated[str | None, h.report("--format", metavar="text|json|html", help="Report in this format.")] = None,
    output: Annotated[
        Path | None, h.report("--output", "-o", metavar="FILE", help="Write the report to this file.")
    ] = None,
    graph: Annotated[
        Path | None,
        h.report("--graph", metavar="FILE", help="Draw the graph at the first fault that has one, as .svg."),
    ] = None,
    attach: Annotated[
        bool,
        h.run(
            "--attach",
            help="Run the script to its end, in your own process and without limits or isolation, and report when "
            "growth or an error is seen.",
        ),
    ] = False,
    color: o.Color = None,
    quiet: o.Quiet = None,
) -> int:
    """Run a script briefly and say what is wrong with it.

    Names cause, carrier and consumer of each fault, by line and variable. Changes nothing in the tree.

    Exit status: 0 if no fault was found, 1 if one was, 3 if the script could not be run, 2 for bad usage or an
    internal error.
    """
    if attach:
        return _attached(program, runs, entry, graph, report_format(format, output, _FORMATS), output)
    from verify.diagnosis.diagnose import diagnose
    from verify.diagnosis.pictures import svg
    from verify.diagnosis.reports import html, json, text
    from verify.verification import root_of

    form = report_format(format, output, _FORMATS)
    require_place(graph, PICTURE)
    require_apart({"--output": output, "--graph": graph}, program.files)
    settings = settings_of(runs)
    asked = program.command(entry, settings.python)
    drawn = graph is not None or form == "html"
    root = root_of([asked], program.tree)
    result = diagnose(asked, root, settings=settings, tell=teller(bool(quiet)), picture=drawn)
    render = {"text": text.render, "json": json.render, "html": html.render}[form]
    emit(render(result, colour=output is None and wants_colour(sys.stdout, color or "auto")), output)
    if graph is not None:
        picture = svg.of(result)
        if picture is None:
            complain(f"{graph}: no graph was seen that could be drawn")
        else:
            emit(picture, graph)
    return result.status


def _attached(
    program: ProgramOptions, runs: RunOptions, entry: str | None, graph: Path | None, form: str, output: Path | None
) -> int:
    """Become the script, with a watch around it; returns only where that is impossible."""
    from verify.diagnosis import attaching
    from verify.running.settings import is_notebook

    given = [field.name for field in fields(runs) if getattr(runs, field.name) != field.default]
    limits = [f"--{name.replace('_', '-')}" for name in given if name != "python"]
    limits += ["--graph"] if graph is not None else []
    if limits:
        raise UserError(
            f"--attach runs the script as it is, to its end: {', '.join(limits)} cannot be combined with it"
        )
    settings = settings_of(runs)
    asked = program.command(entry, settings.python)
    words = list(asked.argv[1:])
    if entry is not None or is_notebook(words[0]) or (words[0] != "-m" and Path(words[0]).is_dir()):
        raise UserError(
            f"--attach takes a script or -m MODULE; in {asked.text} put `with verify.watch(report=...)` around the loop"
        )
    place = "" if output is None else str(output.absolute())
    folder = Path(attaching.__file__).parents[2]
    python = shutil.which(settings.python) or settings.python
    start = [python, attaching.__file__, str(folder), form, place, *words]
    sys.stdout.flush()
    # The same process: signals, terminal and exit status are those of the script.
    os.execv(python, start)
