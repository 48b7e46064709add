"""For IPython and Jupyter: ``%load_ext codemods.editor.ipython``, then ``%codemod`` looks at what a session has run.

``%codemod`` tells what the rules find in the cells that were run, in the order in which they were; ``%codemod 7`` also
writes what ``codemod apply`` would make of ``In [7]`` into a new cell. Nothing is run again and no file is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from codemods.editor.cells import Cell
from codemods.editor.documents import Diagnosis, Documents
from codemods.source.config import ConfigError
from codemods.source.errors import SourceError

_USAGE = "%codemod looks at the cells that were run; %codemod 7 also writes In [7] mended into a new cell"


def load_ipython_extension(shell: Any) -> None:
    """Give the ``shell`` the magic, as ``%load_ext`` asks for."""

    def codemod(line: str) -> None:
        wanted = line.strip()
        history = shell.history_manager.input_hist_raw
        if wanted and not (wanted.isdecimal() and 0 < int(wanted) < len(history)):
            print(_USAGE)
            return
        try:
            session = _Session(history[1:])
            print("\n".join(session.told()))
            mended = session.mended(int(wanted)) if wanted else None
        except (SourceError, ConfigError) as error:
            print(f"codemod: {error}")
            return
        if mended is not None:
            shell.set_next_input(mended)
        elif wanted:
            print(f"nothing to rewrite in In [{wanted}]")

    codemod.__doc__ = f"{_USAGE}."
    shell.register_magic_function(codemod, "line", "codemod")


class _Session:
    """The cells that were run, as a notebook in the working directory: its cell 3 is ``In [3]``."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.path = os.path.join(os.getcwd(), "session.ipynb")
        self.documents = Documents({}, {self.path: [Cell(text) for text in texts]})
        self.diagnosis: Diagnosis = self.documents.diagnose(self.path)

    def told(self) -> Iterator[str]:
        """What is found, a line each, with what to do about it; that nothing is."""
        source = self.diagnosis.source
        for entry in self.diagnosis.broken:
            yield f"In [{entry.cell}]: left out: {entry.reason}"
        for finding in self.diagnosis.findings if source is not None else ():
            assert source is not None
            place = source.place(finding.span.line)
            yield f"In [{place.cell}], line {place.line}: {finding.rule} [{finding.promise.value}] {finding.message}"
            if finding.remedy:
                yield f"    help: {finding.remedy}"
        if not self.diagnosis.findings:
            yield "nothing found in the cells that were run"

    def mended(self, number: int) -> str | None:
        """The text of ``In [number]`` as ``apply`` would leave it; None where that is as it is."""
        new = self.documents.mended(self.path).get(self.path)
        if new is None:
            return None
        return next((after for cell, _, after in self.documents.changes(self.path, new) if cell == number), None)
