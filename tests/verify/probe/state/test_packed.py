"""What packed files hold is compared, not the time in their headers."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from verify.probe.state.packed import begun, held

MOST = 1 << 22


def zipped(text: str, year: int, name: str = "a.txt") -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)
    return whole.getvalue()


SAME = [
    (gzip.compress(b"loss 1", mtime=1), gzip.compress(b"loss 1", mtime=2)),
    (gzip.compress(b"loss 1", 1, mtime=1), gzip.compress(b"loss 1", 9, mtime=1)),
    (zipped("loss 1", 1999), zipped("loss 1", 2024)),
    (b"", b""),
]
DIFFERENT = [
    (gzip.compress(b"loss 1", mtime=1), gzip.compress(b"loss 2", mtime=1)),
    (zipped("loss 1", 1999), zipped("loss 2", 1999)),
    (zipped("loss 1", 1999), zipped("loss 1", 1999, "b.txt")),
    (gzip.compress(b"loss 1", mtime=1)[:-9], gzip.compress(b"loss 1", mtime=2)[:-9]),
    (zipped("loss 1", 1999)[:-9], zipped("loss 1", 2000)[:-9]),
    (b"loss 1", b"loss 2"),
    (b"loss 1", gzip.compress(b"loss 2", mtime=1)),
    # more than may be unpacked: compared as it is
    (gzip.compress(bytes(2 * MOST), mtime=1), gzip.compress(bytes(2 * MOST), mtime=2)),
]


def contents(folder: Path, one: bytes, other: bytes) -> list[bytes]:
    found = []
    for name, raw in (("one", one), ("other", other)):
        (folder / name).write_bytes(raw)
        found.append(b"".join(held(str(folder / name), MOST)))
    return found


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(tmp_path: Path, one: bytes, other: bytes) -> None:
    mine, theirs = contents(tmp_path, one, other)
    assert mine == theirs


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(tmp_path: Path, one: bytes, other: bytes) -> None:
    mine, theirs = contents(tmp_path, one, other)
    assert mine != theirs


@pytest.mark.parametrize(
    ("raw", "first"),
    [
        (gzip.compress(b"loss 1", mtime=1), b"loss"),
        (b"loss 1", b"loss"),
        (gzip.compress(b"loss 1", mtime=1)[:12], None),
    ],
)
def test_the_beginning(tmp_path: Path, raw: bytes, first: bytes | None) -> None:
    (tmp_path / "a.csv.gz").write_bytes(raw)
    assert begun(str(tmp_path / "a.csv.gz"), 4) == (first if first is not None else raw[:4])
