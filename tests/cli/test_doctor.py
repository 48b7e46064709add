"""``codemod doctor`` and input that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Codemod


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text("import torch\n")
    return tmp_path / "train.py"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a script to run"),
        (["missing.py"], "missing.py: no such file"),
        (["."], "is a folder"),
        (["train.py", "--format", "sarif"], "must be one of text, json, html"),
        (["train.py", "--graph", "nowhere/g.svg"], "nowhere"),
        (["train.py", "--entry", "train.py"], "not two of them"),
        (["train.py", "-o", "train.py"], "name another file"),
        (["train.py", "--memory", "lots"], "must be a size"),
        (["train.py", "--python", "nowhere/python"], "no such file"),
        (["train.py", "--tree", "elsewhere"], "no such folder"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(codemod: Codemod, script: Path, words: list[str], said: str) -> None:
    ran = codemod("doctor", *words)
    assert ran.status == 2
    assert said in ran.err
    assert ran.out == b""
