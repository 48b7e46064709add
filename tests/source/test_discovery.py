from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codemods.source.discovery import Discovery, discover
from codemods.source.errors import MissingPath
from codemods.terms.findings import Skipped
from tests.closed import as_nobody, closed_folder


def make(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def names(found: Discovery, root: Path) -> list[str]:
    return [os.path.relpath(file, root) for file in found.files]


def test_folders_are_walked_in_order(tmp_path: Path) -> None:
    make(tmp_path, "b/z.py", "b/a.py", "a.py", "b.py", "b/notes.txt", "b/c/d.py", "a.pyc", "a.pyi", "py", "x.ipynb")
    make(tmp_path, ".ipynb_checkpoints/x-checkpoint.ipynb", "b/.ipynb_checkpoints/y.ipynb")
    found = discover([tmp_path])
    assert (
        names(found, tmp_path)
        == sorted(names(found, tmp_path))
        == [
            *("a.py", "b.py", "b/a.py", "b/c/d.py", "b/z.py", "x.ipynb"),
        ]
    )
    assert found.problems == []
    assert all(file.is_absolute() for file in found.files)


def test_relative_paths_start_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "src/a.py", "src/b/c.py")
    monkeypatch.chdir(tmp_path / "src")
    assert names(discover(["."]), tmp_path) == ["src/a.py", "src/b/c.py"]
    assert names(discover(["b"]), tmp_path) == ["src/b/c.py"]
    assert names(discover(["../src/./b/"]), tmp_path) == ["src/b/c.py"]
    assert names(discover(["src"], cwd=tmp_path), tmp_path) == ["src/a.py", "src/b/c.py"]


def test_what_is_nobodys_source_is_passed_over(tmp_path: Path) -> None:
    make(
        tmp_path,
        "a.py",
        ".hidden.py",
        "._a.py",
        ".git/hooks/x.py",
        ".tox/x.py",
        "__pycache__/x.py",
        "node_modules/m/x.py",
        "env/pyvenv.cfg",
        "env/lib/x.py",
        "env/build/x.py",
        "conda/conda-meta/history",
        "conda/x.py",
        "old-env/lib/python2.7/site-packages/x.py",
        "old-env/own.py",
        "build/x.py",
        "folder.py/inner.py",
    )
    found = discover([tmp_path])
    assert names(found, tmp_path) == [".hidden.py", "a.py", "build/x.py", "folder.py/inner.py", "old-env/own.py"]
    assert found.problems == []


@pytest.mark.parametrize("folder", [".config", "env", "lib/site-packages", "node_modules"])
def test_but_not_where_it_was_named(tmp_path: Path, folder: str) -> None:
    make(tmp_path, f"{folder}/x.py", f"{folder}/pyvenv.cfg")
    assert names(discover([tmp_path / folder]), tmp_path) == [f"{folder}/x.py"]


def test_a_named_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    make(tmp_path, "run", ".venv/pyvenv.cfg", ".venv/x.py", "notes.txt")
    found = discover([tmp_path / "run", tmp_path / ".venv/x.py", tmp_path / "notes.txt"], exclude=["run", "*.txt"])
    assert names(found, tmp_path) == [".venv/x.py", "notes.txt", "run"]


def test_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "src/a.py", "src/b/c.py")
    (tmp_path / "src/link.py").symlink_to("a.py")
    (tmp_path / "src/b/up.py").symlink_to("../a.py")
    (tmp_path / "alias").symlink_to("src")
    monkeypatch.chdir(tmp_path)
    expected = ["src/a.py", "src/b/c.py"]
    for paths in (
        ["src"],
        ["alias", "src"],
        ["src", "alias"],
        ["src", "src/b", "./src/a.py", str(tmp_path / "src")],
        ["src/link.py", "src/a.py", "src/b/c.py"],
        ["alias/link.py", "src"],
    ):
        assert names(discover(paths), tmp_path) == expected
    assert names(discover(["alias"]), tmp_path) == ["alias/a.py", "alias/b/c.py"]
    assert names(discover(["src/link.py"]), tmp_path) == ["src/link.py"]
    # What lies above the link's target is not what the text of the path says.
    (tmp_path / "deep").symlink_to("src/b")
    assert names(discover(["deep/../a.py"]), tmp_path) == ["src/a.py"]


def test_links_lead_neither_out_nor_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "out/secret.py", "out/sub/x.py", "tree/a.py", "tree/b/c.py", "tree/script", "tree-2/y.py")
    tree = tmp_path / "tree"
    for link, target in {
        "round": ".",
        "b/up": "..",
        "out": "../out",
        "again": "b",
        "out.py": "../out/secret.py",
        "near.py": "../tree-2/y.py",
        "broken.py": "nowhere.py",
        "loop.py": "loop.py",
        "folder.py": "b",
        "run.py": "script",
        ".#a.py": "me@host.1234",
    }.items():
        (tree / link).symlink_to(target)
    monkeypatch.chdir(tmp_path)
    found = discover(["tree"])
    assert names(found, tree) == ["a.py", "b/c.py", "run.py"]
    assert {problem.path: problem.reason for problem in found.problems} == {
        "tree/broken.py": "broken link",
        "tree/loop.py": "too many levels of symbolic links",
        "tree/near.py": "link to a file outside the folder; name it to have it read",
        "tree/out.py": "link to a file outside the folder; name it to have it read",
    }
    assert names(discover(["tree/out.py"]), tree) == ["out.py"]
    assert names(discover(["tree/out"]), tree) == ["out/secret.py", "out/sub/x.py"]


def test_what_is_no_file_is_named_and_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "to-pipe.py").symlink_to("pipe.py")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.py")
        found = discover([tmp_path])
    assert found.files == []
    assert found.problems == [Skipped(name, 0, "not a regular file") for name in ("pipe.py", "s.py", "to-pipe.py")]


def test_a_closed_folder_is_named_and_the_others_go_on() -> None:
    with closed_folder() as closed:
        root = make(closed.parent, "a.py", "closed/b.py", "z/c.py")
        closed.chmod(0)
        found = as_nobody(lambda: discover(["."], cwd=root))
        inside = as_nobody(lambda: discover(["closed/b.py"], cwd=root))
    assert isinstance(found, Discovery)
    assert names(found, root) == ["a.py", "z/c.py"]
    assert found.problems == [Skipped("closed", 0, "permission denied")]
    assert inside == Discovery([], [Skipped("closed/b.py", 0, "permission denied")])


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere", "nowhere: no such file or folder"),
        ("a.py/b", "a.py/b: no such file or folder"),
        ("broken", "broken: broken link"),
        ("", "'': no such file or folder"),
        ("a\0b", "not a valid file name"),
    ],
)
def test_a_path_that_is_missing(tmp_path: Path, path: str, why: str) -> None:
    make(tmp_path, "a.py")
    (tmp_path / "broken").symlink_to("gone")
    with pytest.raises(MissingPath) as caught:
        discover(["a.py", path], cwd=tmp_path)
    assert why in str(caught.value)


TREE = ["a.py", "tests/t.py", "src/tests/t.py", "src/gen/a.py", "src/gen/b/a.py", "src/x.py"]


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (["tests"], ["a.py", "src/gen/a.py", "src/gen/b/a.py", "src/x.py"]),
        (["tests/"], ["a.py", "src/gen/a.py", "src/gen/b/a.py", "src/x.py"]),
        (["/tests"], ["a.py", "src/gen/a.py", "src/gen/b/a.py", "src/tests/t.py", "src/x.py"]),
        (["./tests"], ["a.py", "src/gen/a.py", "src/gen/b/a.py", "src/tests/t.py", "src/x.py"]),
        (["src/gen/*.py"], ["a.py", "src/gen/b/a.py", "src/tests/t.py", "src/x.py", "tests/t.py"]),
        (["src/**/*.py"], ["a.py", "tests/t.py"]),
        (["a.py", "t*.py"], ["src/x.py"]),
        (["src/*", "!src/gen"], ["a.py", "src/gen/a.py", "src/gen/b/a.py", "tests/t.py"]),
        ([""], sorted(TREE)),
        (["[", "#"], sorted(TREE)),
    ],
)
def test_exclude(tmp_path: Path, exclude: list[str], left: list[str]) -> None:
    make(tmp_path, *TREE)
    assert names(discover(["."], cwd=tmp_path, exclude=exclude), tmp_path) == left


def test_exclude_holds_for_named_folders_and_from_other_places(tmp_path: Path) -> None:
    make(tmp_path, *TREE)
    inner = tmp_path / "src"
    assert names(discover(["src/gen"], cwd=tmp_path, exclude=["src/gen/b"]), tmp_path) == ["src/gen/a.py"]
    assert discover(["src/gen"], cwd=tmp_path, exclude=["gen"]).files == []
    assert discover(["src/gen/b"], cwd=tmp_path, exclude=["/src"]).files == []
    assert names(discover(["gen"], cwd=inner, exclude=["src/gen/b"], exclude_root=tmp_path), inner) == ["gen/a.py"]
    # Of a folder outside, the patterns hold for what is below it.
    assert names(discover([inner], cwd=tmp_path / "tests", exclude=["/gen", "src"]), inner) == ["tests/t.py", "x.py"]


def test_a_deep_tree_does_not_exhaust_the_stack(tmp_path: Path) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        for _ in range(700):
            os.mkdir("d")
            os.chdir("d")
        Path("x.py").touch()
    finally:
        os.chdir(here)
    assert len(discover([tmp_path]).files) == 1


def test_pathspec_is_loaded_for_wildcards_only(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    (tmp_path / ".gitignore").write_text("build/\n*.pyc\n")
    script = (
        "import sys; from codemods.source.discovery import discover\n"
        "discover(sys.argv[1:]); print('pathspec' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_thirty_thousand_files_take_about_a_second(tmp_path: Path) -> None:
    for number in range(1000):
        make(tmp_path, *(f"p{number // 40}/q{number}/m{number}_{other}.py" for other in range(30)))
    (tmp_path / ".gitignore").write_text("__pycache__/\n*.py[cod]\n*.log\n/data/*.csv\nbuild/\n.venv\nlocal_*.py\n")
    start = time.process_time()
    found = discover([tmp_path])
    assert time.process_time() - start < 2
    assert len(found.files) == 30_000
