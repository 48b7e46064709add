"""TOML files: what they hold, and what is wrong with those that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.toml import NotToml, parse_toml, read_toml


def test_a_byte_order_mark_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfkey = 1\r\n")
    assert read_toml(tmp_path / "a.toml") == {"key": 1}
    assert parse_toml("[a]\nb = [1, 2]") == {"a": {"b": [1, 2]}}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"key = ", "not valid TOML"),
        (b"a = '\xff'", "byte 0xff is not UTF-8"),
        (b"a = " + b"[" * 99999, "not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(tmp_path: Path, data: bytes, why: str) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(data)
    with pytest.raises(NotToml, match=r"a\.toml: ") as raised:
        read_toml(file)
    assert why in str(raised.value)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotToml, match=r"none\.toml: no such file"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(NotToml, match="is a folder"):
        read_toml(tmp_path)
