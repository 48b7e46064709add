"""Unified diffs read: git's, ``diff -u``'s and ours, as bytes, because they hold the bytes of files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from codemods.source.diffs import lines_of
from codemods.terms.errors import UserError

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)")
_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_NOTE = b"#codemod "


class PatchError(UserError):
    """A patch that cannot be used at all; the text says where and why."""


@dataclass(frozen=True)
class DiffHunk:
    """One ``@@`` of a diff: where it stood, from 1, and its lines with their ends, each with ``-``, ``+`` or a blank.

    ``number`` counts the hunks of the whole diff from 1; ``line`` is that of the ``@@`` in the diff.
    """

    number: int
    line: int
    old_start: int
    new_start: int
    body: tuple[tuple[str, bytes], ...]


@dataclass
class FileDiff:
    """What a diff says of one file: ``path`` as the old side names it, without ``a/``; the blob that git knew it as.

    ``obstacle`` says what is asked for that is no change of lines: creating, deleting, renaming, binary contents.
    """

    line: int
    path: str
    blob: str = ""
    obstacle: str = ""
    hunks: list[DiffHunk] = field(default_factory=list)


@dataclass
class Parsed:
    """A diff: its files, and the lines of ours between them (the number and the text of each)."""

    files: list[FileDiff]
    notes: list[tuple[int, bytes]]


def parse_diff(data: bytes) -> Parsed:
    """Read a unified diff; what stands between files is passed over, as git does.

    Raises :class:`PatchError` for a hunk that is cut off, one without a file, and names that cannot be told.
    """
    return _Reader(data).read()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._lines = lines_of(data)
        self._at = 0
        self._files: list[FileDiff] = []
        self._notes: list[tuple[int, bytes]] = []
        self._file: FileDiff | None = None
        self._named = False
        self._hunks = 0

    def read(self) -> Parsed:
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip(b"\r\n")
            if line.startswith(_NOTE):
                self._notes.append((self._at + 1, line[len(_NOTE) :]))
            elif line.startswith(b"diff --git "):
                self._begin(_git_name(line[11:]))
            elif line.startswith(b"--- ") and self._next_is(b"+++ "):
                self._header(line)
                continue
            elif line.startswith(b"@@ -"):
                self._hunk(line)
                continue
            elif self._file is not None and not self._named:
                self._extended(line)
            self._at += 1
        return Parsed([file for file in self._files if file.hunks or file.obstacle], self._notes)

    def _next_is(self, start: bytes) -> bool:
        return self._at + 1 < len(self._lines) and self._lines[self._at + 1].startswith(start)

    def _begin(self, path: str) -> FileDiff:
        self._file = FileDiff(self._at + 1, path)
        self._files.append(self._file)
        self._named = False
        return self._file

    def _header(self, line: bytes) -> None:
        number = self._at + 1
        old = _name(line[4:], number)
        new = _name(self._lines[self._at + 1].rstrip(b"\r\n")[4:], number + 1)
        file = self._file
        if file is None or self._named:
            file = self._begin("")
        self._named = True
        if old == new == "/dev/null":
            raise PatchError(f"line {number}: neither side of the diff names a file")
        if old == "/dev/null":
            file.obstacle = "creates the file"
        elif new == "/dev/null":
            file.obstacle = "deletes the file"
        if old.startswith("a/") and new.startswith("b/"):
            old, new = old[2:], new[2:]
        else:
            old = old.removeprefix("a/") if new == "/dev/null" else old
            new = new.removeprefix("b/") if old == "/dev/null" else new
        file.path = new if old == "/dev/null" else old
        if not file.obstacle and old != new and self._lines[file.line - 1].startswith(b"diff --git "):
            file.obstacle = f"renames the file to {new}"
        if not file.obstacle and old != new:
            # `diff -u train.py.orig train.py`: the new name is the one that stays.
            file.path = new
        self._at += 2

    def _extended(self, line: bytes) -> None:
        assert self._file is not None
        if line.startswith(b"index ") and b".." in line:
            blob = line[6:].partition(b"..")[0].decode("ascii", "replace")
            self._file.blob = blob if re.fullmatch("[0-9a-f]{7,64}", blob) else ""
        for start, obstacle in (
            (b"new file mode ", "creates the file"),
            (b"deleted file mode ", "deletes the file"),
            (b"rename from ", "renames the file"),
            (b"copy from ", "copies a file"),
            (b"old mode ", "changes the file's mode"),
            (b"Binary files ", "is about binary contents"),
            (b"GIT binary patch", "is about binary contents"),
        ):
            if line.startswith(start):
                self._file.obstacle = obstacle

    def _hunk(self, line: bytes) -> None:
        number = self._at + 1
        match = _HUNK.match(line)
        if match is None:
            raise PatchError(f"line {number}: not a hunk header: {line[:60].decode('utf-8', 'replace')}")
        if self._file is None or not self._named:
            raise PatchError(f"line {number}: a hunk without a file: no --- and +++ lines before it")
        old_left, new_left = (int(match[group]) if match[group] is not None else 1 for group in (2, 4))
        old_start, new_start = int(match[1]) + (old_left == 0), int(match[3]) + (new_left == 0)
        body: list[tuple[str, bytes]] = []
        self._at += 1
        while old_left or new_left:
            if self._at >= len(self._lines):
                raise PatchError(f"line {number}: the hunk is cut off: {old_left or new_left} lines are missing")
            text = self._lines[self._at]
            sign = text[:1].decode("latin-1") if text.strip(b"\r\n") else " "
            rest = text[1:] if text.strip(b"\r\n") else text
            if sign == "\\":
                self._no_newline(body)
                self._at += 1
                continue
            if sign not in " +-":
                raise PatchError(
                    f"line {self._at + 1}: not a line of a hunk, and that of line {number} is not complete"
                )
            old_left -= sign != "+"
            new_left -= sign != "-"
            if old_left < 0 or new_left < 0:
                raise PatchError(f"line {number}: the hunk has more lines than its header says")
            body.append((sign, rest if rest.endswith(b"\n") else rest + b"\n"))
            self._at += 1
        if self._at < len(self._lines) and self._lines[self._at].startswith(b"\\"):
            self._no_newline(body)
            self._at += 1
        self._hunks += 1
        self._file.hunks.append(DiffHunk(self._hunks, number, old_start, new_start, tuple(body)))

    def _no_newline(self, body: list[tuple[str, bytes]]) -> None:
        if not body:
            raise PatchError(f"line {self._at + 1}: no line stands before this remark")
        sign, text = body[-1]
        body[-1] = (sign, text.removesuffix(b"\n").removesuffix(b"\r"))


def _git_name(rest: bytes) -> str:
    """The path in ``a/x b/x``, where no other line may name it; empty where it cannot be told."""
    if rest.startswith(b'"'):
        return _name(rest[: rest.index(b'"', 1) + 1] if b'"' in rest[1:] else rest, 0).removeprefix("a/")
    half = (len(rest) - 1) // 2
    first, second = rest[:half], rest[half + 1 :]
    return first[2:].decode("utf-8", "surrogateescape") if first[2:] == second[2:] else ""


def _name(raw: bytes, line: int) -> str:
    if raw.startswith(b'"'):
        end = re.match(rb'"((?:[^"\\]|\\.)*)"', raw)
        if end is None:
            raise PatchError(f"line {line}: the quoted name has no end")
        raw = _ESCAPE.sub(_unescaped, end[1])
    else:
        # A tab ends the name: after it stands the time, or nothing, for names with blanks.
        raw = raw.partition(b"\t")[0]
    if not raw:
        raise PatchError(f"line {line}: no file is named")
    return raw.decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code in _ESCAPES:
        return bytes([_ESCAPES[code]])
    return bytes([int(code, 8) & 255]) if code.isdigit() else code
