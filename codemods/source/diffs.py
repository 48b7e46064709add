"""Unified diffs: bytes for ``git apply`` and ``patch -p1``, colours for people.

A diff that a program takes must hold the bytes of the file: its own encoding, its BOM, its line ends. Lines end at
``\\n`` and nowhere else, as git and patch see it; a lone carriage return, a form feed or a Unicode line separator is
part of a line, whatever :meth:`str.splitlines` thinks.
"""

from __future__ import annotations

import bisect
import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, AnyStr, NamedTuple

_NO_NEWLINE = b"\\ No newline at end of file\n"
_NAME_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_TOKEN = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")


_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_CYAN = "\x1b[36m"
_COLOUR = {"-": "\x1b[31m", "+": "\x1b[32m"}
_MARK_ON, _MARK_OFF = "\x1b[7m", "\x1b[27m"


class Piece(NamedTuple):
    """A part of a line; ``marked`` where it differs from the other side."""

    text: str
    marked: bool


#: A line.
Pieces = tuple[Piece, ...]


class Block(NamedTuple):
    """``old[old_start:old_end]`` became ``new[new_start:new_end]``; ``same`` where they are equal."""

    same: bool
    old_start: int
    old_end: int
    new_start: int
    new_end: int


def blocks(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> list[Block]:
    """Return how the lines ``old`` became the lines ``new``: equal and changed blocks in turn, covering both.

    Lines that stand once on either side hold the rest in place (Bram Cohen's patience diff). That reads better than the
    longest match, and a file with a thousand changed lines does not take minutes.
    """
    found: list[Block] = []
    old_end = new_end = 0
    for old_start, new_start, size in [*_matches(old, new), (len(old), len(new), 0)]:
        if old_start > old_end or new_start > new_end:
            found.append(Block(False, old_end, old_start, new_end, new_start))
        old_end, new_end = old_start + size, new_start + size
        if size and found and found[-1].same:
            found[-1] = found[-1]._replace(old_end=old_end, new_end=new_end)
        elif size:
            found.append(Block(True, old_start, old_end, new_start, new_end))
    return found


def _matches(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> list[tuple[int, int, int]]:
    """Return the stretches that both sides share, in order: where they start in ``old`` and ``new``, and their size."""
    matches: list[tuple[int, int, int]] = []
    gaps = [(0, len(old), 0, len(new))]
    while gaps:
        old_start, old_end, new_start, new_end = gaps.pop()
        head, tail = shared_ends(old[old_start:old_end], new[new_start:new_end])
        matches += [(old_start, new_start, head), (old_end - tail, new_end - tail, tail)]
        old_start, old_end, new_start, new_end = old_start + head, old_end - tail, new_start + head, new_end - tail
        if old_start == old_end or new_start == new_end:
            continue
        anchors = _anchors(old[old_start:old_end], new[new_start:new_end])
        if not anchors:
            matcher = difflib.SequenceMatcher(None, old[old_start:old_end], new[new_start:new_end])
            matches += [(old_start + i, new_start + j, size) for i, j, size in matcher.get_matching_blocks()]
            continue
        last_old, last_new = old_start, new_start
        for i, j in anchors:
            gaps.append((last_old, old_start + i, last_new, new_start + j))
            last_old, last_new = old_start + i, new_start + j
        gaps.append((last_old, old_end, last_new, new_end))
    return sorted(match for match in matches if match[2])


def shared_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """Return how much two sequences share from their begin on, and of what is left from their end on."""
    shortest = min(len(old), len(new))
    head = tail = 0
    while head < shortest and old[head] == new[head]:
        head += 1
    while tail < shortest - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _anchors(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> list[tuple[int, int]]:
    """Return the places of lines that stand once on either side, as many as keep their order on both."""
    places = {line: place for place, line in enumerate(new)}
    in_old, in_new = Counter(old), Counter(new)
    ends: list[int] = []  # of the best run of each length, its last place in new
    runs: list[tuple[int, int, int]] = []  # a place in old, the one in new, and which run it goes on
    last: list[int] = []  # of the best run of each length, its last entry in runs
    for place, line in enumerate(old):
        if in_old[line] != 1 or in_new[line] != 1:
            continue
        length = bisect.bisect_left(ends, places[line])
        runs.append((place, places[line], last[length - 1] if length else -1))
        ends[length : length + 1] = [places[line]]
        last[length : length + 1] = [len(runs) - 1]
    anchors = []
    entry = last[-1] if last else -1
    while entry >= 0:
        place, other, entry = runs[entry]
        anchors.append((place, other))
    return anchors[::-1]


class _Changes(difflib.SequenceMatcher[str]):
    """Blocks that were found already, for difflib to make hunks of."""

    def __init__(self, found: Sequence[Block]) -> None:
        super().__init__()
        self._found = found

    def get_opcodes(self) -> list[Any]:
        return [("equal" if block.same else "replace", *block[1:]) for block in self._found]


def _hunks(found: Sequence[Block], context: int) -> Iterator[list[Block]]:
    for hunk in _Changes(found).get_grouped_opcodes(context):
        yield [Block(tag == "equal", *places) for tag, *places in hunk]


def _range(start: int, end: int) -> str:
    size = end - start
    # By the format, an empty range names the line before it.
    return str(start + 1) if size == 1 else f"{start + 1 if size else start},{size}"


def _hunk_header(hunk: Sequence[Block]) -> str:
    old = _range(hunk[0].old_start, hunk[-1].old_end)
    new = _range(hunk[0].new_start, hunk[-1].new_end)
    return f"@@ -{old} +{new} @@"


def header_name(side: str, path: str) -> bytes:
    """Return ``path`` as a ``---`` or ``+++`` line names it, under ``side`` (``a`` or ``b``).

    A name with control characters, quotes or backslashes is quoted as git quotes it; one with blanks is ended by a tab,
    because patch would end it at the first blank.
    """
    name = f"{side}/{path.lstrip('/')}"
    raw = name.encode("utf-8", "surrogateescape")
    if any(byte < 32 or byte in (34, 92, 127) for byte in raw):
        quoted = "".join(_NAME_ESCAPES.get(byte, chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in raw)
        return f'"{quoted}"'.encode()
    return raw + (b"\t" if b" " in raw else b"")


def unified(path: str, old: bytes, new: bytes, *, context: int = 3) -> bytes:
    """Return the diff of one file, from its bytes ``old`` to its bytes ``new``; empty where they are equal.

    ``path`` is relative to the folder in which the diff will be applied, with ``/``.
    """
    if old == new:
        return b""
    old_lines, new_lines = lines_of(old), lines_of(new)
    out = [b"--- " + header_name("a", path) + b"\n", b"+++ " + header_name("b", path) + b"\n"]
    for hunk in _hunks(blocks(old_lines, new_lines), context):
        out.append(_hunk_header(hunk).encode() + b"\n")
        for block in hunk:
            for sign, lines in _signed(block, old_lines, new_lines):
                for line in lines:
                    out.append(sign.encode() + line)
                    if not line.endswith(b"\n"):
                        out.append(b"\n" + _NO_NEWLINE)
    return b"".join(out)


def unified_text(changes: Iterable[tuple[str, str, str]]) -> str:
    """Return the diff of texts for people to read: of each change its name and the text before and after.

    :meth:`codemods.source.files.SourceFile.shown` tells a change of a file as such entries.
    """
    found = (unified(name, *(text.encode("utf-8", "surrogatepass") for text in texts)) for name, *texts in changes)
    return b"".join(found).decode("utf-8", "replace")


def coloured(path: str, old: str, new: str, *, context: int = 3) -> str:
    """Return the same diff of two texts for a terminal: colours, and the changed words of changed lines marked.

    Control characters of the source are shown in caret notation, so that no file can drive the terminal.
    """
    if old == new:
        return ""
    old_lines, new_lines = lines_of(old), lines_of(new)
    shown = printable(path)
    out = [f"{_BOLD}--- a/{shown}{_RESET}", f"{_BOLD}+++ b/{shown}{_RESET}"]
    for hunk in _hunks(blocks(old_lines, new_lines), context):
        out.append(_CYAN + _hunk_header(hunk) + _RESET)
        for block in hunk:
            if block.same:
                out.extend(" " + printable(line.rstrip("\r\n")) for line in old_lines[block.old_start : block.old_end])
                continue
            removed = old_lines[block.old_start : block.old_end]
            added = new_lines[block.new_start : block.new_end]
            for sign, raw, lines in zip("-+", (removed, added), mark_words(removed, added), strict=True):
                out.extend(f"{_COLOUR[sign]}{sign}{line}{_RESET}" for line in lines)
                if raw and not raw[-1].endswith("\n"):
                    out.append(_NO_NEWLINE.decode().rstrip())
    return "\n".join(out) + "\n"


def mark_words(removed: Sequence[str], added: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return both sides of a change for a terminal: see :func:`changed_words`, the marked pieces in reverse video."""
    old, new = changed_words(removed, added)
    return [_reversed(line) for line in old], [_reversed(line) for line in new]


def changed_words(removed: Sequence[str], added: Sequence[str]) -> tuple[list[Pieces], list[Pieces]]:
    """Return both sides of a change, a line each without its end, the words that differ between them marked.

    A line that has nothing in common with the other side is left without marks: there the sign says it all. Control
    characters are shown as :func:`printable` shows them.
    """
    plain = ([printable(line.rstrip("\r\n")) for line in removed], [printable(line.rstrip("\r\n")) for line in added])
    unmarked = ([_unmarked(line) for line in plain[0]], [_unmarked(line) for line in plain[1]])
    if not removed or not added:
        return unmarked
    from diff_match_patch import diff_match_patch

    numbers: dict[str, str] = {}
    before, after = (as_characters("\n".join(lines), numbers) for lines in plain)
    if len(numbers) > 0xD000:
        return unmarked
    words = {character: word for word, character in numbers.items()}
    matcher = diff_match_patch()
    differences = matcher.diff_main(before, after, False)
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for operation, characters in differences:
        for character in characters:
            if operation <= 0:
                sides[0].append(Piece(words[character], operation != 0))
            if operation >= 0:
                sides[1].append(Piece(words[character], operation != 0))
    return _joined(sides[0]), _joined(sides[1])


def _unmarked(line: str) -> Pieces:
    return (Piece(line, False),) if line else ()


def _reversed(line: Pieces) -> str:
    return "".join(f"{_MARK_ON}{piece.text}{_MARK_OFF}" if piece.marked else piece.text for piece in line)


def as_characters(text: str, numbers: dict[str, str]) -> str:
    """Return ``text`` with a character a word, those of ``numbers`` and new ones.

    diff-match-patch compares characters: so it compares words.
    """
    return "".join(numbers.setdefault(word, chr(0x100 + len(numbers))) for word in _TOKEN.findall(text))


def _joined(words: Sequence[Piece]) -> list[Pieces]:
    lines: list[list[Piece]] = [[]]
    for word in words:
        if word.text == "\n":
            lines.append([])
        else:
            lines[-1].append(word)
    return [
        _unmarked("".join(word.text for word in line))
        if all(word.marked or word.text.isspace() for word in line)
        else tuple(
            Piece("".join(word.text for word in run), marked)
            for marked, run in itertools.groupby(line, key=lambda word: word.marked)
        )
        for line in lines
    ]


def _signed(block: Block, old: Sequence[AnyStr], new: Sequence[AnyStr]) -> list[tuple[str, Sequence[AnyStr]]]:
    if block.same:
        return [(" ", old[block.old_start : block.old_end])]
    return [("-", old[block.old_start : block.old_end]), ("+", new[block.new_start : block.new_end])]


def lines_of(text: AnyStr) -> list[AnyStr]:
    """Return the lines of ``text`` with their ends, as git counts them."""
    if isinstance(text, bytes):
        return [part for part in re.split(rb"(?<=\n)", text) if part]
    return [part for part in re.split(r"(?<=\n)", text) if part]


def printable(text: str) -> str:
    """Return ``text`` with control characters in caret notation, so that no file can drive a terminal.

    Characters that turn the direction of writing or cannot be seen are escaped: what is shown is what Python reads
    (CVE-2021-42574).
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def printable_lines(text: str) -> str:
    """The same of a text of many lines, which stay lines."""
    return "\n".join(map(printable, text.split("\n")))


def _shown(character: str) -> str:
    if character == "\t" or character.isprintable():
        return character
    code = ord(character)
    if code < 128:
        return f"^{chr(code ^ 64)}"
    if code <= 0xFF:
        return character if character == "\xa0" else f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:
        # A byte of a name that is no UTF-8.
        return f"\\x{code - 0xDC00:02x}"
    if character.isspace() and character not in "\u2028\u2029":
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
