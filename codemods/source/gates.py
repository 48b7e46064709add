"""The words by which a text is known to concern a rule, before anything is parsed.

Only code counts: what stands in comments and plain strings (of a library, a third of its text) concerns nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Form(NamedTuple):
    """A word that matters only as ``pattern`` has it, and in a file in whose text ``beside`` stands as well."""

    word: bytes
    pattern: re.Pattern[bytes]
    beside: bytes = b""


def form(pattern: str, *, word: str, beside: str = "") -> Form:
    """The :class:`Form` of a regular expression; what it matches holds ``word``."""
    return Form(word.encode(), re.compile(pattern.encode(), re.MULTILINE), beside.encode())


class Gate:
    """Tells texts of code in which one of some words or forms stands."""

    def __init__(self, entries: Iterable[bytes | Form]) -> None:
        known = list(dict.fromkeys(entries))
        self.words = [entry for entry in known if isinstance(entry, bytes)]
        self.forms = [entry for entry in known if isinstance(entry, Form)]
        literals = {*self.words, *(form.word for form in self.forms)}
        # where a longer one stands, the shorter one in it does
        self._literals = sorted(w for w in literals if not any(o in w for o in literals if o != w))

    def __call__(self, code: bytes) -> bool:
        # one regular expression of all words takes twice as long
        return any(word in code for word in self.words) or any(
            form.word in code and form.pattern.search(code) is not None for form in self.forms
        )

    def within(self, raw: bytes) -> Gate | None:
        """What of it matters in the file of text ``raw``, None if nothing."""
        if not any(literal in raw for literal in self._literals):
            return None
        code = code_of(raw)
        words = [word for word in self.words if word in code]
        forms = [form for form in self.forms if form.word in code and form.beside in raw and form.pattern.search(code)]
        return Gate([*words, *forms]) if words or forms else None


_SILENT = re.compile(
    rb"""
    ["'] (?:
        (?<=") (?: "" [^"\\]* (?: (?: \\. | "(?!"") ) [^"\\]* )* \"\"\"
                 | [^"\\\r\n]* (?: \\(?:\r\n|.) [^"\\\r\n]* )* " )
        | (?<=') (?: '' [^'\\]* (?: (?: \\. | '(?!'') ) [^'\\]* )* '''
                   | [^'\\\r\n]* (?: \\(?:\r\n|.) [^'\\\r\n]* )* ' )
    )
    | \#[^\r\n]*
    """,
    re.VERBOSE | re.DOTALL,
)
"""A string or a comment."""

_LINES = re.compile(rb"[^\r\n]+")
_FORMATTED = re.compile(rb"(?<![A-Za-z0-9_])(?:[fF][rR]?|[rR][fF])\Z")
_LETTERS = (b"f", b"F", b"r", b"R")


def code_of(raw: bytes) -> bytes:
    """A text without its comments and without what its strings hold; formatted strings, which hold code, stay as they
    are, and so do the lines."""
    return _SILENT.sub(_silenced, raw)


_BRACKETS = {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}
_SILENT_OR_BRACKET = re.compile(_SILENT.pattern + rb"| [\[\](){}]", re.VERBOSE | re.DOTALL)


def without_comments(raw: bytes, shorten: Callable[[bytes], bytes]) -> bytes:
    """A text with each comment, from its ``#`` to the end of the line, as ``shorten`` has it, and each string that is a
    statement by itself, as docstrings are.

    Those within brackets stay, because they may be taken along with an expression.
    """
    depth = 0

    def shortened(match: re.Match[bytes]) -> bytes:
        nonlocal depth
        found = match[0]
        depth += _BRACKETS.get(found, 0)
        return shorten(found) if depth == 0 and (found[:1] == b"#" or _is_statement(raw, match)) else found

    return _SILENT_OR_BRACKET.sub(shortened, raw)


_LINE_END = re.compile(rb"[ \t\f]*(?:[#\r\n]|\Z)")


def _is_statement(raw: bytes, match: re.Match[bytes]) -> bool:
    """Whether a string that stands outside of brackets is all of its lines, and none of them continues another."""
    if match[0][:1] not in (b'"', b"'") or _LINE_END.match(raw, match.end()) is None:
        return False
    start = max(raw.rfind(b"\n", 0, match.start()), raw.rfind(b"\r", 0, match.start())) + 1
    return not raw[start : match.start()].strip(b" \t\f") and not raw[max(0, start - 3) : start].rstrip(
        b"\r\n"
    ).endswith(b"\\")


def _silenced(match: re.Match[bytes]) -> bytes:
    text = match[0]
    if text.startswith(b"#"):
        return b""
    start = match.start()
    if match.string[start - 1 : start] in _LETTERS and _FORMATTED.search(match.string[max(0, start - 3) : start]):
        return text
    return b'""' + (_LINES.sub(b"", text) if b"\n" in text or b"\r" in text else b"")
