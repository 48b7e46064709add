"""A notebook that is open in an editor, as the file that its cells would be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from codemods.source.files import SourceFile, display_path, source_from_bytes


class Cell(NamedTuple):
    """A cell as it is open: its text, whether it is Python to be run, and its tags."""

    text: str
    is_code: bool = True
    tags: tuple[str, ...] = ()


def source_of(path: str, cells: Sequence[Cell]) -> SourceFile:
    """Return the notebook ``path`` with these ``cells``; lines of its text are placed in cells, counted from 1.

    Raises :class:`~codemods.source.errors.Unreadable` as :func:`codemods.source.notebooks.read_notebook` does.
    """
    made = [
        {"cell_type": "code" if cell.is_code else "raw", "metadata": {"tags": list(cell.tags)}, "source": cell.text}
        for cell in cells
    ]
    data = json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode("ascii")
    return source_from_bytes(data, display_path(path), path)
