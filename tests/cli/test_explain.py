"""``codemod explain`` of a place, with the real engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import codemod
from tests.notebooks import code, notebook
from tests.rewriting.test_fixes import PROGRAM


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


def test_a_place_tells_why_the_way_the_rewrite_and_the_promise(folder: Path) -> None:
    ran = codemod("explain", "train.py:15")
    assert (ran.status, ran.stderr) == (0, "")
    for words in (
        "train.py:15:5: attached-loss-total [exact] ",
        "15 |     total += loss\n",
        "The way of the graph\n  1. train.py:",
        "Why it hurts\n",
        "  -    total += loss\n  +    total += loss.item()\n",
        "Promise: exact: the rewritten program makes the same parameter updates",
        "To read on\n  The rule: codemod explain attached-loss-total\n",
        "  Its page: docs/rules/attached-loss-total.md in the repository of codemod\n",
        "  Source: https://docs.pytorch.org/",
    ):
        assert words in ran.stdout
    assert "retain_graph=True" not in "".join(line for line in ran.stdout.splitlines() if line.startswith("  -"))
    assert (folder / "train.py").read_text() == PROGRAM


def test_a_line_of_the_trail_leads_to_the_finding_and_one_without_says_where_some_are(folder: Path) -> None:
    found = json.loads(codemod("explain", "train.py:15", "--format", "json").stdout)["findings"]
    assert [one["rule"] for one in found] == ["attached-loss-total"]
    assert "+    total += loss.item()" in found[0]["diff"]
    passing = {step["line"] for step in found[0]["trail"]} - {15}
    lines = {one.partition(":")[2].partition(":")[0] for one in codemod("check", "-q").stdout.splitlines()}
    for line in passing - {int(line) for line in lines}:
        assert "attached-loss-total" in codemod("explain", f"train.py:{line}").stdout
    ran = codemod("explain", "train.py:1")
    if "no finding there" in ran.stderr:
        assert (ran.status, ran.stdout) == (1, "")
        assert "there are findings at" in ran.stderr


def test_a_file_alone_is_asked_for_a_line(folder: Path) -> None:
    ran = codemod("explain", "train.py")
    assert (ran.status, ran.stdout) == (2, "")
    assert "name a line too, such as train.py:1; codemod check train.py tells where" in ran.stderr
    Path("attached-loss-total").mkdir()
    assert codemod("explain", "attached-loss-total").status == 0


def test_a_cell_of_a_notebook(folder: Path) -> None:
    (folder / "book.ipynb").write_bytes(notebook(code("# nothing"), code(PROGRAM)))
    ran = codemod("explain", "book.ipynb:cell 2:15")
    assert ran.stdout.startswith("book.ipynb:cell 2:15:5: attached-loss-total")
    assert codemod("explain", "book.ipynb:cell 1:1").status == 1


def test_a_place_as_check_prints_it(folder: Path) -> None:
    head = next(line for line in codemod("check").stdout.splitlines() if "attached-loss-total" in line)
    assert codemod("explain", head.split(" ")[0]).status == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere.py:3", "nowhere.py: no such file"),
        ("train.pi:3", "no rule is called"),
        ("attached-loss-totl", "did you mean attached-loss-total or"),
        ("broken.py:1", "no finding there"),
    ],
)
def test_what_is_no_place(folder: Path, given: str, said: str) -> None:
    (folder / "broken.py").write_text("x = (\n")
    ran = codemod("explain", given)
    assert ran.status in (1, 2)
    assert said in ran.stderr
    assert ran.stdout == ""
