"""Which place of the text each instruction comes from."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    #: Line, column, end line, end column; columns count bytes from 0.
    Place = tuple[int, int, int, int]


def places(code: CodeType) -> dict[int, Place]:
    """The places of the instructions of ``code`` by their offsets; what is not known is left out.

    Python tells from 3.11 on; before, nothing is known.
    """
    if not hasattr(code, "co_positions"):
        return {}
    found: dict[int, Place] = {}
    for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if line is not None and end_line is not None and column is not None and end_column is not None:
            found[2 * index] = (line, column, end_line, end_column)
    return found


def lines_of(code: CodeType) -> set[int]:
    """The lines that ``code`` has instructions for, those of the functions inside it not included."""
    if hasattr(code, "co_lines"):
        return {line for _, _, line in code.co_lines() if line is not None}
    import dis

    return {line for _, line in dis.findlinestarts(code) if line is not None}
