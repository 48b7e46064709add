"""From bytes to text and back without losing one: encodings, byte order marks, line ends."""

from __future__ import annotations

import codecs
import os
import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.source.errors import ChangedSinceRead, Unencodable, Unreadable, os_reason
from codemods.terms.findings import ShownLine

if TYPE_CHECKING:
    from codemods.source.notebooks import Notebook, Splice

_LINE_END = re.compile(rb"\r\n?|\n")
_TWO_LINES = re.compile(rb"(?:[^\r\n]*(?:\r\n?|\n)?){2}")
_FSTRINGS = re.compile(rb"^[ \t\f]*#[^\r\n]*?coding[:=][ \t]*future[-_]fstrings\b", re.MULTILINE)
"""The cookie of the package future-fstrings: UTF-8, which its codec rewrites for Pythons without f-strings."""
_UTF16_OR_32 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
# O_NONBLOCK: should a pipe take the file's place between the look at it and the opening, we still do not wait for it.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class SourceFile:
    """One file as it was when read.

    ``path`` is for people (see `display_path`), ``absolute`` for the file system. ``text`` is decoded, its line ends as
    they stand, without the byte order mark that ``bom`` tells of. ``digest`` is that of the bytes read.
    """

    path: str
    absolute: Path
    text: str = field(repr=False)
    encoding: str
    bom: bool
    digest: str = field(repr=False)
    notebook: Notebook | None = field(default=None, repr=False, compare=False)
    """The cells, where the file is a notebook; ``text`` is the program that they are."""
    data: Held | None = field(default=None, repr=False, compare=False)
    """The bytes of a notebook, where they were needed."""

    def place(self, line: int) -> ShownLine:
        """Where line ``line`` of ``text`` stands in the file: in a notebook the cell and the line there."""
        return ShownLine(None, line) if self.notebook is None else self.notebook.place(self.text, line)

    def line(self, place: ShownLine) -> int:
        """The line of ``text`` that stands at ``place`` of the file; 0 where there is none."""
        return place.line if self.notebook is None else self.notebook.line_of(self.text, place)

    def together(self, line: int) -> range | None:
        """In a notebook the lines of ``text`` that are the code of the cell of line ``line``; None where all lines of
        the file belong together."""
        return None if self.notebook is None else self.notebook.cell_lines(self.text, line)

    def lines(self, text: str) -> list[str]:
        """The lines of ``text``, which end at ``\\n``, as they stand in the file: in a notebook with its magics."""
        return text.split("\n") if self.notebook is None else self.notebook.lines(text)

    def shown(self, old: str, new: str) -> list[tuple[str, str, str]]:
        """A change of the text from ``old`` to ``new``, as people are to see it: names and what stood and will stand
        there. Of a notebook it is an entry for each cell that changes, of any other file it is one."""
        if self.notebook is None:
            return [(self.path, old, new)]
        changes = self.notebook.changes(old, new)
        return [(f"{self.path}:cell {number}", before, after) for number, before, after in changes]

    def rewritten(self, text: str) -> SourceFile:
        """The same file once it holds ``text``, for the places of lines in it; it cannot be written again."""
        return replace(self, text=text, digest="")

    def encode(self, text: str) -> bytes:
        """The bytes of ``text`` in this file's encoding, with its byte order mark.

        Raises `Unencodable` with the line of the first character that the encoding lacks, and for a notebook where an
        edit goes across cells. Of a notebook the bytes are read again when they are needed for the first time: that
        raises `Unreadable` or `ChangedSinceRead`.
        """
        if self.notebook is not None:
            return self.notebook.encode(text, self._bytes())
        try:
            data = text.encode(self.encoding)
        except UnicodeError as error:
            if not isinstance(error, UnicodeEncodeError):
                raise Unencodable(
                    self.path, 0, f"cannot be written in its encoding, {self.encoding}: {error}"
                ) from None
            character = text[error.start]
            line = 1 + len(re.findall(r"\r\n?|\n", text[: error.start]))
            reason = f"{character!a} cannot be written in the file's encoding, {self.encoding}"
            raise Unencodable(self.path, line, reason) from None
        return codecs.BOM_UTF8 + data if self.bom else data

    def splices(self, text: str) -> tuple[str, list[Splice]]:
        """Of a notebook whose program becomes ``text``: the text of its file, and what changes in it.

        Of any other file nothing. Raises as :meth:`encode` does.
        """
        return self.notebook.splices(text, self._bytes()) if self.notebook is not None else ("", [])

    def _bytes(self) -> bytes:
        assert self.data is not None
        if self.data.content is None:
            found = read_bytes(self.absolute, self.path)
            if digest_of(found) != self.digest:
                raise ChangedSinceRead(self.path, 0, "changed since it was read; run again")
            self.data.content = found
        return self.data.content


class Held:
    """Bytes that are kept only where somebody needs them, and never sent to another process."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content

    def __getstate__(self) -> dict[str, None]:
        return {"content": None}


def digest_of(data: bytes) -> str:
    """A fingerprint of bytes: equal for equal bytes only."""
    import hashlib

    return hashlib.blake2b(data, digest_size=20, usedforsecurity=False).hexdigest()


def display_path(path: str | os.PathLike[str], cwd: str | os.PathLike[str] | None = None) -> str:
    """``path`` as shown to people: relative to ``cwd`` (the working directory) with ``/``, absolute where outside it.

    Links are not resolved, and nothing need exist.
    """
    base = os.path.abspath(cwd) if cwd is not None else os.getcwd()
    full = os.path.normpath(os.path.join(base, path))
    inside = base if base.endswith(os.sep) else base + os.sep
    shown = full[len(inside) :] if full.startswith(inside) else full
    return shown.replace(os.sep, "/")


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is something under that name, a broken link too; so it may be where we are not let look."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def read_bytes(path: str | os.PathLike[str], display: str) -> bytes:
    """The bytes of a regular file, links followed.

    Raises `Unreadable` under the name ``display`` where there is none, where we may not read it, and for everything
    that is no regular file: a pipe or a device is never opened.
    """
    try:
        _require_regular(os.stat(path).st_mode, display)
        descriptor = os.open(path, _OPEN_FLAGS)
        with open(descriptor, "rb") as file:
            _require_regular(os.fstat(descriptor).st_mode, display)
            return file.read()
    except FileNotFoundError:
        reason = "broken link" if os.path.islink(path) else "no such file"
        raise Unreadable(display, 0, reason) from None
    except OSError as error:
        raise Unreadable(display, 0, os_reason(error)) from None
    except ValueError:
        raise Unreadable(display, 0, "not a valid file name") from None
    except MemoryError:
        raise Unreadable(display, 0, "too large to fit in memory") from None


def read_source(path: str | os.PathLike[str], display: str | None = None) -> SourceFile:
    """Read and decode the file ``path``; ``display`` is its name for people, by default that of `display_path`.

    Raises `Unreadable` as `read_bytes` and `source_from_bytes` do.
    """
    shown = display_path(path) if display is None else display
    source = source_from_bytes(read_bytes(path, shown), shown, path)
    if source.data is not None:
        # Notebooks hold pictures: megabytes each, that only those need which are written.
        source.data.content = None
    return source


def source_from_bytes(data: bytes, display: str, path: str | os.PathLike[str] | None = None) -> SourceFile:
    """Decode ``data`` as Python would: a byte order mark, else a coding cookie in the first two lines, else UTF-8.

    ``path`` says where the bytes belong, for standard input the file that they stand for; by default ``display``.
    Raises `Unreadable` with line and reason for null bytes, for a cookie that names no encoding of text, and for bytes
    that are not in the encoding. A name that ends with .ipynb stands for a notebook, which is always UTF-8; see
    `codemods.source.notebooks.read_notebook` for what is raised there.
    """
    if data.startswith(_UTF16_OR_32):
        raise Unreadable(display, 1, "UTF-16 or UTF-32 text, which Python does not read")
    null = data.find(b"\0")
    if null >= 0:
        raise Unreadable(display, _line_of(data, null), "null byte: not a text file")
    absolute = Path(os.path.abspath(path if path is not None else display))
    if display.lower().endswith(".ipynb"):
        from codemods.source.notebooks import read_notebook

        notebook = read_notebook(data, display)
        bom = data.startswith(codecs.BOM_UTF8)
        return SourceFile(display, absolute, notebook.text, "utf-8", bom, digest_of(data), notebook, Held(data))
    encoding = _encoding_of(data, display)
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise _undecodable(body, error, display, encoding) from None
    except (ValueError, LookupError) as error:
        raise Unreadable(display, 1, f"not readable as {encoding}: {error}") from None
    return SourceFile(display, absolute, text, encoding, bom, digest_of(data))


def _require_regular(mode: int, display: str) -> None:
    if stat.S_ISDIR(mode):
        raise Unreadable(display, 0, "is a folder")
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"))
        kind = next((name for test, name in kinds if test(mode)), "a device")
        raise Unreadable(display, 0, f"not a regular file but {kind}")


def _encoding_of(data: bytes, display: str) -> str:
    import tokenize

    # The lines are cut here because `tokenize` knows no lone carriage return and would look for a cookie beyond it.
    head = _TWO_LINES.match(data)
    lines = iter(head.group().splitlines(keepends=True) if head else [])
    if head and _FSTRINGS.search(head.group()):
        return "utf-8"
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    except SyntaxError as error:
        body = data[len(codecs.BOM_UTF8) :] if data.startswith(codecs.BOM_UTF8) else data
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as wrong:
            if str(error).startswith("invalid or missing encoding"):
                raise _undecodable(body, wrong, display, "utf-8") from None
        second = b"coding" not in data.splitlines()[0]
        raise Unreadable(display, 2 if second else 1, f"{error.msg} in the coding cookie") from None
    # The mark is kept apart from the text; the codec with -sig would write one into files that had none.
    return "utf-8" if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig") else encoding


def _undecodable(body: bytes, error: UnicodeDecodeError, display: str, encoding: str) -> Unreadable:
    byte = body[error.start]
    return Unreadable(display, _line_of(body, error.start), f"byte 0x{byte:02x} is not {encoding}")


def _line_of(data: bytes, offset: int) -> int:
    return 1 + len(_LINE_END.findall(data, 0, offset))
