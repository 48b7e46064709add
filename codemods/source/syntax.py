"""Text to syntax tree, and why not: in words that name the old Python or the other language that stands there."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.source.errors import Unparsable

if TYPE_CHECKING:
    import ast

_TOO_DEEP = "nested too deeply for Python's own parser"
_LOOK = 2000  # characters of a line; generated lines of a megabyte would keep the patterns below busy for minutes
_LINE_END = re.compile(r"\r\n?|\n")

# What the parser's own message gives away, on every version from 3.10 on.
_BY_MESSAGE = (
    ("Missing parentheses in call to 'print'", "Python 2 print statement"),
    ("Missing parentheses in call to 'exec'", "Python 2 exec statement"),
    ("multiple exception types must be parenthesized", "Python 2 except clause (`except X, name`)"),
    ("leading zeros in decimal integer literals", "Python 2 octal number (`0777`)"),
    ("Function parameters cannot be parenthesized", "Python 2 tuple parameter"),
    ("Lambda expression parameters cannot be parenthesized", "Python 2 tuple parameter"),
    ("too many nested parentheses", _TOO_DEEP),
    ("too many levels of indentation", _TOO_DEEP),
)

# What the text from the place of the error on gives away.
_AT_ERROR = (
    (re.compile("`"), "Python 2 backticks"),
    (re.compile("<>"), "Python 2 inequality (`<>`)"),
    (re.compile(r"[lL]\b"), "Python 2 long number (`10L`)"),
)

# What the line of the error gives away; the first that fits. Files that are no Python at all come first, because any
# of the others may fit a line of theirs by accident.
_ON_LINE = (
    (re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: |$)"), "merge conflict marker"),
    (re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE), "HTML or XML, not Python"),
    (re.compile(r"version https://git-lfs"), "Git LFS pointer, not the file itself"),
    (re.compile(r"\s*(?:%%?[A-Za-z]|![\w./~]|\?\w)"), "IPython magic or shell command"),
    (re.compile(r"[^\"'#]*(?:\{%|\{\{)"), "template placeholder"),
    (re.compile(r"(?:.*[;:])?\s*print\s+[^\s(=.,:)\]]"), "Python 2 print statement"),
    (re.compile(r"(?:.*[;:])?\s*print\s*>>"), "Python 2 print statement"),
    (re.compile(r"(?:.*[;:])?\s*exec\s+[^\s(=.,:)\]]"), "Python 2 exec statement"),
    (re.compile(r"\s*except\s[^:]*,\s*\w+\s*:"), "Python 2 except clause (`except X, name`)"),
    (re.compile(r".*\b[uU][rR][\"']"), "Python 2 string prefix (`ur''`)"),
    (re.compile(r"(?:.*[;:])?\s*raise\b[^,]*,"), "Python 2 raise statement (`raise E, value`)"),
    (re.compile(r"\s*def\s+\w+\s*\((?:.*,)?\s*\([\w, ]+\)"), "Python 2 tuple parameter"),
    (re.compile(r".*\blambda\s*(?:[^:]*,)?\s*\([\w, ]+\)"), "Python 2 tuple parameter"),
    (
        re.compile(r"(?!\s*def\b).*[(,]\s*async\s*=(?!=)"),
        "`async` used as a keyword argument, reserved since Python 3.7 (PyTorch now says `non_blocking`)",
    ),
)
_ARGUMENT_LINE = re.compile(r"\s*async\s*=(?!=)")
_OPEN_ARGUMENTS = re.compile(r".*[(,]\s*(?:#.*)?$")
_RESERVED = re.compile(r"\b(async|await)\b")


def parse(text: str, path: str) -> ast.Module:
    """The syntax tree of ``text``, without the parser's warnings about the user's code.

    ``async`` as the keyword of an argument is read as it stands, although Python 3.7 reserved it. Raises `Unparsable`
    with ``path``, line and reason for whatever else Python itself cannot read.
    """
    try:
        return _parsed(text)
    except FAILURES as error:
        line, reason = explain_syntax_error(text, error)
    if "async" in text:
        from codemods.source.reserved import restore, stand_in

        readable, word = stand_in(text) or (text, "")
        try:
            tree = _parsed(readable)
            restore(tree, word)
            return tree
        except FAILURES as error:
            line, reason = explain_syntax_error(readable.replace(word, "async") if word else text, error)
    raise Unparsable(path, line, reason)


def plainly_readable(text: str) -> bool:
    """Whether Python takes ``text``. False says nothing yet: `parse` may know how to read it, and knows why not.

    Building the table of its names tells it in a third of the time that a syntax tree takes, which counts where every
    file of a large tree is asked.
    """
    import symtable

    with _as_from_the_start():
        try:
            symtable.symtable(text, "<text>", "exec")
        except FAILURES:
            return False
    return True


#: What Python's own parser raises for a text that it cannot read; the last three for one that is nested too deeply.
FAILURES = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def _parsed(text: str) -> ast.Module:
    import ast

    with _as_from_the_start():
        return ast.parse(text)


_ROOM = 1000
"""How many calls deep Python's parser may go, as it counts."""


@contextlib.contextmanager
def _as_from_the_start() -> Iterator[None]:
    """Let what Python's parser says not depend on where it is asked: before 3.12 it reads deeper nesting the more calls
    are left until the limit, which a simulation raises."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + _ROOM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.setrecursionlimit(limit)


def explain_syntax_error(text: str, error: Exception) -> tuple[int, str]:
    """The line (0 where unknown) and the reason, in words for people, why ``text`` could not be parsed.

    ``error`` is what `ast.parse` raised: a SyntaxError or, for null bytes and for nesting beyond its stack, a
    ValueError, RecursionError, MemoryError or OverflowError.
    """
    if isinstance(error, (RecursionError, MemoryError)):
        return 0, _TOO_DEEP
    null = text.find("\0")
    if null >= 0:
        return _line_of(text, null), "null byte: not a text file"
    if isinstance(error, UnicodeEncodeError):
        return _line_of(text, error.start), f"character {text[error.start]!a} cannot stand in Python source"
    if not isinstance(error, SyntaxError):
        return 0, str(error) or type(error).__name__
    line = error.lineno or 0
    return line, _reason(_LINE_END.split(text), line, error)


def _reason(lines: list[str], number: int, error: SyntaxError) -> str:
    message = error.msg or "invalid syntax"
    if isinstance(error, TabError):
        return "tabs and spaces mixed in the indentation, as only Python 2 allows"
    for start, reason in _BY_MESSAGE:
        if message.startswith(start):
            return reason
    if isinstance(error, IndentationError) or not 0 < number <= len(lines):
        return message
    line = lines[number - 1][:_LOOK]
    before = lines[number - 2] if number > 1 else ""
    return _reason_on_line(line, before, max((error.offset or 1) - 1, 0), message) or message.partition(";")[0]


def _reason_on_line(line: str, before: str, column: int, message: str) -> str | None:
    for pattern, reason in _AT_ERROR:
        # A literal that ends badly is blamed on its last good character, or on the one after it.
        if pattern.match(line, column) or ("literal" in message and pattern.match(line, column + 1)):
            return reason
    for pattern, reason in _ON_LINE:
        if pattern.match(line):
            return reason
    if _ARGUMENT_LINE.match(line) and _OPEN_ARGUMENTS.match(before):
        return _ON_LINE[-1][1]
    if message != "invalid syntax":
        return None
    # The parser blames a reserved word, or what follows where the word could still have begun something.
    reserved = next((word for word in _RESERVED.finditer(line) if word.start() <= column <= word.end() + 1), None)
    return f"`{reserved[1]}` used as a name, reserved since Python 3.7" if reserved else None


def _line_of(text: str, offset: int) -> int:
    return 1 + len(_LINE_END.findall(text, 0, offset))
