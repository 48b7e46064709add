"""``codemod explain``: one rule in full, or what was found at one place."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from codemods.cli import _help as h
from codemods.cli import _options as o
from codemods.cli._scope import PLACE
from codemods.cli._terminal import FINE, FOUND, complain, emit, require_choice, wants_colour
from codemods.terms.errors import UserError


def command(
    rule: Annotated[
        str,
        typer.Argument(
            metavar="RULE|PATH:LINE", help="The name of a rule (`codemod rules` lists them), or the place of a finding."
        ),
    ],
    format: Annotated[str, h.report("--format", metavar="text|json", help="Answer in this format.")] = "text",
    select: o.Select = None,
    config: o.Config = None,
    color: o.Color = None,
) -> int:
    """Explain a rule, or what was found at a line.

    For a rule: what it finds, why that matters, what its rewrite promises. For a line: why it was found, how the graph
    got there, what the rewrite changes.

    Exit status: 0, 1 if nothing is found at the line, 2 for bad usage.
    """
    require_choice("--format", format, ("text", "json"))
    place = PLACE.fullmatch(rule)
    if place is not None and (Path(place["path"]).exists() or "/" in rule or ".py" in rule):
        return _place(place, format, select=select, config=config, color=color)
    from codemods.manual.explain import as_json, as_text, explain

    if Path(rule).is_file():
        raise UserError(
            f"{rule}: name a line too, such as {rule}:1; codemod check {shlex.quote(rule)} tells where findings are"
        )
    path, colon, line = rule.rpartition(":")
    if colon and Path(path).is_file():
        raise UserError(f"{rule}: {repr(line) if line else 'nothing'} behind the colon; a line is a number: {path}:1")
    emit((as_json if format == "json" else as_text)(explain(rule)), None)
    return FINE


def _place(
    place: re.Match[str], format: str, *, select: list[str] | None, config: Path | None, color: str | None
) -> int:
    from codemods.reports._explained import as_json, as_text, explained

    job = o.settle(
        [place["path"]],
        stdin_filename="",
        select=select,
        ignore=None,
        exclude=None,
        config=config,
        color=color,
        format=None,
    )
    if not job.targets.sources:
        told = next((f"{entry.place}: {entry.reason}" for entry in job.targets.skipped), "nothing to check there")
        raise UserError(told)
    source = job.targets.sources[0]
    cell, asked = int(place["cell"] or 0) or None, int(place["line"])
    count = source.text.count("\n") + 1
    line = next((at for at in range(1, count + 1) if source.place(at) == (cell, asked)), 0)
    report, found = explained(job.targets.sources, line, options=job.options)
    if not found:
        elsewhere = sorted({one.finding.span.line for one in report.findings if one.finding.path == source.path})
        hint = (
            f"; there are findings at {', '.join(str(source.place(at)) for at in elsewhere[:9])}" if elsewhere else ""
        )
        complain(f"{place[0].rstrip(':')}: no finding there{hint}")
        return FOUND
    emit(
        as_json(report, found)
        if format == "json"
        else as_text(report, found, colour=wants_colour(sys.stdout, job.color)),
        None,
    )
    return FINE
