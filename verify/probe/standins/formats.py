"""Random elements, and the bytes of a file of them; the standard library alone: nothing else is imported yet."""

from __future__ import annotations

import array
import io
import random
import statistics
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

#: Name in a ``.npy`` header, and in :mod:`array` or :mod:`struct`.
_CODES = {
    "bool": ("|b1", "B"),
    "uint8": ("|u1", "B"),
    "int8": ("|i1", "b"),
    "int16": ("<i2", "h"),
    "int32": ("<i4", "i"),
    "int64": ("<i8", "q"),
    "float16": ("<f2", "e"),
    "float32": ("<f4", "f"),
    "float64": ("<f8", "d"),
}
_LEVELS = 4096
_BLOCK = 1 << 20
_WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "it",
    "was",
    "for",
    "on",
    "as",
    "with",
    "his",
    "they",
    "at",
    "be",
    "this",
)
#: Without a bound: class indices that any classifier has, and the values of a picture.
_BELOW = {"bool": 2, "uint8": 256}


def elements(dtype: str, count: int, below: Any, seed: str) -> bytes:
    """``count`` random elements as little-endian bytes; see ``verify.running.standins.parse`` for their distribution.

    After a million they repeat, so that a large file takes little longer than a small one.
    """
    size = struct.calcsize("<" + _CODES[dtype][1]) if dtype in _CODES else 1
    block = _block(dtype, min(count, _BLOCK), below, random.Random(seed))
    return (block * (count // _BLOCK + 1))[: count * size]


def _block(dtype: str, count: int, below: Any, stream: random.Random) -> bytes:
    if dtype == "text":
        return _text(stream, count)
    if dtype.startswith("float"):
        levels = _normal() if below is None else [below * level / _LEVELS for level in range(_LEVELS)]
        values: Sequence[Any] = [levels[draw % _LEVELS] for draw in _draws(stream, count, "H")]
    else:
        limit = _BELOW.get(dtype, 2) if below is None else below
        if limit == 256 and dtype == "uint8":
            return _random_bytes(stream, count)
        values = [draw % limit for draw in _draws(stream, count, "Q")]
    return struct.pack(f"<{count}{_CODES[dtype][1]}", *values)


def _normal() -> list[float]:
    # A quantile for each level: drawing one is drawing from a normal distribution, at the cost of a look-up.
    quantile = statistics.NormalDist().inv_cdf
    return [quantile((level + 0.5) / _LEVELS) for level in range(_LEVELS)]


def _draws(stream: random.Random, count: int, code: str) -> Sequence[int]:
    draws = array.array(code)
    draws.frombytes(_random_bytes(stream, count * draws.itemsize))
    return draws


def _random_bytes(stream: random.Random, count: int) -> bytes:
    return stream.getrandbits(8 * count).to_bytes(count, "little")


def _text(stream: random.Random, count: int) -> bytes:
    lines: list[str] = []
    length = 0
    while length < count:
        line = " ".join(stream.choice(_WORDS) for _ in range(12))
        lines.append(line)
        length += len(line) + 1
    return ("\n".join(lines) + "\n").encode()[:count]


def npy(dtype: str, shape: Sequence[int], data: bytes) -> bytes:
    """A ``.npy`` file, version 1.0 of the format (numpy.lib.format)."""
    size = f"({shape[0]},)" if len(shape) == 1 else "({})".format(", ".join(map(str, shape)))
    header = f"{{'descr': '{_CODES[dtype][0]}', 'fortran_order': False, 'shape': {size}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1") + data


def npz(arrays: Sequence[tuple[str, str, Sequence[int], bytes]]) -> bytes:
    """A ``.npz`` file of (name, dtype, shape, elements)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, dtype, shape, data in arrays:
            archive.writestr(zipfile.ZipInfo(name + ".npy"), npy(dtype, shape, data))
    return file.getvalue()


def rows(dtype: str, shape: Sequence[int], data: bytes, separator: str) -> bytes:
    """A line a row, without a header: a reader that expects one takes the first row for it and goes on."""
    values = struct.unpack("<{}{}".format(len(data) // struct.calcsize("<" + _CODES[dtype][1]), _CODES[dtype][1]), data)
    width = shape[1] if len(shape) > 1 else 1
    spell = "{:.6g}".format if dtype.startswith("float") else str
    lines = (separator.join(map(spell, values[start : start + width])) for start in range(0, len(values), width))
    return ("\n".join(lines) + "\n").encode()


def png(height: int, width: int, channels: int, data: bytes) -> bytes:
    """A PNG (RFC 2083) of 8 bits a channel; decoders go by the content, so that it may be called ``.jpg``."""
    stride = width * channels
    scanlines = b"".join(b"\x00" + data[start : start + stride] for start in range(0, height * stride, stride))
    kind = {1: 0, 3: 2, 4: 6}[channels]
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(scanlines, 1)),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body
