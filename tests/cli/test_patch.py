"""``codemod apply --patch`` and ``codemod patch``, as a user gives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import codemod
from tests.patches.drift import SCRIPT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


@pytest.fixture
def bundle(folder: Path) -> str:
    assert codemod("apply", ".", "--dry-run", "--patch", "reviewed.patch").status == 0
    assert (folder / "train.py").read_text() == SCRIPT
    return "reviewed.patch"


def test_apply_writes_files_and_bundle(folder: Path) -> None:
    ran = codemod("apply", "train.py", "--patch", "reviewed.patch")
    assert ran.status == 0
    assert "3 findings fixed in 1 file, 0 left" in ran.stdout
    after = (folder / "train.py").read_text()
    assert "loss.item()" in after
    assert (folder / "reviewed.patch").read_text().startswith("# A patch of codemod")
    (folder / "train.py").write_text(SCRIPT)
    assert codemod("patch", "reviewed.patch").status == 0
    assert (folder / "train.py").read_text() == after


def test_a_bundle_that_cannot_be_written_stops_everything(folder: Path) -> None:
    ran = codemod("apply", "train.py", "--patch", "missing/reviewed.patch")
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr == "codemod: cannot write missing/reviewed.patch: no such file or directory\n"
    assert (folder / "train.py").read_text() == SCRIPT


def test_status_and_lines(folder: Path, bundle: str) -> None:
    (folder / "train.py").write_text(("# new\n" + SCRIPT).replace("retain_graph=True", "retain_graph=keep"))
    ran = codemod("patch", bundle)
    assert ran.status == 1
    lines = ran.stdout.splitlines()
    assert lines[0] == "train.py:11: hunk 1 (grad-in-evaluation): moved from line 10 to 11"
    assert lines[1].startswith("train.py:23: hunk 2 (surplus-retain-graph): refused: ")
    assert (
        lines[2].startswith("train.py:26: hunk 3 (attached-loss-total): moved from line 25 to 26")
        or "fuzzy" in lines[2]
    )
    assert lines[-1].endswith("1 refused; 1 file changed")


def test_quiet_says_only_what_is_refused(folder: Path, bundle: str) -> None:
    assert codemod("patch", bundle, "-q").stdout == ""
    (folder / "train.py").unlink()
    ran = codemod("patch", bundle, "-q")
    assert ran.status == 1
    assert len(ran.stdout.splitlines()) == 3
    assert "refused: is gone, and git knows no new name for it" in ran.stdout


def test_dry_run_prints_the_diff_of_today(folder: Path, bundle: str) -> None:
    (folder / "train.py").write_text("# new\n" + SCRIPT)
    ran = codemod("patch", bundle, "--dry-run")
    assert ran.status == 0
    assert ran.stdout.startswith("--- a/train.py\n+++ b/train.py\n@@ -8,6 +8,7 @@\n")
    assert "1 file would be changed" in ran.stderr
    assert (folder / "train.py").read_text() == "# new\n" + SCRIPT


def test_json(folder: Path, bundle: str) -> None:
    (folder / "train.py").write_text("# new\n" + SCRIPT)
    report = json.loads(codemod("patch", bundle, "--format", "json").stdout)
    assert report["version"] == 1
    assert report["hunks"][1] == {
        "hunk": 2,
        "path": "train.py",
        "line": 23,
        "state": "moved",
        "now": {"path": "train.py", "line": 24},
        "rules": ["surplus-retain-graph"],
        "reason": "",
    }
    assert report["summary"]["moved"] == 3
    assert report["changed"] == ["train.py"]


def test_a_read_only_file_is_an_error(folder: Path, bundle: str) -> None:
    (folder / "train.py").chmod(0o444)
    ran = codemod("patch", bundle)
    (folder / "train.py").chmod(0o644)
    assert ran.status == 2
    assert "refused: not written: read-only file" in ran.stdout
    assert (folder / "train.py").read_text() == SCRIPT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.patch",), "codemod: missing.patch: no such file\n"),
        ((".",), "codemod: .: is a folder\n"),
        (("train.py",), "codemod: train.py: it contains no diff\n"),
        (("reviewed.patch", "nowhere"), "codemod: nowhere: no such file or folder\n"),
        (("reviewed.patch", "--root", "nowhere"), "codemod: --root nowhere: no such folder\n"),
        (("reviewed.patch", "--format", "html"), "codemod: --format html: must be one of text, json\n"),
        (("reviewed.patch", "--color", "red"), "codemod: --color red: must be one of auto, always, never\n"),
    ],
)
def test_bad_usage_is_one_sentence(bundle: str, arguments: tuple[str, ...], said: str) -> None:
    ran = codemod("patch", *arguments)
    assert (ran.status, ran.stdout, ran.stderr) == (2, "", said)


def test_standard_input_is_no_tree() -> None:
    ran = codemod("apply", "-", "--patch", "x.patch")
    assert (ran.status, ran.stderr) == (2, "codemod: --patch works on files; it cannot be combined with -\n")
