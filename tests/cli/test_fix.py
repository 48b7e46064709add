"""``codemod fix`` and input that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Codemod


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a script to run"),
        (["missing.py"], "missing.py: no such file"),
        (["train.py", "--format", "html"], "must be one of text, json"),
        (["train.py", "-m", "train", "--entry", "train.py"], "not two of them"),
        (["train.py", "-o", "train.py"], "name another file"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(
    codemod: Codemod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text("import torch\n")
    ran = codemod("fix", *words)
    assert ran.status == 2
    assert said in ran.err
    assert (tmp_path / "train.py").read_text() == "import torch\n"
