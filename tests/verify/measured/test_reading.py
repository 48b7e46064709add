"""Records as they are read back: a program can write into their folder, and is not believed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from verify.measured import reading
from verify.measured.reading import read_records

START = {"event": "start", "version": 1, "pid": 7, "process": "main"}
NOTE = {"event": "note", "text": "something"}
END = {"event": "end", "reason": "completed"}


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps({**event, "n": number}) + "\n" for number, event in enumerate(events, 1))


def read(folder: Path, text: str) -> reading.Record:
    (folder / "main-7.jsonl").write_text(text)
    (record,) = read_records(folder)
    return record


WHOLE = lines(START, NOTE, END)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        "",
        # a kill cut the last line off
        lines(START, NOTE) + '{"event":"end","reas',
        # another process of the same name and number begins anew
        lines(START, NOTE) + lines(START, END),
    ],
)
def test_what_the_probe_writes(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).tampered == ""


def test_what_a_line_returned_that_trains_is_forgotten(tmp_path: Path) -> None:
    values = {"site": None, "module": "Linear", "digest": "d", "count": 0, "sums": ""}
    outputs = [{"event": "output", "line": line, "call": 1, **values} for line in (0, 1)]
    record = read(tmp_path, lines(START, *outputs, {"event": "trains", "line": 0}, END))
    assert [each.line for each in record.outputs] == [1]


def test_lines_of_other_processes_have_no_number(tmp_path: Path) -> None:
    first, *rest = WHOLE.splitlines(keepends=True)
    other = json.dumps({"event": "reached", "path": "a.py", "line": 3, "steps": 0, "n": 0}) + "\n"
    record = read(tmp_path, first + other + "".join(rest))
    assert (record.tampered, record.end, record.reached) == ("", "completed", {("a.py", 3)})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("".join(WHOLE.splitlines(keepends=True)[::2]), "missing"),
        ("".join(WHOLE.splitlines(keepends=True)[1:]), "missing"),
        (WHOLE + json.dumps(NOTE) + "\n", "did not write"),
        (WHOLE + json.dumps({**NOTE, "n": 3}) + "\n", "did not write"),
        (WHOLE + json.dumps({**NOTE, "n": True}) + "\n", "did not write"),
        (WHOLE + "no JSON\n", "did not write"),
        (WHOLE + "[1]\n", "did not write"),
        (WHOLE + "[" * 100_000 + "\n", "did not write"),
        (lines(START, {"event": "end"}), "did not write"),
        (lines(START, {"event": "step", "optimizer": []}), "did not write"),
        (lines(START, {"event": "census", "ages": 3}), "did not write"),
        (lines(START, {"event": "backward", "losses": [1]}), "did not write"),
    ],
)
def test_what_somebody_else_wrote_or_took_away(tmp_path: Path, text: str, said: str) -> None:
    assert said in read(tmp_path, text).tampered


def test_no_link_is_followed_and_nothing_is_waited_for(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(lines(START, {"event": "note", "text": "s3cret"}))
    for number, make in enumerate((os.symlink, os.link)):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(secret, folder / "main-1.jsonl")
        (record,) = read_records(folder)
        assert (record.tampered, record.notes) == ("its record is no file", [])
    folder = tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(folder / "main-1.jsonl")
    (folder / "folder.jsonl").mkdir()
    assert [record.tampered for record in read_records(folder)] == ["its record is no file"] * 2


def test_the_folder_itself_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "main-1.jsonl").write_text(lines(START, {"event": "note", "text": "s3cret"}))
    (tmp_path / "records").symlink_to("others")
    for folder in ("records", "nowhere"):
        (record,) = read_records(tmp_path / folder)
        assert "removed or replaced" in record.tampered
        assert record.notes == []


def test_more_than_the_probe_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LARGEST", len(WHOLE) - 1)
    assert "larger" in read(tmp_path, WHOLE).tampered
    monkeypatch.setattr(reading, "_LARGEST", len(WHOLE))
    monkeypatch.setattr(reading, "_MOST", 1)
    (tmp_path / "rank-8.jsonl").write_text(WHOLE)
    assert "more records" in read_records(tmp_path)[0].tampered
