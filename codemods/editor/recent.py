"""What was seen last of a text, for the next key: while somebody writes a comment, the program stays the same."""

from __future__ import annotations

import re
import warnings
from types import CodeType
from typing import NamedTuple

from codemods.analysis.analyse import Analysis
from codemods.source.gates import without_comments
from codemods.source.syntax import FAILURES

_HEAD = re.compile(rb"(?:[^\r\n]*(?:\r\n?|\n)){0,2}")
"""The lines of which one may name an encoding, in a comment."""

_TOLD = re.compile(rb"[\"']|async|cuda|torch")
"""What rules look for in whole texts: a comment with it stays."""

_SPACE = re.compile(rb"[ \t]+(?=#?(?:[\r\n]|\Z))")


class Stopped(Exception):
    """Nobody waits for what was being done."""


class Program(NamedTuple):
    """What two texts share that differ in their comments alone: all places, and what they do."""

    head: bytes
    code: bytes
    compiled: CodeType


def program_of(text: str) -> Program | None:
    """The program that ``text`` is; None where it is none."""
    try:
        raw = text.encode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # what a pattern takes for a comment may stand in a formatted string: Python's own parser knows
            compiled = compile(raw, "", "exec", dont_inherit=True)
    except FAILURES:
        return None
    code = without_comments(raw, lambda comment: comment if _TOLD.search(comment) else b"#")
    head = _HEAD.match(raw)
    return Program(head[0] if head is not None else b"", _SPACE.sub(b"", code), compiled)


class Recent:
    """The last analysis of each text, with all that it depends on."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Program, object, Analysis]] = {}

    def find(self, path: str, program: Program | None, beside: object) -> Analysis | None:
        """The analysis of ``path`` as this ``program``, with the same ``beside`` it: options and other texts."""
        known = self._known.get(path)
        return known[2] if known is not None and program is not None and known[:2] == (program, beside) else None

    def keep(self, path: str, program: Program | None, beside: object, analysis: Analysis) -> None:
        """Remember an analysis in place of the one before."""
        if program is not None:
            self._known[path] = (program, beside, analysis)

    def clear(self) -> None:
        """Forget all: files may have changed that nobody told of."""
        self._known.clear()
