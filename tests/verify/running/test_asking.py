"""What a script asks for, read in its text."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from verify.running.asking import Wants, wants_of


def wants(root: Path, text: str, **others: str) -> Wants:
    """What ``train.py`` with this text asks for, beside ``others`` (names without suffix, ``__`` for a slash)."""
    (root / "train.py").write_text(dedent(text))
    for name, content in others.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(content))
    return wants_of(root / "train.py", root, root)


def test_modules_of_the_script_and_of_what_it_imports(tmp_path: Path) -> None:
    found = wants(
        tmp_path,
        """
        import os, torch.nn as nn
        from einops import rearrange
        import helpers.layers
        from helpers import loss
        if __name__ == "__main__":
            import tqdm
        """,
        helpers__layers="import timm\nfrom . import inner\nfrom .deep import x",
        helpers__inner="import scipy.stats",
        helpers__loss="from ..nowhere import y\nclass A:\n    import wandb",
        helpers__deep="import kornia",
    )
    assert found.modules == {"os", "torch", "einops", "tqdm", "timm", "scipy", "wandb", "kornia"}


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import absent",
        "try:\n    import absent\nexcept ImportError:\n    absent = None",
        "try:\n    import absent\nexcept (KeyError, ModuleNotFoundError):\n    absent = None",
        "try:\n    import absent\nexcept:\n    pass",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import absent",
        "import sys\nif sys.version_info < (3,):\n    import absent",
        "for name in []:\n    import absent",
        "import here.absent",
        "from here import absent",
        "print('import absent')",
        "import (",
    ],
)
def test_modules_that_may_be_absent(tmp_path: Path, text: str) -> None:
    assert "absent" not in wants(tmp_path, text, lib__here="pass").modules


def test_a_name_that_the_tree_has_anywhere_is_not_missed(tmp_path: Path) -> None:
    found = wants(
        tmp_path, "import sys\nsys.path.append('src')\nimport models, losses", src__models="", src__losses__x=""
    )
    assert found.modules == {"sys"}


def test_imports_in_a_try_that_catches_something_else_count(tmp_path: Path) -> None:
    found = wants(tmp_path, "try:\n    import absent\nexcept KeyError:\n    pass\nfinally:\n    import other")
    assert found.modules == {"absent", "other"}


def test_circles_end(tmp_path: Path) -> None:
    assert wants(tmp_path, "import a", a="import b", b="import a, train, far").modules == {"far"}


def test_arguments(tmp_path: Path) -> None:
    found = wants(
        tmp_path,
        """
        parser.add_argument("-d", "--data", required=True)
        parser.add_argument("--out", default="runs/x")
        parser.add_argument("--lr", type=float, default=0.1)
        parser.add_argument("--maybe", required=MAYBE)
        parser.add_argument("name")
        """,
    )
    assert found.required == ["--data"]
    assert found.defaults == {"--out": "runs/x"}


def test_files_that_are_read_and_not_written(tmp_path: Path) -> None:
    found = wants(
        tmp_path,
        """
        np.load("data/x.npy"); torch.load("m.pth", map_location="cpu"); open("a.txt"); open("b.txt", "rb")
        open("c.txt", "w"); open("d.txt", mode="a"); torch.save(x, "e.pt"); torch.load("e.pt")
        if os.path.exists("f.pt"): torch.load("f.pt")
        open(name); open(f"{a}/b"); np.load("https://host/x.npy"); open("")
        """,
    )
    assert found.files == ["data/x.npy", "m.pth", "a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("if args.mode == 'train': ...\nelif args.mode == 'test': ...", {"mode": "train"}),
        ("def f(o):\n    return o.data in ['mnist', 'cifar']", {"data": "mnist"}),
        ("x = self.args.kind in ('', 2, 'b')\ny = a.net == 'c'", {"kind": "b", "net": "c"}),
        ("if a.n == 3 or a.path == '' or a.name != 'x' or 'lsun' in a.data or mode == 'train': ...", {}),
        ("if 0 < a.b == 'text': ...\nif a.b == name: ...\nif a.b in names: ...", {}),
    ],
)
def test_texts_that_options_are_compared_with(tmp_path: Path, text: str, texts: dict[str, str]) -> None:
    assert wants(tmp_path, text).compared == texts


def test_what_the_script_compares_goes_before_what_it_imports(tmp_path: Path) -> None:
    found = wants(tmp_path, "import other\nargs.mode == 'here'", other="args.mode == 'there'\nargs.net == 'deep'")
    assert found.compared == {"mode": "here", "net": "deep"}
