from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import pytest

from codemods.source.errors import Unencodable, Unreadable
from codemods.source.files import display_path, read_source, source_from_bytes
from codemods.terms.findings import Skipped

BOM = b"\xef\xbb\xbf"


def reason_of(data: bytes) -> tuple[int, str]:
    with pytest.raises(Unreadable) as caught:
        source_from_bytes(data, "a.py")
    assert caught.value.path == "a.py"
    return caught.value.line, caught.value.reason


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"x = 1", "utf-8", "x = 1"),
        ("x = 'ä'\n".encode(), "utf-8", "x = 'ä'\n"),
        (b"x = 1\r\ny = 2\rz = 3\n\x0cw = 4", "utf-8", "x = 1\r\ny = 2\rz = 3\n\x0cw = 4"),
        ("# -*- coding: latin-1 -*-\nx = 'ä'\n".encode("latin-1"), "iso-8859-1", None),
        ("#!/usr/bin/python\r\n# vim: set fileencoding=gbk :\r\nx = '中文'\r\n".encode("gbk"), "gbk", None),
        ("# coding: shift_jis\nx = '日本'\n".encode("shift_jis"), "shift_jis", None),
        (b"# coding: utf-8-sig\nx = 1\n", "utf-8", None),
        (b"# coding: utf8\nx = 1\n", "utf-8", None),
        (
            "# -*- coding: future_fstrings -*-\nx = f'{1}ä'\n".encode(),
            "utf-8",
            "# -*- coding: future_fstrings -*-\nx = f'{1}ä'\n",
        ),
        (b"#!/usr/bin/python\n# coding=future-fstrings\n", "utf-8", "#!/usr/bin/python\n# coding=future-fstrings\n"),
        (b"x = 1\n# coding: latin-1\n", "utf-8", None),
        (b"# hi\rx = 1\r# coding: latin-1 in line three\r", "utf-8", None),
        (b"# hi\r# coding: latin-1\rx = '\xe4'\r", "iso-8859-1", "# hi\r# coding: latin-1\rx = 'ä'\r"),
    ],
)
def test_decodes_as_python_does_and_encodes_back(data: bytes, encoding: str, text: str | None) -> None:
    source = source_from_bytes(data, "a.py")
    assert source.encoding == encoding
    assert source.text == (data.decode(encoding) if text is None else text)
    assert not source.bom
    assert source.encode(source.text) == data


@pytest.mark.parametrize("body", [b"", b"x = 1\r\n", b"# coding: utf-8\nx = '\xc3\xa4'\n", b"# coding: utf-8-sig\n"])
def test_byte_order_mark_is_no_text_and_comes_back(body: bytes) -> None:
    source = source_from_bytes(BOM + body, "a.py")
    assert source.bom
    assert source.encoding == "utf-8"
    assert source.text == body.decode()
    assert source.encode(source.text + "y\n") == BOM + body + b"y\n"


@pytest.mark.parametrize(
    ("data", "line", "word"),
    [
        (b"a\nb\0c\n", 2, "null byte"),
        (b"a\r\nb\rc = '\xe4'\n", 3, "0xe4 is not utf-8"),
        (b"x = '\xe4'\n", 1, "0xe4 is not utf-8"),
        (BOM + b"\n\nx = '\xe4'\n", 3, "0xe4 is not utf-8"),
        (b"# coding: gbk\nx = '\xff'\n", 2, "0xff is not gbk"),
        (b"# coding: ascii\n# \xc3\xa4\n", 2, "0xc3 is not ascii"),
        (b"# coding: klingon\nx = 1\n", 1, "unknown encoding: klingon"),
        (b"#!/bin/python\n# coding: klingon\n", 2, "unknown encoding: klingon"),
        (b"# coding: future_fstrings_too\nx = 1\n", 1, "unknown encoding: future_fstrings_too"),
        (b"# coding: future_fstrings\nx = '\xe4'\n", 2, "0xe4 is not utf-8"),
        (BOM + b"# coding: latin-1\n", 1, "coding cookie"),
        (b"# coding: rot13\nx = 1\n", 1, "rot13"),
        (b"# coding: hex\nx = 1\n", 1, "hex"),
        (b"# coding: undefined\nx = 1\n", 1, "undefined"),
        ("x = 1\n".encode("utf-16"), 1, "UTF-16"),
        ("\ufeffx = 1\n".encode("utf-16-be"), 1, "UTF-16"),
    ],
)
def test_says_line_and_reason_of_what_is_no_text(data: bytes, line: int, word: str) -> None:
    found, reason = reason_of(data)
    assert found == line
    assert word in reason


def test_new_text_that_the_encoding_lacks_is_a_clear_error() -> None:
    source = source_from_bytes(b"# coding: latin-1\nx = 1\n", "a.py")
    with pytest.raises(Unencodable, match=r"^a\.py:3: '\\u4e2d' cannot be written in .* iso-8859-1$") as caught:
        source.encode("# coding: latin-1\r\ny = 1\rx = '中'\n")
    assert caught.value.line == 3
    with pytest.raises(Unencodable):
        source_from_bytes(b"", "a.py").encode("\ud800")


def test_survives_pickling(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(BOM + b"x = 1\r\n")
    source = read_source(file, "a.py")
    assert pickle.loads(pickle.dumps(source)) == source
    error = pickle.loads(pickle.dumps(Unreadable("a.py", 3, "why")))
    assert (error.path, error.line, error.reason, str(error)) == ("a.py", 3, "why", "a.py:3: why")
    assert error.skipped == Skipped("a.py", 3, "why")


def test_digest_tells_bytes_apart_not_text(tmp_path: Path) -> None:
    plain, marked = source_from_bytes(b"x", "a.py"), source_from_bytes(BOM + b"x", "a.py")
    assert plain.text == marked.text
    assert plain.digest != marked.digest
    assert plain.digest == source_from_bytes(b"x", "b.py").digest


def test_standard_input_stands_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = source_from_bytes(b"x = 1\n", "-", "src/a.py")
    assert source.path == "-"
    assert source.absolute == tmp_path / "src" / "a.py"


def test_reads_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
    (tmp_path / "b.py").symlink_to("a.py")
    source = read_source(tmp_path / "b.py", "b.py")
    assert source.text == "x = 1\r\n"
    assert source.absolute == tmp_path / "b.py"


def test_names_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "gone.py").symlink_to("nowhere")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "x.py").write_bytes(b"")
    expected = {
        tmp_path / "pipe.py": "named pipe",  # to open it would wait for a writer for ever
        tmp_path / "gone.py": "broken link",
        tmp_path / "loop.py": "symbolic links",
        tmp_path / "none.py": "no such file",
        tmp_path / "x.py" / "y.py": "not a directory",
        tmp_path: "is a folder",
        tmp_path / ("x" * 300): "name too long",
        Path("/dev/null"): "device",
        tmp_path / "a\0b": "not a valid file name",
    }
    for path, reason in expected.items():
        with pytest.raises(Unreadable, match=reason) as caught:
            read_source(path, "shown.py")
        assert (caught.value.path, caught.value.line) == ("shown.py", 0)


def test_names_a_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.py")
        with pytest.raises(Unreadable, match="socket"):
            read_source("s.py", "s.py")


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "a.py"
    os.mkfifo(pipe)
    (tmp_path / "b.py").write_bytes(b"")
    before = os.stat(tmp_path / "b.py")
    monkeypatch.setattr(os, "stat", lambda *_args, **_named: before)
    with pytest.raises(Unreadable, match="named pipe"):
        read_source(pipe, "a.py")


def test_names_a_file_closed_to_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unreadable, match=r"^a\.py: permission denied$"):
        read_source(file, "a.py")


def test_display_is_relative_inside_the_working_directory_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert display_path("a.py") == "a.py"
    assert display_path("./src/../b/a.py") == "b/a.py"
    assert display_path(tmp_path / "src" / "a.py") == "src/a.py"
    assert display_path(tmp_path / "src" / "a.py", tmp_path / "src") == "a.py"
    assert display_path("../a.py") == str(tmp_path.parent / "a.py")
    assert display_path(tmp_path.parent / (tmp_path.name + "-other") / "a.py").startswith("/")
    assert display_path("/x/a.py", "/") == "x/a.py"
    (tmp_path / "a.py").write_bytes(b"")
    assert read_source(tmp_path / "a.py").path == "a.py"
