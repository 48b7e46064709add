"""Which files belong to the user's tree."""

import os
from pathlib import Path

import pytest

from verify.probe.lines.sites import Tree


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")
    return path


def test_files_of_packages_are_not_the_trees(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path.resolve()))
    assert tree.relative(str(written(tmp_path / "a" / "train.py"))) == "a/train.py"
    assert tree.relative(str(written(tmp_path / ".venv" / "lib" / "site-packages" / "p" / "m.py"))) is None
    assert tree.relative(os.__file__) is None
    assert tree.relative("<string>") is None


def test_a_package_that_is_a_link_to_the_tree_is_the_trees(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    written(root / "mine" / "m.py")
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "mine").symlink_to(root / "mine")
    assert Tree(str(root.resolve())).relative(str(installed / "mine" / "m.py")) == "mine/m.py"


def test_a_tree_among_packages_is_itself(tmp_path: Path) -> None:
    root = tmp_path / "site-packages" / "mine"
    path = written(root / "m.py")
    assert Tree(str(root.resolve())).relative(str(path)) == "m.py"


def test_packages_cost_few_calls_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(str(tmp_path.resolve()))
    folder = tmp_path / "site-packages" / "p"
    asked: list[str] = []
    real = os.path.realpath

    def noted(path: str) -> str:
        asked.append(path)
        return real(path)

    monkeypatch.setattr(os.path, "realpath", noted)
    found = [tree.relative(str(folder / f"part{number}" / "m.py")) for number in range(20)]
    monkeypatch.undo()
    assert found == [None] * 20
    assert asked == [str(folder)]
