"""Which findings count, on the command line: since, baseline, suppression comments, rules left out of some files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Codemod


@pytest.fixture(autouse=True)
def _rules_of_the_fake_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemods.checking.scope.selected_rules", lambda options: [])
    monkeypatch.setattr("codemods.checking.scope.rule_names", lambda: ())


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def test_since_reports_and_mends_what_was_touched(codemod: Codemod, folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a.py").write_text("x = WRONG\ny = 1\nz = 2\n")
    commit(folder)
    (folder / "a.py").write_text("x = WRONG\ny = 1\nz = WRONG\n")
    (folder / "new.py").write_text("x = WRONG\n")
    ran = codemod("check", ".", "--since", "HEAD")
    assert (ran.status, ran.out.decode().splitlines()[:3]) == (
        1,
        [
            "a.py:3:5: wrong [exact] WRONG is here",
            "new.py:1:5: wrong [exact] WRONG is here",
            "2 files, 2 findings, 2 fixable, 1 on lines that did not change",
        ],
    )
    assert json.loads(codemod("check", ".", "--since", "HEAD", "--format", "json").out)["summary"]["elsewhere"] == 1
    assert codemod("apply", ".", "--since", "HEAD").status == 0
    assert (folder / "a.py").read_text() == "x = WRONG\ny = 1\nz = right\n"
    commit(folder)
    assert codemod("check", ".", "--since", "HEAD").status == 0
    codemod("apply", ".", "--since", "HEAD")
    assert (folder / "a.py").read_text() == "x = WRONG\ny = 1\nz = right\n"


def test_since_takes_partners_along(codemod: Codemod, folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a.py").write_text("x = LEFT\ny = 1\n")
    commit(folder)
    (folder / "a.py").write_text("x = LEFT\ny = RIGHTHAND\n")
    assert b"RIGHTHAND" in codemod("check", ".", "--since", "HEAD", "-q").out
    codemod("apply", ".", "--since", "HEAD")
    assert (folder / "a.py").read_text() == "x = left\ny = righthand\n"


@pytest.mark.parametrize("command", ["check", "apply"])
def test_since_says_in_one_sentence_what_is_wrong(
    codemod: Codemod, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    ran = codemod(command, ".", "--since", "main")
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err == f"codemod: --since needs a git repository, and {folder} is in none\n"
    git(folder, "init", "-q")
    assert codemod(command, ".", "--since", "main").err == f"codemod: --since main: no such revision in {folder}\n"
    assert (folder / "a.py").read_text() == "x = WRONG\n"


def test_baseline(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    missing = codemod("check", ".", "--baseline", "b.json")
    assert (missing.status, missing.err) == (
        2,
        "codemod: b.json: no such baseline; --update-baseline writes one\n",
    )
    ran = codemod("check", ".", "--baseline", "b.json", "--update-baseline")
    assert (ran.status, ran.out) == (0, b"")
    assert ran.err == "codemod: b.json: 1 in the baseline, 1 added, 0 dropped\n"
    (folder / "a.py").write_text("import y\nx = WRONG\nz = RISKY\n")
    ran = codemod("check", ".", "--baseline", "b.json")
    assert (ran.status, ran.out.decode().splitlines()[:2]) == (
        1,
        ["a.py:3:5: risky [behaviour] RISKY is here", "1 file, 1 finding, 0 fixable, 1 in the baseline"],
    )
    (folder / "a.py").write_text("z = 1\n")
    ran = codemod("check", ".", "--baseline", "b.json", "--format", "json")
    assert (ran.status, json.loads(ran.out)["gone_from_baseline"]) == (
        0,
        [{"path": "a.py", "rule": "wrong", "function": "", "statement": "x = WRONG"}],
    )
    codemod("check", ".", "--baseline", "b.json", "--update-baseline", "-q")
    assert json.loads((folder / "b.json").read_text())["findings"] == []


def test_baseline_of_the_project_holds_for_check_only(codemod: Codemod, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.codemod]\nbaseline = "b.json"\n')
    (folder / "sub").mkdir()
    (folder / "sub" / "a.py").write_text("x = WRONG\n")
    assert codemod("check", "sub", "--update-baseline").status == 0
    assert (folder / "b.json").exists()
    assert codemod("check", "sub").status == 0
    assert codemod("check", "sub", "--baseline", "").status == 1
    codemod("apply", "sub", "--baseline", "b.json")
    assert (folder / "sub" / "a.py").read_text() == "x = WRONG\n"
    codemod("apply", "sub")
    assert (folder / "sub" / "a.py").read_text() == "x = right\n"


def test_rules_left_out_of_some_files(codemod: Codemod, folder: Path) -> None:
    (folder / "tests").mkdir()
    for name in ("tests/a.py", "b.py"):
        (folder / name).write_text("x = WRONG\ny = RISKY\n")
    (folder / "pyproject.toml").write_text('[tool.codemod.per-file-ignores]\n"tests/" = ["wrong"]\n')
    found = json.loads(codemod("check", ".", "--format", "json").out)["findings"]
    assert [(one["path"], one["rule"]) for one in found] == [
        ("b.py", "wrong"),
        ("b.py", "risky"),
        ("tests/a.py", "risky"),
    ]
    codemod("apply", ".")
    assert (folder / "tests" / "a.py").read_text().startswith("x = WRONG")
    (folder / "pyproject.toml").write_text('[tool.codemod.per-file-ignores]\n"tests/" = ["wron"]\n')
    ran = codemod("check", ".")
    assert (ran.status, "no rule is called 'wron'; did you mean wrong?" in ran.err) == (2, True)


def test_add_ignores_adopts_a_tree(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_bytes(b"x = WRONG  # noqa\r\ny = (\r\n    ADVICE,\r\n)\r\n")
    (folder / "b.py").write_text("x = 1\n")
    ran = codemod("check", ".", "--add-ignores", "--reason", "before the tool came")
    assert (ran.status, ran.out, ran.err) == (0, b"", "2 findings suppressed in 1 file\n")
    assert (folder / "a.py").read_bytes() == (
        b"x = WRONG  # noqa  # codemod: ignore[wrong] -- before the tool came\r\ny = (\r\n"
        b"    ADVICE,  # codemod: ignore[advice] -- before the tool came\r\n)\r\n"
    )
    before = (folder / "a.py").stat().st_mtime_ns
    assert codemod("check", ".", "--report-unused-ignores", "--ignore", "nothing-else").status == 2
    assert codemod("check", ".").status == 0
    again = codemod("check", ".", "--add-ignores")
    assert (again.status, again.err) == (0, "0 findings suppressed in 0 files\n")
    assert (folder / "a.py").stat().st_mtime_ns == before


def test_apply_mends_first_and_suppresses_what_is_left(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\ny = RISKY\n")
    ran = codemod("apply", ".", "--add-ignores", "-q")
    assert (ran.status, ran.err) == (0, "")
    assert (folder / "a.py").read_text() == "x = right\ny = RISKY  # codemod: ignore[risky]\n"


def test_a_read_only_file_is_named(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    (folder / "b.py").write_text("x = WRONG\n")
    (folder / "a.py").chmod(0o444)
    ran = codemod("check", ".", "--add-ignores")
    assert (ran.status, ran.err) == (2, "codemod: a.py: not saved: read-only file\n1 finding suppressed in 1 file\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "a.py", "--reason", "x"), "--reason needs --add-ignores"),
        (("check", "a.py", "--add-ignores", "--reason", "a\nb"), "must be one line"),
        (("check", "-", "--add-ignores"), "cannot be combined with -"),
        (("check", "a.py", "--add-ignores", "--update-baseline"), "exclude each other"),
        (("check", "a.py", "--update-baseline"), "--update-baseline needs --baseline FILE"),
        (("check", "a.py", "--update-baseline", "--baseline", "b", "-o", "c"), "it cannot be combined with --output"),
        (("check", "a.py", "--update-baseline", "--baseline", "b", "--also", "json=c"), "combined with --also"),
        (("check", "a.py", "--add-ignores", "--format", "json"), "--add-ignores writes no report"),
        (("check", "a.py", "--remove-unused-ignores", "-o", "c"), "--remove-unused-ignores writes no report"),
        (("check", "a.py", "--update-baseline", "--baseline", "b", "--since", "x"), "cannot be combined with --since"),
        (("apply", "a.py", "--add-ignores", "--dry-run"), "cannot be combined with --dry-run"),
        (("apply", "-", "--since", "x", "--verify", "a.py"), "cannot be combined with -"),
        (("apply", "-", "--since", "x"), "cannot be combined with -"),
    ],
)
def test_what_makes_no_sense(codemod: Codemod, folder: Path, arguments: tuple[str, ...], words: str) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    ran = codemod(*arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, b"", 1)
    assert words in ran.err
    assert (folder / "a.py").read_text() == "x = WRONG\n"
