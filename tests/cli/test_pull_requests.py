"""What ``apply`` prints in each form, ``--commit`` and ``--max-hunks`` as options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import codemods.commits.making
import codemods.manual.explain
from codemods.rules import UnknownRule
from tests.cli.conftest import Codemod
from tests.fakes import Analyser
from tests.repositories import alone, git, repository, snapshot

FILES = {"a.py": b"a = WRONG\n\n\nb = WRONG\n", "b.py": b"c = RISKY\n\n\nd = WRONG\n"}


def _unknown(name: str) -> None:
    raise UnknownRule(name)


@pytest.fixture
def tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone(monkeypatch)
    # The fakes' rules have no documentation.
    monkeypatch.setattr(codemods.manual.explain, "rule", _unknown)
    monkeypatch.setitem(codemods.commits.making.commit_result.__kwdefaults__, "analyse", Analyser())
    return repository(folder, FILES)


def test_by_default_a_dry_run_prints_the_diff_and_nothing_else(codemod: Codemod, tree: Path) -> None:
    ran = codemod("apply", ".", "--dry-run")
    assert ran.out.startswith(b"--- a/a.py\n")
    assert "3 findings would be fixed" in ran.err


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("markdown", "# Fix wrong in 2 files\n\n**3 places in 2 files**"),
        ("sarif", '{\n "$schema"'),
        ("json", "{"),
        ("github", "::warning file=b.py,line=1"),
    ],
)
def test_in_another_form_a_dry_run_prints_the_report_instead(
    codemod: Codemod, tree: Path, form: str, start: str
) -> None:
    before = snapshot(tree)
    ran = codemod("apply", ".", "--dry-run", "--format", form)
    assert ran.status == 0
    assert ran.out.decode().startswith(start)
    assert not ran.out.startswith(b"---")
    assert ran.err == ""
    assert snapshot(tree) == before
    assert codemod("apply", ".", "--dry-run", "--format", form, "--exit-code").status == 1


def test_the_diff_is_inside_of_json(codemod: Codemod, tree: Path) -> None:
    found = json.loads(codemod("apply", ".", "--dry-run", "--format", "json").out)
    assert found["diff"].encode() == codemod("apply", ".", "--dry-run").out


def test_standard_input_still_comes_back_as_text(codemod: Codemod, tree: Path) -> None:
    assert codemod("apply", "-", "--format", "markdown", stdin=b"a = WRONG\n").out == b"a = right\n"


def test_check_has_fixes_in_sarif(codemod: Codemod, tree: Path) -> None:
    before = snapshot(tree)
    ran = codemod("check", ".", "--format", "sarif")
    assert ran.status == 1
    results = json.loads(ran.out)["runs"][0]["results"]
    assert [len(one.get("fixes", ())) for one in results] == [1, 1, 0, 1]
    assert snapshot(tree) == before


@pytest.mark.parametrize(("style", "subjects"), [("per-rule", 1), ("per-file", 2), ("one", 1)])
def test_commit(codemod: Codemod, tree: Path, style: str, subjects: int) -> None:
    ran = codemod("apply", ".", "--commit", style)
    assert ran.status == 0
    assert ran.err.count("committed ") == subjects
    assert "3 findings fixed in 2 files" in ran.out.decode()
    assert git(tree, "rev-list", "--count", "HEAD").strip() == str(1 + subjects)
    assert git(tree, "status", "--porcelain") == ""
    assert (tree / "a.py").read_bytes() == b"a = right\n\n\nb = right\n"
    again = codemod("apply", ".", "--commit", style)
    assert again.status == 0
    assert git(tree, "rev-list", "--count", "HEAD").strip() == str(1 + subjects)


def test_commit_in_another_form(codemod: Codemod, tree: Path) -> None:
    ran = codemod("apply", ".", "--commit", "one", "--format", "markdown", "--quiet")
    assert ran.out.startswith(b"# Fix wrong in 2 files\n\n**3 places in 2 files**")
    assert ran.err == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--commit", "each"), "--commit each: must be one of per-rule, per-file, one"),
        (("--commit", "one", "--dry-run"), "cannot be combined with --dry-run"),
        (("--allow-dirty",), "need --commit"),
        (("--no-hooks",), "need --commit"),
        (("--plot", "x.svg"), "need --verify"),
        (("--max-hunks", "0"), "max-hunks"),
    ],
)
def test_wrong_usage(codemod: Codemod, tree: Path, arguments: tuple[str, ...], told: str) -> None:
    before = snapshot(tree)
    ran = codemod("apply", ".", *arguments)
    assert ran.status == 2
    assert told in ran.err
    assert "Traceback" not in ran.err
    assert snapshot(tree) == before


def test_commit_of_standard_input(codemod: Codemod, tree: Path) -> None:
    assert codemod("apply", "-", "--commit", "one", stdin=b"a = WRONG\n").status == 2


def test_commit_says_why_not(codemod: Codemod, tree: Path) -> None:
    (tree / "a.py").write_bytes(b"a = WRONG\n")
    ran = codemod("apply", ".", "--commit", "one")
    assert ran.status == 2
    assert ran.out == b""
    assert "uncommitted changes in a.py" in ran.err
    ran = codemod("apply", ".", "--commit", "one", "--allow-dirty")
    assert ran.status == 2
    assert "a.py would be changed and has uncommitted changes already" in ran.err


def test_commit_outside_of_a_repository(codemod: Codemod, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch)
    (folder / "a.py").write_bytes(b"a = WRONG\n")
    ran = codemod("apply", ".", "--commit", "one")
    assert ran.status == 2
    assert "is not in a git repository" in ran.err
    assert (folder / "a.py").read_bytes() == b"a = WRONG\n"


def test_max_hunks(codemod: Codemod, tree: Path) -> None:
    told = codemod("apply", ".", "--max-hunks", "2", "--format", "markdown").out.decode()
    assert told.startswith("# Fix wrong in `a.py`\n\n**2 places in 1 file**")
    assert "For the next run" in told
    assert "1 × `wrong`" in told
    assert "Left as it is" not in told
    assert (tree / "b.py").read_bytes() == FILES["b.py"]
    assert "1 finding fixed" in codemod("apply", ".", "--max-hunks", "2").out.decode()


def test_max_hunks_from_the_configuration(codemod: Codemod, tree: Path) -> None:
    (tree / "pyproject.toml").write_text("[tool.codemod]\nmax-hunks = 1\n")
    told = codemod("apply", ".").out.decode()
    assert "1 finding fixed" in told
    assert "2 for the next run" in told
