"""``codemod explain``: one rule in full."""

from __future__ import annotations

from typing import Annotated

import typer

from codemods.cli._terminal import FINE, UserError, emit


def command(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The name of a rule; `codemod rules` lists them.")],
    format: Annotated[str, typer.Option("--format", metavar="text|json", help="Answer in this format.")] = "text",
) -> int:
    """Say what a rule finds, why it matters, what its rewrite promises and what it leaves, with an example."""
    from codemods.manual.explain import as_json, as_text, explain
    from codemods.rules import UnknownRule

    renderers = {"text": as_text, "json": as_json}
    if format not in renderers:
        raise UserError(f"--format {format}: no such format; there are {', '.join(sorted(renderers))}")
    try:
        explanation = explain(rule)
    except UnknownRule as error:
        raise UserError(str(error)) from None
    emit(renderers[format](explanation), None)
    return FINE
