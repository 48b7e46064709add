"""What people know from ruff: the same tree through both, and what a reader or a program finds at the same place."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.reports import formats

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("ruff")
OURS = [sys.executable, "-m", "codemods", "check"]
RUFF = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F401"]
SCRIPT = """\
import os
import torch

model = torch.nn.Linear(3, 1)
total = 0
for x in torch.randn(4, 2, 3):
    loss = model(x).mean()
    loss.backward()
    total += loss
print(total)
"""
FORMATS = ("concise", "full", "grouped", "json", "json-lines", "junit", "github", "gitlab", "azure", "pylint", "rdjson")


def run(command: list[str], folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run([*command, *more], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def both(tree: Path, *more: str) -> tuple[str, str]:
    """What ruff and codemod print; each finds one thing."""
    theirs, ours = (run(command, tree, *more) for command in (RUFF, OURS))
    assert (theirs.returncode, ours.returncode) == (1, 1), theirs.stderr + ours.stderr
    return theirs.stdout, ours.stdout


def test_every_format_of_ruff_that_a_program_reads_is_there(tree: Path) -> None:
    known = run(RUFF, tree, "--help").stdout
    listed = re.search(r"--output-format.*?possible values: ([^\]]*)\]", known, re.DOTALL)
    theirs = set(re.split(r"[,\s]+", listed[1])) if listed else set(FORMATS)
    assert theirs <= {*FORMATS, "sarif", "text", "checkstyle"}
    assert set(FORMATS) <= set(formats())


def test_a_line_a_finding_begins_alike(tree: Path) -> None:
    begins = re.compile(r"^train\.py:\d+:\d+: [\w-]+ \[", re.MULTILINE)
    theirs, ours = both(tree, "--output-format", "concise")
    assert len(begins.findall(theirs)) == len(begins.findall(ours)) == 1


def test_the_frame_has_line_numbers_an_underline_and_help(tree: Path) -> None:
    for text in both(tree, "--output-format", "full"):
        assert re.search(r"^ *\d+ \| ", text, re.MULTILINE)
        assert re.search(r"^ *\| +\^+", text, re.MULTILINE)
        assert re.search(r"^ *help: ", text, re.MULTILINE)


def test_grouped_has_the_file_once(tree: Path) -> None:
    for text in both(tree, "--output-format", "grouped"):
        assert text.splitlines()[0] == "train.py:"
        assert re.match(r"  \d+:\d+ +[\w-]+ ", text.splitlines()[1])


def test_programs_find_the_same_keys(tree: Path) -> None:
    theirs, ours = (json.loads(text) for text in both(tree, "--output-format", "gitlab"))
    wanted = {"check_name", "description", "fingerprint", "location", "severity"}
    assert wanted <= set(theirs[0])
    assert wanted == set(ours[0])
    theirs, ours = (json.loads(text)["diagnostics"][0] for text in both(tree, "--output-format", "rdjson"))
    assert {"code", "location", "message"} <= set(ours) & set(theirs)
    assert set(ours["location"]) == set(theirs["location"]) == {"path", "range"}
    theirs, ours = (text.splitlines()[0] for text in both(tree, "--output-format", "pylint"))
    assert all(re.match(r"train\.py:\d+: \[[\w-]+\] ", line) for line in (theirs, ours))


def test_a_clean_tree_passes(tree: Path) -> None:
    (tree / "train.py").write_text("x = 1\n")
    assert [run(command, tree).returncode for command in (RUFF, OURS)] == [0, 0]


def test_a_broken_file_fails_in_both(tree: Path) -> None:
    (tree / "train.py").write_text("def f(:\n")
    for command in (RUFF, OURS):
        told = run(command, tree)
        assert told.returncode == 1
        assert "train.py:1" in told.stdout + told.stderr
