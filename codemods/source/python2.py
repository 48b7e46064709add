"""Python 2 to Python 3, by fissix: the successor of the standard library's lib2to3, which Python 3.13 no longer has.

What the fixers do not touch stays byte for byte. They leave ``/`` alone, so that integers are divided as Python 3 does;
who asks for a translation is told.
"""

from __future__ import annotations

import io
import logging
import re
import tokenize
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from codemods.source.errors import Unparsable
from codemods.source.syntax import FAILURES, parse
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span

if TYPE_CHECKING:
    from fissix.refactor import RefactoringTool

    from codemods.source.files import SourceFile

RULE = "python2"
"""Under which name reports count translations."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_INDENT = re.compile(r"[ \t]*")
_FUTURE_DIVISION = re.compile(r"^from __future__ import .*\bdivision\b", re.MULTILINE)


class Translation(NamedTuple):
    """A file of Python 2 and what it is in Python 3; ``line`` and ``reason`` tell what Python 3 refuses first."""

    source: SourceFile
    text: str
    line: int
    reason: str

    @property
    def finding(self) -> Finding:
        """What a report says of it."""
        message = f"{self.reason}: the file is translated to Python 3 first, as a change of its own"
        if self.divides:
            message += "; each / is left as it stands and now divides integers to fractions"
        span = Span(self.line, 0, self.line, 0)
        return Finding(RULE, self.source.path, span, Promise.REPAIR, message, "translate it with fissix")

    @property
    def divides(self) -> bool:
        """Whether a ``/`` in it may mean the division of integers, which gives a fraction now."""
        return "/" in self.text and _FUTURE_DIVISION.search(self.source.text) is None


def translation(source: SourceFile) -> Translation | None:
    """The translation of a file that is Python 2; None if it is Python 3, or nothing that can be translated."""
    try:
        parse(source.text, source.path)
    except Unparsable as problem:
        line, reason = problem.line, problem.reason
    else:
        return None
    if not reason.startswith("Python 2") and "only Python 2" not in reason:
        return None
    text = translated(source.text)
    if text is None or text == source.text:
        return None
    try:
        parse(text, source.path)
    except Unparsable:
        return None
    return Translation(source, text, line, reason)


def translated(text: str) -> str | None:
    """``text`` in Python 3, with the line ends that it has; None if it cannot be read as Python 2."""
    from fissix.pgen2.parse import ParseError
    from fissix.pgen2.tokenize import TokenError

    ends = _LINE_END.findall(text)
    plain = _LINE_END.sub("\n", text)
    missing = "" if plain.endswith("\n") else "\n"
    try:
        tree = _tool().refactor_string(_without_tabs(plain) + missing, "<text>")
    except (ParseError, TokenError, IndentationError, ValueError, RecursionError):
        return None
    if tree is None:
        return None
    new = str(tree).removesuffix(missing) if missing else str(tree)
    if not ends or set(ends) == {"\n"}:
        return new
    if new.count("\n") != len(ends):
        ends = [max(set(ends), key=ends.count)] * new.count("\n")
    following = iter(ends)
    return re.sub("\n", lambda _: next(following), new)


@cache
def _tool() -> RefactoringTool:
    from fissix.refactor import RefactoringTool, get_fixers_from_package

    logging.getLogger("RefactoringTool").setLevel(logging.ERROR)
    return RefactoringTool(get_fixers_from_package("fissix.fixes"))


def _without_tabs(text: str) -> str:
    """``text`` with spaces for the tabs of its indentation if they are mixed as only Python 2 allows: there a tab
    reaches to the next multiple of eight."""
    try:
        compile(text, "<text>", "exec", dont_inherit=True)
    except TabError:
        pass
    except FAILURES:
        if not _mixes(text):
            return text
    else:
        return text
    inside: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if number not in inside and (indent := _INDENT.match(line)):
            lines[number - 1] = indent[0].expandtabs(8) + line[indent.end() :]
    return "\n".join(lines)


def _mixes(text: str) -> bool:
    """Whether some lines begin with tabs and others with spaces."""
    return bool(re.search(r"^\t", text, re.MULTILINE)) and bool(re.search(r"^ ", text, re.MULTILINE))
