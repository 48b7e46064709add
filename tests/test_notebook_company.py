"""Notebooks in company with all else that apply and check can do: cells are told, and no file is harmed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import read
from codemods.batch.ledger.ledger import Ledger
from codemods.source.files import read_source
from codemods.source.notebooks import Cell
from tests.batch.inline import run_inline
from tests.batch.tools import campaign_file, repository
from tests.commands import codemod
from tests.notebooks import SETUP, STEP, notebook, text
from tests.repositories import alone, git
from tests.repositories import repository as committed

LOG = """\
!pip list
history = []
for _ in range(5):
    loss = model(torch.randn(4, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss)
print(sum(history))
"""
BEFORE = notebook(text("é"), SETUP, STEP, LOG)
MENDED = (b"(retain_graph=True)", b"()"), (b"append(loss)", b"append(loss.item())")


def mended(data: bytes) -> bytes:
    for old, new in MENDED:
        assert data.count(old) == 1
        data = data.replace(old, new)
    return data


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    alone(monkeypatch)
    committed(tmp_path, {"a.ipynb": BEFORE})
    return tmp_path


def test_markdown_shows_the_diff_of_each_cell(folder: Path) -> None:
    shown = codemod("apply", ".", "--dry-run", "--format", "markdown").stdout
    assert "--- a/a.ipynb:cell 3" in shown
    assert "+++ b/a.ipynb:cell 4" in shown
    assert "@@ -2,5 +2,5 @@" in shown
    assert "-    loss.backward(retain_graph=True)\n+    loss.backward()\n" in shown
    assert "codemod, cell" not in shown
    assert "`a.ipynb:cell 3:5`" in shown


@pytest.mark.parametrize("format", ["html", "markdown", "sarif", "github"])
def test_what_could_not_be_read_is_named_with_its_cell(folder: Path, format: str) -> None:
    (folder / "a.ipynb").write_bytes(notebook(SETUP, text("x"), "x = = 1\n", STEP))
    for command in (["check", "."], ["apply", ".", "--dry-run"]):
        ran = codemod(*command, "--format", format)
        assert ran.status == (1 if command[0] == "check" else 0)
        told = {"github": "Cell 3, line 1: skipped: invalid", "sarif": "cell 3, line 1: skipped: invalid"}
        assert told.get(format, "a.ipynb:cell 3:1") in ran.stdout


def test_commits_name_the_cell_and_each_can_be_reverted(folder: Path) -> None:
    assert codemod("apply", ".", "--commit", "per-rule").status == 0
    assert (folder / "a.ipynb").read_bytes() == mended(BEFORE)
    assert [line for line in git(folder, "log", "--format=%b").splitlines() if line.startswith("- ")] == [
        "- a.ipynb:cell 3:5",
        "- a.ipynb:cell 4:8",
    ]
    git(folder, "revert", "--no-edit", "HEAD~1")
    assert (folder / "a.ipynb").read_bytes() == BEFORE.replace(*MENDED[0])


def test_since_looks_at_the_lines_of_the_cells_that_were_touched(folder: Path) -> None:
    # Outputs, and the count of an execution, are no code.
    (folder / "a.ipynb").write_bytes(BEFORE.replace(b'"execution_count": 1', b'"execution_count": 7'))
    assert codemod("check", ".", "--since", "HEAD").status == 0
    touched = BEFORE.replace(b"append(loss)", b"append( loss)")
    (folder / "a.ipynb").write_bytes(touched)
    ran = codemod("check", ".", "--since", "HEAD")
    assert "a.ipynb:cell 4:8:5: attached-loss-history" in ran.stdout
    assert "surplus-retain-graph" not in ran.stdout
    git(folder, "commit", "-qam", "touched")
    ran = codemod("apply", ".", "--since", "HEAD~1", "--commit", "per-rule")
    assert ran.status == 0, ran.stderr
    after = (folder / "a.ipynb").read_bytes()
    assert after == touched.replace(b"append( loss)", b"append( loss.item())")


def test_a_baseline_holds_when_a_cell_is_put_above(folder: Path) -> None:
    assert codemod("check", ".", "--baseline", "b.json", "--update-baseline").status == 0
    (folder / "a.ipynb").write_bytes(notebook("import os\n", text("é"), SETUP, STEP, LOG))
    assert codemod("check", ".", "--baseline", "b.json").status == 0
    ran = codemod("apply", ".", "--baseline", "b.json", "--dry-run", "--format", "markdown")
    assert "Nothing to change" in ran.stdout
    assert "`a.ipynb:cell 4:5`" in ran.stdout


def test_comments_are_written_into_cells_and_found_there(folder: Path) -> None:
    assert codemod("check", ".", "--add-ignores", "--reason", "known").status == 0
    cells = [cell.text for cell in notebook_of("a.ipynb")]
    assert "retain_graph=True)  # codemod: ignore[surplus-retain-graph] -- known\n" in cells[1]
    assert "append(loss)  # codemod: ignore[attached-loss-history] -- known\n" in cells[2]
    assert codemod("check", ".").status == 0
    (folder / "a.ipynb").write_bytes((folder / "a.ipynb").read_bytes().replace(*MENDED[0]))
    ran = codemod("check", ".", "--report-unused-ignores")
    assert ran.status == 1
    assert "a.ipynb:cell 3:5:" in ran.stdout
    assert codemod("check", ".", "--remove-unused-ignores").status == 0
    assert notebook_of("a.ipynb")[1].text == STEP.replace("retain_graph=True", "")


def test_comments_at_what_is_left_go_into_what_was_just_rewritten(folder: Path) -> None:
    # Cell 5 grows by the comment after cell 3 has shrunk by the rewrite.
    unsafe = "total = 0\nfor _ in range(3):\n    loss = model(torch.randn(4, 4)).sum()\n    loss.backward()\n"
    loop = unsafe + "    optimizer.step()\n"
    (folder / "a.ipynb").write_bytes(notebook(text("é"), SETUP, STEP, LOG, loop))
    before = codemod("check", ".", "--format", "json")
    assert [one["rule"] for one in json.loads(before.stdout)["findings"] if not one["fixable"]] == ["missing-zero-grad"]
    assert codemod("apply", ".", "--add-ignores").status == 0
    cells = [cell.text for cell in notebook_of("a.ipynb")]
    assert "loss.backward()\n" in cells[1]
    assert cells[3].count("# codemod: ignore[missing-zero-grad]") == 1
    assert codemod("check", ".").status == 0


def test_no_comment_can_stand_behind_a_magic_that_takes_the_line(folder: Path) -> None:
    cell = "loss = model(torch.randn(2, 4)).sum()\n%time loss.backward(retain_graph=True)\n"
    data = notebook(SETUP, cell)
    (folder / "a.ipynb").write_bytes(data)
    ran = codemod("check", ".", "--add-ignores")
    after = (folder / "a.ipynb").read_bytes()
    assert (ran.status, after == data) in ((0, False), (2, True))
    assert codemod("check", ".", "-q").status == (0 if ran.status == 0 else 1)
    assert json.loads(after)["cells"][1]["source"][-1].startswith("%time loss.backward(retain_graph=True)")


def test_a_patch_applies_and_says_cells(folder: Path) -> None:
    assert codemod("apply", ".", "--dry-run", "--patch", "p.patch").status == 0
    assert b"# 1. a.ipynb:cell 3:5 surplus-retain-graph (exact)" in (folder / "p.patch").read_bytes()
    ran = codemod("patch", "p.patch")
    assert ran.status == 0
    assert "a.ipynb:cell 3:5: hunk 1 (surplus-retain-graph): applied" in ran.stdout
    assert (folder / "a.ipynb").read_bytes() == mended(BEFORE)
    assert "2 already applied; 0 files changed" in codemod("patch", "p.patch").stdout
    git(folder, "checkout", "-q", "a.ipynb")
    git(folder, "apply", "p.patch")
    assert (folder / "a.ipynb").read_bytes() == mended(BEFORE)


def test_a_patch_fits_a_notebook_that_git_still_has_as_it_was(folder: Path) -> None:
    assert codemod("apply", ".", "--dry-run", "--patch", "p.patch").status == 0
    now = notebook("import os\n", text("é"), SETUP, STEP, LOG, indent=2, ensure_ascii=True)
    (folder / "a.ipynb").write_bytes(now)
    ran = codemod("patch", "p.patch", "--format", "json")
    assert ran.status == 0
    hunks = json.loads(ran.stdout)["hunks"]
    assert [(hunk["cell"], hunk["line"], hunk["now"]["cell"], hunk["state"]) for hunk in hunks] == [
        (3, 5, 4, "moved"),
        (4, 8, 5, "moved"),
    ]
    assert (folder / "a.ipynb").read_bytes() == mended(now)


@pytest.mark.parametrize("harm", ["no git", "damaged"])
def test_a_patch_that_does_not_fit_is_refused_in_a_sentence(folder: Path, harm: str) -> None:
    assert codemod("apply", ".", "--dry-run", "--patch", "p.patch").status == 0
    patch = (folder / "p.patch").read_bytes()
    if harm == "no git":
        now = notebook("import os\n", text("é"), SETUP, STEP, LOG)
        (folder / ".git").rename(folder / "elsewhere")
        said = "a.ipynb: all hunks: refused: the notebook is another one than it was made for, which git does not have"
    else:
        now = BEFORE
        patch = patch.replace(b'+    "    loss.backward()\\n",', b'+    "    loss.backward()\\n"')
        said = "a.ipynb: all hunks: refused: not valid JSON: "
    (folder / "p.patch").write_bytes(patch)
    (folder / "a.ipynb").write_bytes(now)
    ran = codemod("patch", "p.patch")
    assert ran.status == 1
    assert said in ran.stdout
    assert (folder / "a.ipynb").read_bytes() == now


def test_a_diff_of_more_than_code_is_refused(folder: Path) -> None:
    (folder / "a.ipynb").write_bytes(BEFORE.replace(b"caf", b"tea"))
    (folder / "p.diff").write_text(git(folder, "diff"))
    git(folder, "checkout", "-q", "a.ipynb")
    ran = codemod("patch", "p.diff")
    assert ran.status == 1
    assert "more of the notebook than the code of its cells" in ran.stdout
    assert (folder / "a.ipynb").read_bytes() == BEFORE


def test_a_campaign_tells_cells(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "wrong", {"a.ipynb": BEFORE})
    campaign = read(campaign_file(tmp_path))
    run_inline(campaign)
    ledger = Ledger.read(campaign.work)
    assert ledger is not None
    with ledger:
        found = [(row["rule"], row["cell"], row["line"]) for row in ledger.each("SELECT * FROM findings ORDER BY cell")]
    assert found == [("surplus-retain-graph", 3, 5), ("attached-loss-history", 4, 8)]


def notebook_of(path: str) -> list[Cell]:
    source = read_source(path)
    assert source.notebook is not None
    return list(source.notebook.cells)
