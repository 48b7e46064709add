"""How imports resolve in a tree of files."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from codemods.graph.model.program import Tree


def tree(*paths: str, name: str = "") -> Tree:
    return Tree({path: Path(path) for path in paths}, {path: path for path in paths}, name)


@pytest.mark.parametrize(
    ("module", "found"),
    [("package", "__init__.py"), ("package.nets", "nets.py"), ("nets", "nets.py"), ("packages", None), ("pack", None)],
)
def test_a_package_that_is_the_whole_tree(module: str, found: str | None) -> None:
    whole = tree("__init__.py", "nets.py", "train.py", name="package")
    assert whole.resolve(module, PurePosixPath("train.py")) == found


def test_a_folder_that_is_no_package_gives_its_name_to_nothing() -> None:
    whole = tree("nets.py", "train.py", name="transformers")
    assert whole.resolve("transformers", PurePosixPath("train.py")) is None


def test_a_module_comes_before_the_tree_of_the_same_name() -> None:
    whole = tree("__init__.py", "package.py", "train.py", name="package")
    assert whole.resolve("package", PurePosixPath("train.py")) == "package.py"
