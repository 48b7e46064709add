"""Options that make no sense together are refused in a sentence; those that make sense work together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import codemod
from tests.notebooks import SETUP, STEP
from tests.repositories import alone, git, repository
from tests.verify.zygote import warm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone(monkeypatch)
    repository(tmp_path, {"old.py": (SETUP + STEP).encode()})
    (tmp_path / "new.py").write_text(SETUP + STEP)
    git(tmp_path, "add", "new.py")
    git(tmp_path, "commit", "-qm", "new")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "--add-ignores --dry-run",
        "--add-ignores --patch p",
        "--add-ignores --commit one",
        "--add-ignores --since HEAD",
        "--add-ignores --baseline b",
        "--add-ignores --max-hunks 1",
        "--add-ignores --python2",
        "--add-ignores -i",
        "--commit one --dry-run",
        "--commit one --patch p",
        "--commit one -i",
        "--commit many",
        "--since nowhere --verify old.py",
        "--baseline nothing.json --verify old.py",
        "--since nowhere",
        "--baseline nothing.json",
        "--reason why",
        "--allow-dirty",
        "--steps 3",
        "--patch no/such/folder/p",
        "--format many",
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_written(folder: Path, words: str) -> None:
    ran = codemod("apply", ".", *words.split())
    assert ran.status == 2
    assert ran.stderr.startswith("codemod: ")
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "rev-list", "--count", "HEAD") == "2\n"


def test_since_and_commits(folder: Path) -> None:
    assert codemod("apply", ".", "--since", "HEAD~1", "--commit", "per-rule").status == 0
    assert git(folder, "show", "--name-only", "--format=%s") == "Fix surplus-retain-graph in new.py\n\nnew.py\n"
    assert git(folder, "status", "--porcelain") == ""


def test_since_and_a_patch(folder: Path) -> None:
    assert codemod("apply", ".", "--since", "HEAD~1", "--dry-run", "--patch", "p").status == 0
    assert (folder / "p").read_bytes().count(b"diff --git") == 1
    assert "new.py:9: hunk 1 (surplus-retain-graph): applied" in codemod("patch", "p").stdout


def test_a_baseline_and_markdown(folder: Path) -> None:
    assert codemod("check", "old.py", "--baseline", "b", "--update-baseline").status == 0
    shown = codemod("apply", ".", "--baseline", "b", "--dry-run", "--format", "markdown").stdout
    assert "--- a/new.py" in shown
    assert "--- a/old.py" not in shown


def test_since_and_sarif(folder: Path) -> None:
    (run,) = json.loads(codemod("check", ".", "--since", "HEAD~1", "--format", "sarif").stdout)["runs"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]
    assert places == ["new.py"]


def test_a_limit_and_commits(folder: Path) -> None:
    ran = codemod("apply", ".", "--max-hunks", "1", "--commit", "per-file")
    assert ran.status == 0
    assert "1 for the next run" in ran.stdout
    assert git(folder, "rev-list", "--count", "HEAD") == "3\n"


def test_comments_in_the_lines_that_changed_alone(folder: Path) -> None:
    assert codemod("check", ".", "--since", "HEAD~1", "--add-ignores").status == 0
    assert git(folder, "diff", "--name-only") == "new.py\n"


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["--since HEAD", "--baseline b"])
def test_only_what_is_within_the_limit_is_run_and_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    warm(monkeypatch)
    before = "import old\n" + SETUP + STEP + "print('half')\n"
    (folder / "new.py").write_text(before)
    git(folder, "commit", "-qam", "half")
    assert codemod("check", ".", "--baseline", "b", "--update-baseline").status == 0
    more = before + STEP.replace("x, y", "u, v").replace("model(x) - y", "model(u) - v")
    (folder / "new.py").write_text(more)
    ran = codemod("apply", ".", *limit.split(), "--verify", "new.py", "--steps", "25", "--format", "json")
    assert ran.status == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert [(one["path"], one["line"]) for one in told["fixed"]] == [("new.py", 17)]
    assert not told["dropped"]
    head, last = more.rsplit("retain_graph=True", 1)
    assert (folder / "new.py").read_text() == head + last
    assert (folder / "old.py").read_text() == SETUP + STEP


@pytest.mark.slow
def test_nothing_within_the_limit_is_nothing_to_verify(folder: Path) -> None:
    assert codemod("check", ".", "--baseline", "b", "--update-baseline").status == 0
    ran = codemod("apply", ".", "--baseline", "b", "--verify", "new.py", "--steps", "5")
    assert ran.status == 0
    assert "nothing was rewritten, so there is no promise to hold" in ran.stderr
    assert git(folder, "status", "--porcelain") == "?? b\n"
