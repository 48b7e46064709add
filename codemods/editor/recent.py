"""What was seen last of a text, for the next key: while somebody writes a comment or a docstring, the program stays the
same."""

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

_WORDS = re.compile(rb"async|cuda|torch")
"""What rules look for in whole texts: a docstring with it stays, and a comment."""

_TOLD = re.compile(rb"[\"']|" + _WORDS.pattern)
"""The same of comments, in which a quote is taken for the beginning of a string."""

_CODING = re.compile(rb"coding[:=]")
_ESCAPED = re.compile(rb"[\\\0]")
_CHARACTERS = re.compile(rb"[^\r\n]+")

_SPACE = re.compile(rb"[ \t]+(?=#?(?:[\r\n]|\Z))")


class Stopped(Exception):
    """Nobody waits for what was being done."""


class Program(NamedTuple):
    """What two texts share that differ in their comments and docstrings alone: all places, and what they do."""

    head: bytes
    code: bytes
    compiled: CodeType


def program_of(text: str) -> Program | None:
    """The program that ``text`` is; None where it is none."""
    try:
        raw = text.encode()
        head = _HEAD.match(raw)
        first = head[0] if head is not None and _CODING.search(head[0]) else b""
        code = without_comments(raw, _shortened)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # what a pattern takes for a comment may stand in a formatted string: Python's own parser knows
            compiled = compile(code, "", "exec", dont_inherit=True)
    except FAILURES:
        return None
    return Program(first, _SPACE.sub(b"", code), compiled)


def _shortened(found: bytes) -> bytes:
    """A comment or a docstring without what it says; one that may matter stays, and so do its lines."""
    if found.startswith(b"#"):
        return found if _TOLD.search(found) or _CODING.search(found) else b"#"
    said = found.strip(found[:1])
    # an escape may be wrong
    return found if _WORDS.search(said) or _ESCAPED.search(said) else b'""' + _CHARACTERS.sub(b"", found)


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
