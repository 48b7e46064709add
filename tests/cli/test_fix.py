"""``codemod fix`` and input that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.cli.fix import _write
from codemods.source.files import read_source
from codemods.terms.errors import UserError
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


def test_what_somebody_wrote_while_the_programs_ran_stays(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("total += loss\n")
    source = read_source(script)
    script.write_text("total += loss  # mine\n")
    with pytest.raises(UserError, match="changed since it was read"):
        _write({"train.py": b"total += loss.item()\n"}, {"train.py": source})
    assert script.read_text() == "total += loss  # mine\n"


def test_a_file_as_it_was_is_written(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("total += loss\n")
    _write({"train.py": b"total += loss.item()\n"}, {"train.py": read_source(script)})
    assert script.read_text() == "total += loss.item()\n"
