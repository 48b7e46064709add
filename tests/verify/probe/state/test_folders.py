"""What a script changes in its tree beside the contents of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.probe.tools import forked
from verify.probe.state.files import Folders

SCRIPT = """\
import os, pathlib, shutil, torch
os.makedirs("made/inner")
os.makedirs("made", exist_ok=True)
pathlib.Path("text.csv").write_text("1\\n")
os.chmod("text.csv", 0o600)
pathlib.Path("short").mkdir()
shutil.rmtree("short")
open("gone.txt", "w").close()
os.rename("gone.txt", "kept.txt")
os.chmod(os.open("text.csv", os.O_RDONLY), 0o600)
try:
    os.mkdir("nowhere/inner")
except OSError:
    pass
model = torch.nn.Linear(2, 1)
model(torch.ones(2)).backward()
"""


def test_what_is_another_than_at_the_start_is_told() -> None:
    record, done = forked(SCRIPT)
    assert record.error is None, done.stderr
    assert record.changed == {
        "made": "drwxr-xr-x",
        "made/inner": "drwxr-xr-x",
        "text.csv": "-rw-------",
        "kept.txt": "-rw-r--r--",
    }


@pytest.mark.parametrize("inside", [True, False])
def test_only_the_tree_counts(tmp_path: Path, inside: bool) -> None:
    root = tmp_path / "tree"
    (root / "own").mkdir(parents=True)
    folders = Folders(str(root), str(root / "own"))
    place = (root if inside else tmp_path) / "new"
    for path in (place, root / "own" / "records", root / "__pycache__"):
        folders.heard("os.mkdir", (str(path), 0o777, -1))
        path.mkdir()
    assert list(folders.changed()) == (["new"] if inside else [])


def test_what_was_there_is_gone_or_has_another_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    (tmp_path / "b").chmod(0o644)
    folders = Folders(str(tmp_path), "/nowhere")
    for name in ("a", "b"):
        folders.heard("os.remove" if name == "a" else "os.chmod", (str(tmp_path / name), 0o600, -1))
    (tmp_path / "a").unlink()
    assert folders.changed() == {"a": "gone"}
    (tmp_path / "b").chmod(0o400)
    assert folders.changed() == {"a": "gone", "b": "-r--------"}


def test_links_and_where_they_lead(tmp_path: Path) -> None:
    (tmp_path / "one.pt").write_text("")
    (tmp_path / "latest").symlink_to("one.pt")
    (tmp_path / "same").symlink_to("one.pt")
    folders = Folders(str(tmp_path), "/nowhere")
    for event, *paths in (
        ("os.remove", tmp_path / "latest"),
        ("os.symlink", "two.pt", tmp_path / "latest"),
        ("os.symlink", tmp_path / "one.pt", tmp_path / "best"),
        ("os.link", tmp_path / "one.pt", tmp_path / "copy"),
        ("os.remove", tmp_path / "same"),
        ("os.symlink", "one.pt", tmp_path / "same"),
    ):
        folders.heard(event, (*map(str, paths), -1))
    for name, target in (("latest", "two.pt"), ("same", "one.pt"), ("best", str(tmp_path / "one.pt"))):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to(target)
    (tmp_path / "copy").hardlink_to(tmp_path / "one.pt")
    assert folders.changed() == {
        "latest": "lrwxrwxrwx to two.pt",
        "best": "lrwxrwxrwx to one.pt",
        "copy": "-rw-r--r--",
    }
