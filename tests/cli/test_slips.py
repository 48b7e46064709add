"""Slips of the hand that must not cost a file, or hang."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Codemod

TEXT = "import torch\nx = 1\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "other.py", "book.ipynb", "pyproject.toml"):
        (tmp_path / name).write_text(TEXT if name.endswith("py") else "")
    return tmp_path / "train.py"


@pytest.mark.parametrize("name", ["train.py", "other.py", "book.ipynb", "pyproject.toml"])
@pytest.mark.parametrize(
    "command",
    [["check", "train.py", "-o"], ["apply", "train.py", "--dry-run", "-o"], ["apply", "train.py", "--patch"]],
    ids=["check -o", "apply -o", "apply --patch"],
)
def test_no_output_replaces_a_source(codemod: Codemod, source: Path, command: list[str], name: str) -> None:
    before = Path(name).read_bytes()
    ran = codemod(*command, name)
    assert ran.status == 2
    assert "name another file" in ran.err
    assert Path(name).read_bytes() == before


def test_a_report_is_written_over_an_older_one_and_a_new_file_has_any_name(codemod: Codemod, source: Path) -> None:
    for name in ("report.txt", "new.py"):
        assert codemod("check", "train.py", "-o", name).status == 0
    assert codemod("check", "train.py", "-o", "report.txt").status == 0
    assert Path("new.py").read_text().startswith("1 file")


@pytest.mark.parametrize("option", ["--baseline", "--config"])
def test_a_pipe_that_nobody_writes_to_does_not_hang(codemod: Codemod, source: Path, option: str) -> None:
    os.mkfifo("pipe")
    ran = codemod("check", "train.py", option, "pipe")
    assert (ran.status, "not a regular file but a named pipe" in ran.err) == (2, True)


def test_a_count_that_no_file_can_have_is_refused(codemod: Codemod, source: Path) -> None:
    entry = {"path": "train.py", "rule": "stored-graph", "function": "", "statement": "x", "count": 10**10}
    Path("known.json").write_text(json.dumps({"codemod-baseline": 1, "findings": [entry]}))
    ran = codemod("check", "train.py", "--baseline", "known.json")
    assert ran.status == 2
    assert "entry 1 of the baseline is no finding" in ran.err
