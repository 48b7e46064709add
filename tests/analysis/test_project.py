"""Which files belong to the tree of the files that a user names."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from codemods.analysis.analyse import analyse
from codemods.analysis.project import projects_of
from codemods.source.files import read_source
from codemods.source.options import Options


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The home directory ends the search, so nothing above this test's folder has a say.
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "code"
    for name in ("train.py", "lib/net.py", "clone/run.py", "clone/deep/net.py", "package/src/net.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    (root / "clone" / ".git").mkdir()
    (root / "package" / "pyproject.toml").touch()
    return root


def seen(folder: Path, *names: str) -> set[str]:
    targets = [read_source(folder / name, name) for name in names]
    (project,) = projects_of(targets, {})
    return set(project.paths)


def test_projects_that_lie_in_a_folder_without_one_are_others(folder: Path) -> None:
    assert seen(folder, "train.py") == {"train.py", "lib/net.py"}


def test_a_project_in_a_project_of_others_is_one_too(folder: Path) -> None:
    (folder / "lib" / "inner").mkdir()
    (folder / "lib" / "inner" / "setup.cfg").touch()
    (folder / "lib" / "inner" / "a.py").touch()
    assert seen(folder, "train.py") == {"train.py", "lib/net.py"}
    assert seen(folder, "train.py", "lib/inner/a.py") == {"train.py", "lib/net.py", "lib/inner/a.py"}


def test_a_project_that_is_named_through_a_link_belongs_to_it(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    assert seen(folder.parent / "link", "train.py", "clone/run.py") >= {"clone/run.py", "clone/deep/net.py"}


@pytest.mark.parametrize("variable", ["HOME", "TMPDIR"])
def test_a_file_among_all_that_somebody_has_is_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (folder / "other.py").touch()
    assert seen(folder, "train.py") == {"train.py", "other.py"}
    assert seen(folder, "train.py", "lib/net.py") == {"train.py", "other.py", "lib/net.py"}
    assert seen(folder, "lib/net.py") == {"net.py"}


def test_a_project_of_a_named_file_belongs_to_it(folder: Path) -> None:
    assert seen(folder, "train.py", "clone/run.py") == {"train.py", "lib/net.py", "clone/run.py", "clone/deep/net.py"}


def test_parts_of_a_project_that_have_files_of_their_own_belong_to_it(folder: Path) -> None:
    (folder / "pyproject.toml").touch()
    assert seen(folder, "train.py") == {
        "train.py", "lib/net.py", "clone/run.py", "clone/deep/net.py", "package/src/net.py"
    }  # fmt: skip


LINES = """\
import os
import torch
from lib.net import step

w = torch.ones(1, requires_grad=True)
for _ in range(3):
    step(w)
"""
STEP = "def step(w):\n    loss = (w * w).sum()\n    loss.backward(retain_graph=True)\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_where_they_do_for_python(folder: Path, end: str) -> None:
    for name, text in (("train.py", LINES), ("lib/net.py", STEP)):
        (folder / name).write_bytes(text.replace("\n", end).encode())
    targets = [read_source(folder / name, name) for name in ("lib/net.py", "train.py")]
    found = analyse(targets, options=Options(), jobs=1).findings
    assert [(one.rule, one.path, one.span.line) for one in found] == [("surplus-retain-graph", "lib/net.py", 3)]
