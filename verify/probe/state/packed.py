"""What lies in packed files: their headers hold the time, so two runs never write the same bytes."""

from __future__ import annotations

import gzip
import itertools
import os
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, cast

_BLOCK = 1 << 20
_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What Python says of files that are cut off, locked, or packed in a way that it lacks."""


def begun(path: str, most: int) -> bytes:
    """The first ``most`` bytes of a file's contents, unpacked if they are gzipped."""
    try:
        with _opened(path) as file:
            return file.read(most)
    except _ERRORS:
        with open(path, "rb") as file:
            return file.read(most)


def held(path: str, most: int) -> Iterator[bytes]:
    """What a file holds, in blocks: of gzip what was packed, of a zip archive names and contents of its members.

    A file that cannot be unpacked, or to more than ``most`` bytes, is given as it is.
    """
    start = 0
    try:
        if _size(path, most) <= most:
            for block in _unpacked(path):
                start += 1
                yield block
            return
    except _ERRORS:
        pass
    with open(path, "rb") as file:
        yield b"as it is" if start else b""
        yield from _blocks(file)


def _size(path: str, most: int) -> int:
    """The size of a file's contents in bytes; more than ``most`` where counting stopped."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    if _by_gzip(path):
        with _opened(path) as file:
            return sum(len(block) for block in itertools.islice(_blocks(file), most // _BLOCK + 2))
    return os.path.getsize(path)


def _by_gzip(path: str) -> bool:
    """Whether a file begins as gzip's do (RFC 1952, 2.3.1)."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _opened(path: str) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if _by_gzip(path) else open(path, "rb")


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(_BLOCK), b"")


def _unpacked(path: str) -> Iterator[bytes]:
    if not zipfile.is_zipfile(path):
        with _opened(path) as file:
            yield from _blocks(file)
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            yield f"{member.filename} {member.file_size} ".encode("utf-8", "replace")
            with archive.open(member) as inner:
                yield from _blocks(inner)
