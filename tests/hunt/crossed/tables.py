"""Situations and ways, read from tables of text.

A table is a text file of rows. A row begins with ``== name``; what follows is code, of which the part before a line
``--``, if there is one, stands at the top level of the program. Lines with ``#`` before the first row are for people.

A *way* makes ``OUT`` of ``IN``, or of what has its graph. In a *situation* stands ``new = CARRIED(old)`` where a way is
to be put in, which makes ``new`` of ``old``. Names of a way that end in ``_`` get a number there, so that it can be
put in twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Row(NamedTuple):
    """Code that stands at the ``top`` level, and the rest of the code."""

    top: str
    code: str


def rows(folder: str) -> dict[str, Row]:
    """The rows of all tables in a folder, by name; no two have the same one."""
    found: dict[str, Row] = {}
    for path in sorted(HERE.joinpath(folder).glob("*.txt")):
        for text in path.read_text().split("\n== ")[1:]:
            name, _, code = text.partition("\n")
            top, line, rest = code.partition("\n--\n")
            if name in found:
                raise ValueError(f"{path}: {name} is there twice")
            found[name] = Row(top.strip("\n"), rest.strip("\n")) if line else Row("", code.strip("\n"))
    return found


SITUATIONS, WAYS = rows("situations"), rows("ways")
