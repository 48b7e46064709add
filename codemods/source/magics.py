"""IPython's own syntax in a cell, and the Python that stands for it: as many lines, and the way back.

What is a magic follows IPython: an escape (``%``, ``!``, ``?``, ``,``, ``;``, ``/``) where a statement begins, ``=``
followed by ``%name`` or ``!``, a ``?`` behind the last word of a statement, and ``%%name`` at the top of a cell. See
https://ipython.readthedocs.io/en/stable/interactive/reference.html.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

from codemods.terms.words import words

PREFIX = "_ipython"
"""What the names of stand-ins begin with."""

RUN_IN_PLACE = frozenset({"time", "timeit", "capture", "prun", "memit"})
"""The cell magics of IPython, and one other, that run the rest of the cell as Python of the notebook."""

_NOT_IN_PLACE = words(
    "bash cmd cpp cython debug file html javascript js julia latex markdown octave perl pypy python python2 python3 r "
    "ruby script sh shell sql svg sx system writefile"
)
_TAKES_CODE = frozenset({"lprun", "memit", "mprun", "prun", "snakeviz", "time", "timeit"})
_NAME = re.compile(r"(?<![\w.'\"-])[^\W\d]\w*")

_STAND_IN = re.compile(PREFIX + r"_+\d+_\d+_")
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
    |(?P<triple>\"\"\"|''')
    |(?P<quote>["'])
    |(?P<join>\\(?:\r\n|\r|\n))
    |(?P<end>\r\n|\r|\n)
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<assign>(?<![=!<>:+\-*/%&|^@~])=[ \t]*(?=!|%[^\W\d]))
    |(?P<help>\?\??(?=[\r\n]|\Z))
    |[^\s\#"'\\()\[\]{}=?]+|[ \t\f]+|.""",
    re.VERBOSE | re.DOTALL,
)
_ENDS = {
    '"': re.compile(r'(?:[^"\\\r\n]|\\(?:\r\n|.))*"?', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\r\n]|\\(?:\r\n|.))*'?", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*(?:""")?', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*(?:''')?", re.DOTALL),
}
_REST = re.compile(r"(?:[^\\\r\n]|\\(?:\r\n|\r|\n)|\\)*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))*")
_CELL_MAGIC = re.compile(r"%%(?P<name>[^\W\d]\w*)(?!\w*\?)[^\r\n]*")
_INDENT = re.compile(r"[ \t\f]*")
_TIME = re.compile(r"%time(?=[ \t])[ \t]+(?!(?:for|while|with|if|try|def|class|async|match)\b)[^\s\-]")
_TIMED, _SEEN = "%time", "if 1:"  # as long, so that columns stay
_SEEN_LINE = re.compile(rf"^([ \t\f]*){_SEEN}", re.MULTILINE)
# The names that people type without %: IPython takes them for magics where the cell is nothing but that line.
_AUTOMAGIC = re.compile(
    r"(?:pip|conda|mamba|cd|ls|ll|pwd|cat|cp|mv|rm|mkdir|rmdir|env|matplotlib|pylab|autoreload|load_ext|who|whos|man"
    r"|more|less|reset|history)(?:[ \t]+[^=\s(.,\[:+*/&|<>@^%-][^\r\n]*|[ \t]+-[^\r\n]*|[ \t]+[./~][^\r\n]*)?"
)


class Magic(NamedTuple):
    """A stretch of a cell that is IPython's: its ``text`` as it stands there, from ``line`` of the cell on.

    ``name`` is that of the magic, ``!`` for the shell and ``?`` for help. ``stand_in`` is the name that stands for it,
    empty where the Python in it is read as it is.
    """

    line: int
    name: str
    text: str
    stand_in: str


class Program(NamedTuple):
    """A cell as Python: ``text`` of as many lines, and its ``magics`` in order. ``header`` has to stand above it."""

    text: str
    magics: tuple[Magic, ...]
    header: str


def is_stand_in(name: str) -> bool:
    """Whether a function of this name stands for a magic."""
    return _STAND_IN.fullmatch(name) is not None


def program(cell: str, stem: str) -> Program | None:
    """The Python of a cell, its magics called ``stem`` and a number; None where its body is not run as Python."""
    pieces: list[str] = []
    magics: list[Magic] = []
    at = 0
    for start, end, name in _magics(cell):
        if name is None:
            return None
        pieces.append(cell[at:start])
        at = end
        text = cell[start:end]
        line = 1 + len(_LINE_END.findall(cell, 0, start))
        if name == "time" and _TIME.match(text) and _SEEN not in cell:
            magics.append(Magic(line, name, text, ""))
            pieces.append(_SEEN + text[len(_TIMED) :])
            continue
        stand_in = f"{stem}{len(magics)}_"
        magics.append(Magic(line, name, text, stand_in))
        pieces.append(f"{stand_in}({_arguments(name, text)}{''.join(_LINE_END.findall(text))})")
    pieces.append(cell[at:])
    first = _BLANK.match(cell)
    assert first is not None
    indented = cell[first.end() : first.end() + 1] in (" ", "\t")
    return Program("".join(pieces), tuple(magics), "if True:" if indented else "")


def original(text: str, known: Program) -> str | None:
    """The cell that ``text`` is the Python of, given what it was before an edit; None where a magic is not whole."""
    for magic in known.magics:
        if magic.stand_in:
            parts = re.split(re.escape(magic.stand_in) + r"\([\w,\s]*\)", text)
            if len(parts) != 2:
                return None
            text = magic.text.join(parts)
    if any(not magic.stand_in for magic in known.magics):
        text = _SEEN_LINE.sub(lambda match: match[1] + _TIMED, text)
    return text


def in_place(cell: Program) -> bool:
    """Whether what is said to be the Python of a cell surely is: no magic that we do not know got the cell."""
    return all(magic.name in RUN_IN_PLACE for magic in cell.magics if magic.text.startswith("%%"))


def _arguments(name: str, text: str) -> str:
    """The names that code in a magic reads: whoever looks at the program has to know that something is done there."""
    if name not in _TAKES_CODE:
        return ""
    names = dict.fromkeys(_NAME.findall(text.lstrip("%").removeprefix(name)))
    return ", ".join(word for word in names if not keyword.iskeyword(word))


def _magics(cell: str) -> Iterator[tuple[int, int, str | None]]:
    """Start, end and name of each magic in order; the name None for a cell magic whose body is not for us."""
    at = 0
    while True:
        blank = _BLANK.match(cell, at)
        assert blank is not None
        top = _CELL_MAGIC.match(cell, blank.end())
        if top is None:
            break
        name = top["name"]
        yield top.start(), top.end(), None if name.lower() in _NOT_IN_PLACE else name
        at = top.end()
        following = _LINE_END.match(cell, at)
        if following is None:
            return
        at = following.end()
    stripped = cell.strip()
    if at == 0 and _AUTOMAGIC.fullmatch(stripped):
        start = cell.index(stripped)
        yield start, start + len(stripped), re.split(r"\s", stripped, maxsplit=1)[0]
        return
    while at < len(cell):
        at = yield from _statement(cell, at)


def _statement(cell: str, at: int) -> Generator[tuple[int, int, str | None], None, int]:
    """The magic of the statement that begins at ``at``, if it has one; returns where the next statement begins."""
    indent = _INDENT.match(cell, at)
    assert indent is not None
    start = at = indent.end()
    if cell[at : at + 1] and cell[at] in "%!?,;/":
        end = _end_of_line(cell, at)
        yield start, end, _name(cell[start:end])
        return _behind(cell, end)
    depth = 0
    while at < len(cell):
        token = _TOKEN.match(cell, at)
        assert token is not None
        kind = token.lastgroup
        at = token.end()
        if kind in ("triple", "quote"):
            body = _ENDS[token[0]].match(cell, at)
            assert body is not None
            at = body.end()
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "assign" and not depth:
            end = _end_of_line(cell, at)
            yield at, end, _name(cell[at:end])
            return _behind(cell, end)
        elif kind == "help" and not depth:
            end = token.end()
            yield start, end, "?"
            return _behind(cell, _end_of_line(cell, end))
        elif kind == "end" and not depth:
            return at
    return at


def _end_of_line(cell: str, at: int) -> int:
    """Where the line ends, and those that it goes on in by a backslash."""
    rest = _REST.match(cell, at)
    assert rest is not None
    return at + len(rest[0].rstrip(" \t\f"))


def _behind(cell: str, at: int) -> int:
    while at < len(cell) and cell[at] in " \t\f":
        at += 1
    ended = _LINE_END.match(cell, at)
    return ended.end() if ended else len(cell) if at >= len(cell) else at


def _name(text: str) -> str:
    if text[0] != "%":
        return text[0]
    found = re.match(r"%+\s*([\w.]+)", text)
    return found[1] if found else "%"
