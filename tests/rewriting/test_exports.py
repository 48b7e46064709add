"""The names that other files live on."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.rewriting.names_taken import Exports
from codemods.source.files import read_source


def taken(folder: Path, path: str, files: dict[str, str], targets: list[str] | None = None) -> frozenset[str]:
    (folder / "pyproject.toml").touch()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    sources = {name: read_source(folder / name) for name in files}
    return Exports(sources[name] for name in targets or [path]).of(sources[path])


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("from utils import torch, Variable as V", {"torch", "Variable"}),
        ("from pkg.utils import (torch,  # all of it\n    Variable)", {"torch", "Variable"}),
        ("from .utils import torch, \\\n    Variable", {"torch", "Variable"}),
        ("if 1: from utils import torch; x = 1", {"torch"}),
        ("x = 1; from utils import torch", {"torch"}),
        ("import utils\nx = utils.Variable(utils.torch.ones(1))", {"Variable", "torch"}),
        ("import pkg.utils as u, os\nx = u.Variable(1)", {"Variable"}),
        ("from pkg import utils as u\nx = u.Variable(1)", {"Variable"}),
        ("import pkg.utils\nx = pkg.utils.Variable(1)", {"Variable"}),
        ("import other\nx = other.Variable(1)", set()),
        ("from other import Variable", set()),
    ],
)
def test_what_another_file_takes(tmp_path: Path, line: str, names: set[str]) -> None:
    found = taken(tmp_path, "utils.py", {"utils.py": "import torch\n", "main.py": f"import os\n{line}\n"})
    assert found == names


def test_a_star_takes_everything(tmp_path: Path) -> None:
    files = {"utils.py": "import torch\nfrom torch.autograd import Variable\n", "main.py": "from utils import *\n"}
    assert {"torch", "Variable"} <= taken(tmp_path, "utils.py", files)


def test_a_package_is_known_by_its_folder_and_by_dots(tmp_path: Path) -> None:
    files = {
        "net/__init__.py": "import torch\n",
        "net/a.py": "from . import torch\n",
        "main.py": "from net import Variable\n",
    }
    assert taken(tmp_path, "net/__init__.py", files) == {"torch", "Variable"}


def test_a_file_takes_nothing_from_itself(tmp_path: Path) -> None:
    assert taken(tmp_path, "utils.py", {"utils.py": "from utils import torch\nutils.x\n"}) == frozenset()


def test_targets_and_unreadable_neighbours(tmp_path: Path) -> None:
    files = {"utils.py": "import torch\n", "main.py": "from utils import torch\n"}
    (tmp_path / "bad.py").write_bytes(b"\xff\0")
    assert taken(tmp_path, "utils.py", files, ["utils.py", "main.py"]) == {"torch"}
