"""What a user sees of notebooks: check, apply, diffs, suppressions, and edits that are left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import codemods
from codemods.analysis.analyse import Analysis
from codemods.checking.check import Analyser, check
from codemods.proofs.soundness import Conduct
from codemods.reports import Report
from codemods.rewriting.apply import apply
from codemods.source.files import SourceFile, source_from_bytes
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.edits import Edit, InsertStatements, MoveStatement, WrapBlock
from codemods.terms.findings import Finding, Promise, ShownLine
from codemods.terms.spans import Span
from tests.commands import codemod
from tests.notebooks import SETUP, STEP, code, notebook, text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_findings_name_cell_and_line(folder: Path) -> None:
    (folder / "a.ipynb").write_bytes(notebook(text("x"), "!pip install torch\n" + SETUP, "no python", STEP))
    ran = codemod("check", ".", "-v")
    assert ran.status == 1
    assert "a.ipynb:cell 4:5:5: surplus-retain-graph [exact]" in ran.stdout
    assert "    a.ipynb:cell 4:3: graph produced here" in ran.stdout
    assert "a.ipynb:cell 3:1: skipped: invalid syntax" in ran.stdout
    assert "1 file, 1 finding, 1 fixable, 1 skipped" in ran.stdout

    report = json.loads(codemod("check", ".", "--format", "json").stdout)
    finding = report["findings"][0]
    assert (finding["path"], finding["cell"], finding["line"], finding["end_line"]) == ("a.ipynb", 4, 5, 5)
    assert [(step["cell"], step["line"]) for step in finding["trail"]] == [(4, 3), (4, 5)]
    assert report["skipped"] == [{"path": "a.ipynb", "cell": 3, "line": 1, "reason": "invalid syntax"}]
    assert report["summary"]["files"] == 1


def test_plain_files_have_no_cell(folder: Path) -> None:
    (folder / "a.py").write_text(SETUP + STEP)
    (folder / "b.py").write_text("print 1\n")
    report = json.loads(codemod("check", ".", "--format", "json").stdout)
    assert "cell" not in report["findings"][0]
    assert "cell" not in report["findings"][0]["trail"][0]
    assert "cell" not in report["skipped"][0]


def test_the_diff_is_one_that_git_applies(folder: Path) -> None:
    before = notebook(SETUP, text("é"), STEP)
    (folder / "a.ipynb").write_bytes(before)
    ran = codemod("apply", ".", "--dry-run")
    assert (folder / "a.ipynb").read_bytes() == before
    assert '-    "    loss.backward(retain_graph=True)\\n",\n+    "    loss.backward()\\n",\n' in ran.stdout
    assert codemod("apply", ".").status == 0
    after = (folder / "a.ipynb").read_bytes()
    assert after == before.replace(b"backward(retain_graph=True)", b"backward()")
    (folder / "a.ipynb").write_bytes(before)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply"], input=ran.stdout.encode(), check=True)
    assert (folder / "a.ipynb").read_bytes() == after


def test_people_see_the_cell(folder: Path) -> None:
    (folder / "a.ipynb").write_bytes(notebook(SETUP, STEP))
    shown = codemod("apply", ".", "--dry-run", "--color", "always").stdout
    assert "--- a/a.ipynb:cell 2" in shown
    assert "+    loss.backward()" in shown
    assert '\\n"' not in shown
    assert "codemod, cell" not in shown


def test_standard_input(folder: Path) -> None:
    before = notebook(SETUP, STEP)
    (folder / "in").write_bytes(before)
    with (folder / "in").open("rb") as stream:
        ran = subprocess.run(
            [sys.executable, "-m", "codemods", "apply", "-", "--stdin-filename", "x.ipynb"],
            stdin=stream,
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(Path(codemods.__file__).parents[1])},
        )
    assert ran.stdout == before.replace(b"backward(retain_graph=True)", b"backward()")
    assert b"x.ipynb:cell 2:5:5" in ran.stderr


@pytest.mark.parametrize("comment", ["# codemod: ignore", "# codemod: ignore[surplus-retain-graph]"])
def test_suppressions_count_in_cells(folder: Path, comment: str) -> None:
    step = STEP.replace("retain_graph=True)", f"retain_graph=True)  {comment}")
    (folder / "a.ipynb").write_bytes(notebook(SETUP, step))
    assert codemod("check", ".").status == 0


def test_a_suppression_of_the_file_counts_for_all_cells(folder: Path) -> None:
    (folder / "a.ipynb").write_bytes(notebook(SETUP, STEP, "# codemod: ignore-file"))
    assert codemod("check", ".").status == 0
    (folder / "a.ipynb").write_bytes(notebook(SETUP, STEP, text("# codemod: ignore-file")))
    assert codemod("check", ".").status == 1


def test_what_a_magic_reads_is_not_taken_for_unused(folder: Path) -> None:
    loop = "loss = model(torch.randn(2, 4)).sum()\nloss.backward(retain_graph=True)\n"
    (folder / "a.ipynb").write_bytes(notebook(SETUP, loop, "%timeit again(loss)"))
    found = codemod("check", ".").stdout
    assert "a.ipynb:cell 2:2:1: surplus-retain-graph [advice]" in found
    assert "what %timeit again(loss) does" in found
    (folder / "a.ipynb").write_bytes(notebook(SETUP, loop, "%matplotlib inline"))
    assert "surplus-retain-graph [exact]" in codemod("check", ".").stdout


def test_what_is_no_notebook_is_named_and_the_others_go_on(folder: Path) -> None:
    (folder / "a.ipynb").write_bytes(b'{"cells": [')
    (folder / "b.ipynb").write_bytes(notebook("x <- 1", language="R"))
    (folder / "c.ipynb").write_bytes(notebook(SETUP, STEP))
    ran = codemod("apply", ".")
    assert ran.status == 0
    assert "a.ipynb:1: skipped: not valid JSON: expecting a value (column 12)" in ran.stdout
    assert "b.ipynb: skipped: a notebook in R, not Python" in ran.stdout
    assert "1 finding fixed in 1 file" in ran.stdout


def test_a_notebook_that_imports_keeps_the_names_it_takes(folder: Path) -> None:
    # Whatever notebooks take from a module is in use there.
    (folder / "util.py").write_text("from torch.autograd import Variable\nimport torch\nx = Variable(torch.ones(1))\n")
    (folder / "a.ipynb").write_bytes(notebook("from util import Variable\n"))
    codemod("apply", "util.py", "--select", "legacy-variable")
    assert "import Variable" in (folder / "util.py").read_text()
    (folder / "a.ipynb").write_bytes(notebook("from util import x\n"))
    codemod("apply", "util.py", "--select", "legacy-variable")


def always(*findings: Finding) -> Analyser:
    """An analyser that finds the same whatever it looks at."""

    def analyse(*_: Any, **__: Any) -> Analysis:
        return Analysis(list(findings), [], [], Conduct())

    return analyse


def two_cells() -> SourceFile:
    return source_from_bytes(notebook("a = 1\n", "b = 2\nc = 3\n"), "a.ipynb")


def finding(source: SourceFile, edit: Edit, line: int) -> Finding:
    return Finding("fake", source.path, Span(line, 0, line, 5), Promise.EXACT, f"as line {line} says",
                   edits=((source.path, edit),))  # fmt: skip


def lines(source: SourceFile) -> dict[str, int]:
    return {line: number for number, line in enumerate(source.text.split("\n"), 1)}


@pytest.mark.parametrize("kind", ["wrap", "move"])
def test_an_edit_across_cells_is_left(kind: str) -> None:
    source = two_cells()
    at = lines(source)
    a, b = (Span(at[line], 0, at[line], 5) for line in ("a = 1", "b = 2"))
    edit: Edit = WrapBlock(a, b, "if True:") if kind == "wrap" else MoveStatement(b, a, "before")
    result = check([source], options=Options(), analyse=always(finding(source, edit, at["b = 2"])))
    assert not result.findings[0].fixable
    assert "across cells" in (result.findings[0].obstacle or "")
    assert result.findings[0].finding.message == "as line 1 of cell 2 says"
    made = apply([source], options=Options(), dry_run=True, analyse=always(finding(source, edit, at["b = 2"])))
    assert made.rewrites == ()
    assert made.failures == ()
    assert not made.remaining[0].fixable


@pytest.mark.parametrize("kind", ["wrap", "move", "insert"])
def test_an_edit_within_a_cell_is_made(kind: str) -> None:
    source = two_cells()
    at = lines(source)
    b, c = (Span(at[line], 0, at[line], 5) for line in ("b = 2", "c = 3"))
    edits: dict[str, Edit] = {
        "wrap": WrapBlock(b, c, "if True:"),
        "move": MoveStatement(c, b, "before"),
        "insert": InsertStatements(c, "after", "d = 4"),
    }
    result = check([source], options=Options(), analyse=always(finding(source, edits[kind], at["b = 2"])))
    assert result.findings[0].fixable


def test_places_after_writing_are_those_of_the_new_text(folder: Path) -> None:
    (folder / "a.ipynb").write_bytes(notebook("a = 1\n", "b = 2\n"))
    source = read_targets(["."]).sources[0]
    report = Report(
        1, (), (), sources={"a.ipynb": source}, rewritten={"a.ipynb": source.rewritten("x = 1\n" + source.text)}
    )
    line = lines(source)["b = 2"]
    assert report.place("a.ipynb", line) == ShownLine(2, 1)
    assert report.place("a.ipynb", line + 1, now=True) == ShownLine(2, 1)
    assert report.place("b.py", 7) == ShownLine(None, 7)


def test_an_import_goes_to_the_cell_of_the_imports(folder: Path) -> None:
    setup = SETUP.replace("import torch\nfrom torch import nn", "from torch import nn, optim, randn").replace(
        "torch.optim", "optim"
    )
    evaluate = "def evaluate():\n    return model(randn(8, 4))\n\nmodel.eval()\nprint(evaluate().argmax(1))\n"
    (folder / "a.ipynb").write_bytes(notebook("%matplotlib inline\n!pip install torch", setup, evaluate))
    assert codemod("apply", ".", "--select", "grad-in-evaluation").status == 0
    cells = json.loads((folder / "a.ipynb").read_bytes())["cells"]
    assert cells[0] == code("%matplotlib inline\n!pip install torch")
    assert cells[1]["source"][0] == "import torch\n"
