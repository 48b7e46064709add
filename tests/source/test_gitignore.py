"""Held against git itself, whose answer is the right one by definition."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from codemods.source.discovery import discover
from codemods.source.gitignore import Repository


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
    )
    return done.stdout


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", newline="") as stream:
            stream.write(text)
    if not (root / ".git").exists():
        git(root, "init", "-q")
    return root


def by_git(root: Path, below: str = "") -> list[str]:
    listed = git(root, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    return sorted({name for name in listed if name.endswith(".py") and name.startswith(below)})


def by_us(root: Path, below: str = "") -> list[str]:
    found = discover([root / below])
    assert not found.problems
    return sorted(os.path.relpath(file, root) for file in found.files)


MANY = ["a.py", "b.py", "src/a.py", "src/b.py", "src/data/a.py", "data/a.py", "data/sub/b.py", "build/a.py", "x y/a.py"]


@pytest.mark.parametrize(
    "patterns",
    [
        "a.py\n",
        "/a.py\n",
        "data\n",
        "data/\n",
        "/data/\n",
        "src/data\n",
        "*.py\n!b.py\n",
        "data/\n!data/a.py\n",
        "data/*\n!data/a.py\n",
        "data/**\n!data/sub/\n",
        "data/**\n!data/sub/\n!data/sub/**\n",
        "**/data/a.py\n",
        "src/**/a.py\n",
        "/*\n!/src/\n",
        "*\n!*/\n!a.py\n",
        "*/\n!src/\n",
        "b*/\n!src/\n",
        "build/\n!src/\n!data/\n",
        "data/\r\nbuild/\r\n",
        "\ufeffdata/\n",
        "x\\ y/\n",
        "x y/   \n",
        "data/\\  \n",
        "# data/\n\\#data\n\n   \n",
        "[ab].py\n",
        "[!a].py\n",
        "[^a].py\n",
        "[[:alpha:]].py\n",
        "?.py\n!src/?.py\n",
        "[a\n",
        "[z-a].py\n",
        "src\\\n",
        "!\n/\n//\n!/\n",
        "**\n!src/\n",
        "**/\n",
        "data",
    ],
)
def test_one_ignore_file(tmp_path: Path, patterns: str) -> None:
    root = tree(tmp_path / "r", {".gitignore": patterns, **dict.fromkeys(MANY, "")})
    assert by_us(root) == by_git(root)


@pytest.mark.parametrize(
    "ignores",
    [
        {".gitignore": "a.py\n", "src/.gitignore": "!a.py\n"},
        {".gitignore": "!a.py\n", "src/.gitignore": "a.py\n"},
        {".gitignore": "src/data/\n", "src/.gitignore": "!data/\n"},
        {".gitignore": "data/\n", "data/.gitignore": "!*\n"},
        {"src/.gitignore": "/a.py\ndata/b.py\n"},
        {"src/data/.gitignore": "*\n!.gitignore\n"},
        {".gitignore": "*.py\n", "src/.gitignore": "!*.py\n", "src/data/.gitignore": "a.py\n"},
        {".git/info/exclude": "data/\na.py\n", "src/.gitignore": "!a.py\n"},
    ],
)
def test_nested_ignore_files(tmp_path: Path, ignores: dict[str, str]) -> None:
    git(tmp_path, "init", "-q", "r")
    root = tree(tmp_path / "r", {**ignores, **dict.fromkeys(MANY, "")})
    assert by_us(root) == by_git(root)
    assert by_us(root, "src") == by_git(root, "src/")
    if by_git(root, "src/data/"):
        assert by_us(root, "src/data") == by_git(root, "src/data/")


def test_a_tracked_file_is_never_ignored(tmp_path: Path) -> None:
    root = tree(tmp_path / "r", {".gitignore": "data/\nsrc/*\n*.pyc\n", **dict.fromkeys(MANY, ""), "data/new.py": ""})
    git(root, "add", "-f", "data/sub/b.py", "src/a.py")
    assert by_us(root) == by_git(root)
    assert "data/sub/b.py" in by_us(root)
    assert "data/new.py" not in by_us(root)
    for version in ("3", "4", "2"):
        (root / "src/b.py").write_text("")
        git(root, "update-index", "--index-version", version)
        git(root, "add", "-f", "-N", "src/b.py")  # an entry that is only intended needs version 3
        assert by_us(root) == by_git(root)
        git(root, "rm", "-q", "--cached", "src/b.py")


def test_an_index_that_git_refuses_counts_for_nothing(tmp_path: Path) -> None:
    root = tree(tmp_path / "r", {".gitignore": "data/\n", **dict.fromkeys(MANY, "")})
    git(root, "add", "-f", "data/a.py", "src/a.py")
    whole = (root / ".git/index").read_bytes()
    for data in (b"", b"DIRC", b"junk" * 100, whole.replace(b"DIRC\0\0\0\2", b"DIRC\0\0\0\7")):
        (root / ".git/index").write_bytes(data)
        assert "data/a.py" not in by_us(root)
        assert "src/a.py" in by_us(root)


def test_without_git_patterns_count_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree(tmp_path / "r", {".gitignore": "data/\n", **dict.fromkeys(MANY, "")})
    git(root, "add", "-f", "data/a.py")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "data/a.py" not in by_us(root)
    assert "src/a.py" in by_us(root)


def test_a_named_folder_is_read_even_if_ignored(tmp_path: Path) -> None:
    root = tree(
        tmp_path / "r", {".gitignore": "build/\nb.py\n", "build/a.py": "", "build/b.py": "", "build/c/d.py": ""}
    )
    assert by_us(root) == []
    assert by_us(root, "build") == ["build/a.py", "build/c/d.py"]


def test_the_users_own_ignore_file(tmp_path: Path, home: Path) -> None:
    root = tree(tmp_path / "r", {".gitignore": "!src/a.py\n", **dict.fromkeys(MANY, "")})
    default = home / ".config" / "git" / "ignore"
    default.parent.mkdir(parents=True)
    default.write_text("a.py\n")
    assert by_us(root) == by_git(root)
    assert "data/a.py" not in by_us(root)
    (home / "own").write_text("b.py\n")
    git(root, "config", "--global", "core.excludesFile", "~/own")
    assert by_us(root) == by_git(root)
    assert "data/a.py" in by_us(root)
    assert "b.py" not in by_us(root)
    (home / "other ones").write_text("/data/\n")
    git(root, "config", "core.excludesFile", str(home / "other ones"))
    assert by_us(root) == by_git(root)
    assert "b.py" in by_us(root)


def test_linked_work_trees_and_inner_repositories(tmp_path: Path) -> None:
    root = tree(tmp_path / "r", {".gitignore": "a.py\n", "b.py": "", ".git-keep": ""})
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    (root / ".git" / "info" / "exclude").write_text("c.py\n")
    git(root, "worktree", "add", "-q", str(tmp_path / "w"))
    work = tree(tmp_path / "w", {"a.py": "", "c.py": "", "d.py": ""})
    assert by_us(work) == by_git(work) == ["b.py", "d.py"]

    inner = tree(root / "third" / "inner", {".gitignore": "b.py\n", "a.py": "", "b.py": "", "c.py": ""})
    assert by_git(inner) == ["a.py", "c.py"]
    assert by_us(root) == ["b.py", "third/inner/a.py", "third/inner/c.py"]
    assert by_us(inner) == ["a.py", "c.py"]


def test_a_submodule_in_an_ignored_folder(tmp_path: Path) -> None:
    other = tree(tmp_path / "o", {"m.py": "", ".gitignore": "n.py\n"})
    git(other, "add", ".")
    git(other, "commit", "-qm", "x")
    root = tree(tmp_path / "r", {".gitignore": "libs/\n", "libs/z.py": "", "a.py": ""})
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "-f", str(other), "libs/o")
    (root / "libs/o/n.py").touch()
    expected = git(root, "ls-files", "--recurse-submodules").split()
    assert (
        by_us(root) == sorted(name for name in [*expected, "a.py"] if name.endswith(".py")) == ["a.py", "libs/o/m.py"]
    )


def test_without_git_the_ignore_files_of_the_folder_count(tmp_path: Path) -> None:
    for name, text in {
        "r/.gitignore": "a.py\n",
        "r/a.py": "",
        "r/s/b.py": "",
        "r/.git/x": "",
        ".gitignore": "b.py",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert Repository.around(str(tmp_path / "r")) is None
    assert by_us(tmp_path / "r") == ["s/b.py"]


def test_an_ignore_file_that_is_a_link_counts_for_nothing(tmp_path: Path) -> None:
    root = tree(tmp_path / "r", {"rules": "a.py\n", "a.py": ""})
    (root / ".gitignore").symlink_to("rules")
    assert by_us(root) == by_git(root) == ["a.py"]


def test_names_and_patterns_that_are_not_utf_8(tmp_path: Path) -> None:
    root = tree(tmp_path / "r", {"a.py": ""})
    for name in (b"\xe4.py", b"\xf6.py"):
        Path(os.fsdecode(bytes(root) + b"/" + name)).touch()
    (root / ".gitignore").write_bytes(b"\xe4.py\n")
    assert by_us(root) == by_git(root) == ["a.py", os.fsdecode(b"\xf6.py")]


SEGMENTS = [
    *(
        "*",
        "**",
        "a",
        "b",
        "foo",
        "ab",
        "*.py",
        "a*",
        "?",
        "[ab]",
        "[!a]*",
        "[a-c]*.py",
        "foo.py",
        "a.py",
        "f?o",
        "**a",
    ),
    *("*b*", "\\#h.py", "\\!n", "[[:digit:]]*", "x[0-9].py", "a\\ b", "a b.py", "#h", "!n.py", "[^f]*", "[]]"),
    *("test_*.py", "*_a.py", "?.py", "fo*o", "[z-a]*", "\\a", "a\\*", "b?*"),
]
FOLDERS = ["a", "b", "ab", "foo", "a b", "x1", "#h", "!n", "Foo"]
FILES = ["a.py", "b.py", "ab.py", "foo.py", "x1.py", "a b.py", "#h.py", "!n.py", "test_a.py"]


def some_pattern(chance: random.Random) -> str:
    if chance.random() < 0.05:
        return chance.choice(["", "#c", "/", "!", "**/", "/**", "!/", "\\", "//", "***", "!**", "*/", "!*/"])
    text = "/".join(chance.choice(SEGMENTS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3])))
    before = chance.choice(["", "", "!"]) + chance.choice(["", "", "/"])
    return before + text + chance.choice(["", "", "/"]) + chance.choice([*[""] * 12, " ", "  ", "\\ ", "\t"])


def random_tree_agrees(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    folders = [""]
    for _ in range(chance.randint(3, 10)):
        folders.append(f"{chance.choice(folders)}{chance.choice(FOLDERS)}/")
    files = {f"{folder}{name}": "" for folder in folders for name in chance.sample(FILES, chance.randint(1, 5))}
    for folder in chance.sample(folders, min(3, len(folders))):
        end = chance.choice(["\n", "\r\n"])
        files[f"{folder}.gitignore"] = end.join(some_pattern(chance) for _ in range(chance.randint(1, 5)))
    tree(root, files)
    if chance.random() < 0.5:
        git(root, "add", "-f", *(f"./{name}" for name in chance.sample(sorted(files), 2)))
    rules = {name: text for name, text in files.items() if text}
    assert by_us(root) == by_git(root), (seed, rules)


@pytest.mark.parametrize("seed", range(30))
def test_random_trees(tmp_path: Path, seed: int) -> None:
    random_tree_agrees(tmp_path / "r", seed)


@pytest.mark.slow
def test_many_random_trees(tmp_path: Path) -> None:
    for seed in range(1000, 1600):
        random_tree_agrees(tmp_path / str(seed), seed)
