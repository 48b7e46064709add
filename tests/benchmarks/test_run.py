"""The command that measures runs; what it measures is nobody's test."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).with_name("run.py")


@pytest.mark.slow
def test_prints_its_tables_and_puts_them_between_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "above\n<!-- figures: scripts -->\nold\n<!-- end of figures: scripts -->\nbelow\n", encoding="utf-8"
    )

    ran = subprocess.run(
        [sys.executable, BENCHMARK, "--quick", "--tree", "scripts", "--files", "6", "--markdown", page],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )

    assert ran.returncode == 0, ran.stderr
    assert "Training scripts (--quick: a part of it): 6 files" in ran.stdout
    rows = {line.split("|")[1].split(" (")[0].strip(): line for line in ran.stdout.splitlines() if line.startswith("|")}
    assert {"codemod check", "codemod check --jobs 1", "python -c pass", "codemod --version"} <= set(rows)
    assert rows["codemod check"].split("|")[5].strip() == "1.00", "codemod is its own measure"
    assert {"torchfix", "torch-preflight check"} & set(rows) or "torchfix is not installed" in ran.stderr
    assert "failed" not in ran.stdout
    written = page.read_text(encoding="utf-8")
    assert written.startswith("above\n<!-- figures: scripts -->\nTraining scripts")
    assert written.endswith("|\n<!-- end of figures: scripts -->\nbelow\n")
    assert "old" not in written


def test_scripts_are_python_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    runpy.run_path(str(BENCHMARK.with_name("trees.py")))["make_scripts"](tmp_path, 80)

    files = sorted(tmp_path.rglob("*.py"))

    assert len(files) == 80
    assert len({file.parent for file in files}) > 3, "some are cases of several files"
    for file in files:
        ast.parse(file.read_bytes())
