"""Where things stand in the files of a SARIF log: lines and columns as the standard counts them, and replacements."""

from __future__ import annotations

import re
from typing import Any

from codemods.rewriting.changes import Hunk
from codemods.source.notebooks import Splice

_LINE_END = re.compile(r"\r\n?|\n")


class Text:
    """A text as SARIF counts in it: lines end at CR LF or LF, columns are UTF-16 code units, both from 1.

    Python ends lines at a lone CR too, and counts columns in characters.
    """

    def __init__(self, text: str) -> None:
        self.python_lines = _LINE_END.split(text)
        self.lines = text.split("\n")
        self._plain = len(self.python_lines) == len(self.lines)
        self._starts: list[int] = []
        if not self._plain:
            self._text = text
            self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def place(self, line: int, column: int) -> tuple[int, int]:
        """Return line and column for SARIF of a line and column of ours."""
        if not self._plain and 0 < line <= len(self._starts):
            before = self._text[: self._starts[line - 1] + column]
            return before.count("\n") + 1, _units(before.rpartition("\n")[2]) + 1
        shown = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return line, _units(shown[:column]) + 1


def _units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def replaced(hunk: Hunk, text: Text) -> dict[str, Any]:
    """Return the hunk as a region of whole lines and what comes in its place."""
    start, end = hunk.old_start, hunk.old_start + len(hunk.removed)
    region = {"startLine": start, "startColumn": 1, "endLine": end, "endColumn": 1}
    last = len(text.lines)
    if end > last:
        # There is no line to begin behind a last one without a line end: the region stops at its end.
        region |= {"endLine": last, "endColumn": _units(text.lines[-1]) + 1}
    if start > last:
        region |= {"startLine": region["endLine"], "startColumn": region["endColumn"]}
    return {"deletedRegion": region, "insertedContent": {"text": "".join(hunk.added)}}


def spliced(content: str, splice: Splice) -> dict[str, Any]:
    """Return a change of the text of a file as a region, no larger than it has to be, and what comes in its place."""
    old, new = content[splice.start : splice.end], splice.new
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    region: dict[str, int] = {}
    for side, offset in (("start", splice.start + head), ("end", splice.end - tail)):
        line = content.count("\n", 0, offset) + 1
        before = content[content.rfind("\n", 0, offset) + 1 : offset]
        region |= {f"{side}Line": line, f"{side}Column": _units(before) + 1}
    return {"deletedRegion": region, "insertedContent": {"text": new[head : len(new) - tail]}}


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))
