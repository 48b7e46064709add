"""Commands as a user gives them, run in this process."""

from __future__ import annotations

import contextlib
import io
from typing import NamedTuple

from codemods.cli import main


class Ran(NamedTuple):
    """What a command left: its status and its two outputs."""

    status: int
    stdout: str
    stderr: str


def codemod(*arguments: str) -> Ran:
    """Run ``codemod`` with ``arguments`` in the working directory."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(arguments))
        except SystemExit as stop:
            status = stop.code  # type: ignore[assignment]
    out.flush(), err.flush()
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return Ran(status or 0, *texts)
