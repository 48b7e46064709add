"""Jupyter notebooks as one Python program: the code cells in order, and the way back into the file.

Above each cell's part of the program stands a comment, so that every text that an edit makes of the program tells by
itself where a cell begins. Of a file that changes, only the ``source`` of the changed cells is written anew; where it
stands is known from reading, and all around it stays byte for byte. The format is nbformat's, versions 3 and 4:
https://nbformat.readthedocs.io/en/latest/format_description.html.
"""

from __future__ import annotations

import bisect
import codecs
import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from codemods.source import magics
from codemods.source.cellsource import SourceStyle
from codemods.source.errors import Unencodable, Unparsable, Unreadable
from codemods.source.jsontext import Cursor
from codemods.source.syntax import parse
from codemods.terms.findings import ShownLine, Skipped

SUFFIX = ".ipynb"
SKIPPED_BY_TAG = "skip-execution"
"""The tag of cells that nbclient, and what builds on it, does not run."""

_PYTHON = frozenset({"python", "python2", "python3", "ipython"})
_HEADER = re.compile(r"^# %% \[codemod, cell (\d+)\]\n([^\r\n]*)\n", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\r|\n")
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A code cell: its ``number`` among all cells from 1, its ``text``, and from where to where its source stands in
    the JSON. ``program`` is its Python, None where there is none, or none that can be read."""

    number: int
    text: str
    start: int
    end: int
    program: magics.Program | None


class Splice(NamedTuple):
    """From ``start`` to ``end`` the text of a file becomes ``new``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Notebook:
    """A notebook as it was read: its code ``cells`` in order, the ``text`` of the program that they are, and the cells
    that are ``skipped`` because they are no Python. ``stem`` is what the names of all stand-ins begin with."""

    path: str
    cells: tuple[Cell, ...]
    text: str = field(repr=False)
    skipped: tuple[Skipped, ...]
    stem: str

    def sources(self, text: str) -> dict[int, str]:
        """What the cells of the program hold, by number, once it is ``text``.

        Raises `Unencodable` where these cells cannot be that: a border was moved, or a magic taken apart.
        """
        known = {cell.number: cell for cell in self.cells if cell.program is not None}
        if text == self.text:
            return {number: cell.text for number, cell in known.items()}
        headers = list(_HEADER.finditer(text))
        if [int(header[1]) for header in headers] != list(known) or (headers and headers[0].start()):
            raise Unencodable(self.path, 0, "the edit moves the border of a cell")
        found: dict[int, str] = {}
        for index, header in enumerate(headers):
            cell = known[int(header[1])]
            body = text[header.end() : headers[index + 1].start() if index + 1 < len(headers) else len(text)]
            found[cell.number] = self._source(cell, header[2], body)
        return found

    def _source(self, cell: Cell, header: str, body: str) -> str:
        assert cell.program is not None
        if not _ended(cell.text):
            body = re.sub(r"(?:\r\n|\r|\n)\Z", "", body)
        if header == cell.program.header and body == cell.program.text:
            return cell.text
        source = magics.original(body, cell.program)
        again = None if source is None else magics.program(source, f"{self.stem}{cell.number}_")
        if source is None or again is None or (again.text, again.header) != (body, header):
            raise Unencodable(self.path, 0, f"the edit takes a magic of cell {cell.number} apart")
        return source

    def changes(self, old: str, new: str) -> list[tuple[int, str, str]]:
        """The cells that differ between two texts of the program: number, source before and after."""
        before, after = self.sources(old), self.sources(new)
        return [(number, before[number], after[number]) for number in before if before[number] != after[number]]

    def lines(self, text: str) -> list[str]:
        """The lines of the program ``text`` as they stand in the cells, or where that cannot be told as they are."""
        lines = text.split("\n")
        try:
            sources = self.sources(text)
        except Unencodable:
            return lines
        starts, numbers = _borders(text)
        for start, number in zip(starts, numbers, strict=True):
            own = sources[number].removesuffix("\n").split("\n")
            if [*self.cell_lines(text, start)] == [*range(start + 2, start + 2 + len(own))]:
                lines[start + 1 : start + 1 + len(own)] = own
        return lines

    @staticmethod
    def place(text: str, line: int) -> ShownLine:
        """The cell, and the line in it, of line ``line`` of a program ``text``."""
        starts, numbers = _borders(text)
        index = max(0, bisect.bisect_right(starts, line) - 1)
        if not starts:
            return ShownLine(None, line)
        return ShownLine(numbers[index], max(1, line - starts[index] - 1))

    @staticmethod
    def line_of(text: str, place: ShownLine) -> int:
        """The line of a program ``text`` at which ``place`` is; 0 where there is no such cell."""
        starts, numbers = _borders(text)
        return starts[numbers.index(place.cell)] + 1 + place.line if place.cell in numbers else 0

    @staticmethod
    def cell_lines(text: str, line: int) -> range:
        """The lines of a program ``text`` that are the code of the cell in which line ``line`` stands.

        What is put above the code to tell the cell is not among them, though it belongs to the cell too.
        """
        starts, _ = _borders(text)
        last = len(_LINE_END.findall(text)) + (not _ended(text))
        index = bisect.bisect_right(starts, line)
        if not index:
            return range(1, last + 1)
        return range(starts[index - 1] + 2, starts[index] if index < len(starts) else last + 1)

    def spelled(self, words: str) -> str:
        """A sentence about the program with the magics themselves where it names what stands for them."""
        if self.stem not in words:
            return words
        for cell in self.cells:
            for magic in cell.program.magics if cell.program is not None else ():
                if magic.stand_in:
                    first = magic.text.partition("\n")[0].strip()
                    shown = first.replace("\\", r"\\")
                    words = re.sub(rf"{magic.stand_in}(?:\([\w,\s]*\))?", shown, words)
        return words

    def encode(self, text: str, data: bytes) -> bytes:
        """The bytes of the file once its program is ``text``; ``data`` are those that were read.

        Raises `Unencodable` as `sources` does.
        """
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        content, splices = self.splices(text, data)
        parts: list[str] = []
        at = 0
        for start, end, spelled in splices:
            parts += (content[at:start], spelled)
            at = end
        return mark + "".join([*parts, content[at:]]).encode("utf-8") if splices else data

    def splices(self, text: str, data: bytes) -> tuple[str, list[Splice]]:
        """What is written anew in the file once its program is ``text``, and the file's own text without its mark, in
        which that counts. Raises as `encode` does."""
        changed = {number: source for number, _, source in self.changes(self.text, text)}
        if not changed:
            return "", []
        content = data.decode("utf-8-sig")
        style = SourceStyle(content, [cell.start for cell in self.cells])
        splices: list[Splice] = []
        for cell in (cell for cell in self.cells if cell.number in changed):
            spelled = style.spell(cell.start, cell.end, cell.text, changed[cell.number])
            written = json.loads(spelled, strict=False)
            if (written if isinstance(written, str) else "".join(written)) != changed[cell.number]:
                raise Unencodable(self.path, 0, f"cell {cell.number} cannot be written as the file spells it")
            splices.append(Splice(cell.start, cell.end, spelled))
        return content, splices


@functools.lru_cache(maxsize=16)
def _borders(text: str) -> tuple[list[int], list[int]]:
    """The lines of the comments above the cells, and the numbers of these cells."""
    starts: list[int] = []
    numbers: list[int] = []
    line, at = 1, 0
    for header in _HEADER.finditer(text):
        line += len(_LINE_END.findall(text, at, header.start()))
        at = header.start()
        starts.append(line)
        numbers.append(int(header[1]))
    return starts, numbers


def read_notebook(data: bytes, path: str) -> Notebook:
    """The notebook that ``data`` is; ``path`` is its name for people.

    Raises `Unreadable` with line and reason for what is no notebook, and for one whose language is not Python.
    """
    body = data[len(codecs.BOM_UTF8) :] if data.startswith(codecs.BOM_UTF8) else data
    try:
        content = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + body.count(b"\n", 0, error.start)
        raise Unreadable(path, line, f"byte 0x{body[error.start]:02x} is not utf-8") from None
    try:
        whole = _Whole(content)
    except json.JSONDecodeError as error:
        raise Unreadable(path, error.lineno, _why_broken(content, error)) from None
    except RecursionError:
        raise Unreadable(path, 0, "nested too deeply for Python's own parser") from None
    language = whole.language()
    if whole.cells is None:
        raise Unreadable(path, 1, "not a notebook: it has no cells")
    if not isinstance(whole.version, int) or whole.version < 3:
        raise Unreadable(path, 1, f"notebook format {whole.version!r}; 3 and 4 are understood")
    if language and language.lower() not in _PYTHON:
        raise Unreadable(path, 0, f"a notebook in {language}, not Python")
    return _assembled(path, whole.cells)


class _Raw(NamedTuple):
    """A code cell as it stands in the JSON; ``text`` is None for a source that is no text."""

    number: int
    text: str | None
    start: int
    end: int


class _Whole:
    """What the JSON of a notebook says; of outputs and all else nothing is kept. Raises json.JSONDecodeError."""

    def __init__(self, content: str) -> None:
        self.version: Any = None
        self.metadata: Any = None
        self.cells: list[_Raw] | None = None
        self._count = 0
        self._languages: set[str] = set()
        cursor = Cursor(content)
        if not cursor.is_at("{"):
            cursor.value()
            cursor.require_end()
            return
        for key in cursor.members():
            if key in ("cells", "worksheets") and cursor.is_at("["):
                self.cells, self._count = [], 0
                for _ in cursor.items():
                    self._cell(cursor) if key == "cells" else self._worksheet(cursor)
            elif key in ("nbformat", "metadata"):
                found = cursor.value()
                self.version, self.metadata = (found, self.metadata) if key == "nbformat" else (self.version, found)
            else:
                cursor.value()
        cursor.require_end()

    def _worksheet(self, cursor: Cursor) -> None:
        if not cursor.is_at("{"):
            cursor.value()
            return
        for key in cursor.members():
            if key == "cells" and cursor.is_at("["):
                for _ in cursor.items():
                    self._cell(cursor)
            else:
                cursor.value()

    def _cell(self, cursor: Cursor) -> None:
        self._count += 1
        if not cursor.is_at("{"):
            cursor.value()
            return
        told: dict[str, Any] = {}
        start = end = 0
        for key in cursor.members():
            at = cursor.at
            found = cursor.value()
            if key in ("source", "input"):
                start, end = at, cursor.at
                told["source"] = found
            elif key in ("cell_type", "metadata", "language"):
                told[key] = found
        if told.get("cell_type") != "code" or not end or _tagged(told.get("metadata")):
            return
        if isinstance(told.get("language"), str):
            self._languages.add(told["language"])
        source = told["source"]
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        assert self.cells is not None
        self.cells.append(_Raw(self._count, source if isinstance(source, str) else None, start, end))

    def language(self) -> str | None:
        """The language of the kernel, None where it is not told."""
        about = self.metadata if isinstance(self.metadata, Mapping) else {}
        for part, name in (("language_info", "name"), ("kernelspec", "language")):
            inner = about.get(part)
            if isinstance(inner, Mapping) and isinstance(inner.get(name), str) and inner[name]:
                return str(inner[name])
        return next(iter(sorted(self._languages)), None) if len(self._languages) == 1 else None


def _tagged(metadata: object) -> bool:
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    return isinstance(tags, list) and SKIPPED_BY_TAG in tags


def _why_broken(content: str, error: json.JSONDecodeError) -> str:
    if not content.strip():
        return "an empty file, not a notebook"
    if content.startswith("version https://git-lfs"):
        return "Git LFS pointer, not the file itself"
    conflict = _CONFLICT.search(content)
    if conflict and content.count("\n", 0, conflict.start()) <= error.lineno:
        return "merge conflict marker"
    return f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} (column {error.colno})"


def _assembled(path: str, raws: Sequence[_Raw]) -> Notebook:
    everything = "\n".join(raw.text for raw in raws if raw.text)
    underscores = "_"
    while re.search(rf"{magics.PREFIX}{underscores}\d", everything):
        underscores += "_"
    stem = magics.PREFIX + underscores
    cells: list[Cell] = []
    skipped: list[Skipped] = []
    parts: list[str] = []
    for raw in raws:
        program, problem = _read_cell(path, raw, stem)
        if problem is not None:
            skipped.append(problem)
        cells.append(Cell(raw.number, raw.text or "", raw.start, raw.end, program))
        if program is not None:
            parts.append(f"# %% [codemod, cell {raw.number}]\n{program.header}\n{program.text}")
            if not _ended(cells[-1].text):
                parts.append("\n")
    return Notebook(path, tuple(cells), "".join(parts), tuple(skipped), stem)


def _read_cell(path: str, raw: _Raw, stem: str) -> tuple[magics.Program | None, Skipped | None]:
    if raw.text is None:
        return None, Skipped(path, 1, "its source is not text", raw.number)
    if not raw.text.strip():
        return None, None
    program = magics.program(raw.text, f"{stem}{raw.number}_")
    if program is None:
        return None, None
    if _HEADER.search(f"{raw.text}\n"):
        return None, Skipped(path, 1, "it holds a comment by which codemod tells cells apart", raw.number)
    if magics.original(program.text, program) != raw.text:
        return None, Skipped(path, 1, "its magics cannot be separated from its Python", raw.number)
    try:
        parse(f"{program.header}\n{program.text}\n", path)
    except Unparsable as error:
        if not magics.in_place(program):
            return None, None
        return None, Skipped(path, max(error.line - 1, 0), error.reason, raw.number)
    return program, None


def _ended(text: str) -> bool:
    return text.endswith(("\n", "\r"))
