"""``codemod rules``: what rules there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codemods.cli._places import require_place
from codemods.cli._terminal import FINE, emit, require_choice


def command(
    format: Annotated[str, typer.Option("--format", metavar="text|json", help="List in this format.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the list to this file.")
    ] = None,
) -> int:
    """List the rules with what their rewrites promise."""
    from codemods.manual.explain import catalogue, list_as_json, list_as_text

    renderers = {"text": list_as_text, "json": list_as_json}
    require_choice("--format", format, tuple(renderers))
    require_place(output, format)
    emit(renderers[format](catalogue()), output)
    return FINE
