"""``codemod lsp``: findings and quick fixes in editors."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from codemods.source.home import needs
from codemods.terms.errors import UserError


def command(
    stdio: Annotated[bool, typer.Option("--stdio", help="Speak over standard input and output (the only way).")] = True,
) -> int:
    """Serve an editor by the Language Server Protocol.

    Provides diagnostics, quick fixes and hovers.

    Exit status: 0 after the client asked to exit, 1 if the connection broke.
    """
    if importlib.util.find_spec("pygls") is None:
        raise UserError(needs("codemod lsp", "pygls", "lsp"))
    from codemods.editor.features import serve

    return serve()
