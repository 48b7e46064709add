"""``codemod clean``: remove what is kept between runs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from codemods.cli._terminal import FINE, emit
from codemods.terms.errors import UserError


def command(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Files or folders of the projects; by default here.")
    ] = None,
) -> int:
    """Remove .codemod_cache, what check and apply keep between runs.

    The folder lies at the root of each project.
    """
    from codemods.source.cache import clean
    from codemods.source.errors import os_reason

    if missing := [path for path in paths or () if not os.path.exists(path)]:
        raise UserError(f"{missing[0]}: no such file or folder")
    try:
        for folder in clean(paths or ["."]):
            emit(f"removed {folder}\n", None)
    except OSError as error:
        if error.filename is None:
            raise
        raise UserError(f"{os.fsdecode(error.filename)}: {os_reason(error)}") from None
    return FINE
