"""Trees that are refused before anything of them is written, and trees that are not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Limits
from codemods.batch.errors import Failed, Refused
from codemods.batch.git import Git
from codemods.batch.sources import of_path
from codemods.batch.stages.cloning import clone, write_tree
from codemods.batch.stages.inspection import leaves
from tests.batch.tools import CLEAN, commit, git, repository

LIMITS = Limits()


def crafted(folder: Path, entries: list[tuple[str, str, str]], *, literally: bool = True) -> Path:
    """A repository whose tree has ``entries`` (mode, name, content), whatever git thinks of them."""
    repository(folder, {"README": "x"})

    def tree(rows: list[tuple[str, str, str]]) -> str:
        raw = b""
        for mode, name, content in rows:
            folder_of = mode == "40000"
            inner = content if folder_of else git(folder, "hash-object", "-w", "--stdin", input=content.encode())
            raw += f"{mode} {name}".encode() + b"\0" + bytes.fromhex(inner)
        return git(folder, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", input=raw)

    rows = []
    for mode, name, content in entries:
        parts = name.split("//")
        inner = content
        if len(parts) == 2:
            rows.append(("40000", parts[0], tree([(mode, parts[1], content)])))
        else:
            rows.append((mode, name, inner))
    made = git(folder, "commit-tree", tree(rows), "-m", "crafted")
    git(folder, "update-ref", "refs/heads/main", made)
    return folder


def cloned(source: Path, into: Path, limits: Limits = LIMITS) -> dict[str, object]:
    git_ = Git(of_path(source))
    return clone(git_, of_path(source), "", into, limits)


REFUSED = {
    "a link out": ([("120000", "data", "/etc/passwd")], "data is a link to /etc/passwd, which leads out"),
    "a link up": ([("120000", "up", "../../x")], "which leads out"),
    "a link through a link": ([("120000", "a//l", ".."), ("120000", "out", "a/l/../x")], "which leads out"),
    "a circle of links": ([("120000", "a", "b"), ("120000", "b", "a")], "links in a circle"),
    "a link into .git": ([("120000", "hooks", ".git/hooks")], "which leads into .git"),
    "dots": ([("100644", "..//x", "x")], "a path that leads out"),
    "a folder .git": ([("100644", ".git//config", "x")], "a name that some systems take for .git"),
    "another case": ([("100644", ".GiT//config", "x")], "a name that some systems take for .git"),
    "a short name": ([("100644", "git~1", "x")], "a name that some systems take for .git"),
    "a trailing dot": ([("100644", ".git.", "x")], "a name that some systems take for .git"),
    "a letter that is not seen": ([("100644", ".g\u200cit", "x")], "a name that some systems take for .git"),
    "backslashes": ([("100644", "..\\x", "x")], "a path that leads out"),
    "a clash of case": ([("100644", "A.py", "x"), ("100644", "a.py", "x")], "one file where case does not count"),
    "a clash of folders": (
        [("100644", "Net//a.py", "x"), ("100644", "net//b.py", "x")],
        "Net and net are one file where case does not count",
    ),
    "a link and a folder": ([("120000", "a", "b"), ("100644", "a//x", "x")], "stands in the tree twice"),
    "a long name": ([("100644", "x" * 256, "x")], "a name of 256 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    entries, why = REFUSED[case]
    source = crafted(tmp_path / "source", entries)
    with pytest.raises((Refused, Failed)) as caught:
        cloned(source, tmp_path / "clone")
    assert why in str(caught.value)
    # Of the tree nothing was written.
    assert [path.name for path in (tmp_path / "clone").iterdir()] == [".git"]


def test_too_much(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"f{n}.py": CLEAN for n in range(12)}
    source = repository(tmp_path / "source", {**files, "weights.bin": b"x" * 3000})
    for limits, why in (
        (replace(LIMITS, files=5), "13 files; the limit of this campaign is 5"),
        (replace(LIMITS, file_size=1024), "weights.bin is 2.9 KiB; the limit is 1 KiB a file"),
        (replace(LIMITS, size=3100), "the limit of this campaign is"),
    ):
        with pytest.raises(Refused) as caught:
            cloned(source, tmp_path / "clone", limits)
        assert why in str(caught.value)
        shutil.rmtree(tmp_path / "clone")


def test_what_grows_while_it_is_cloned_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    source = repository(tmp_path / "source", {"random.bin": os.urandom(40_000_000)})
    # Packing so much takes git longer than one look at the folder.
    monkeypatch.setattr("codemods.batch.git._POLL", 0.01)
    with pytest.raises(Refused, match="the limit of this campaign"):
        cloned(source, tmp_path / "clone", replace(LIMITS, size=1 << 20, file_size=1 << 30))


@pytest.mark.parametrize(
    ("links", "path", "leads"),
    [
        ({b"a": b"b"}, b"a", ""),
        ({b"a/b": b"../c"}, b"a/b", ""),
        ({b"a/b": b"../../c"}, b"a/b", "out"),
        ({b"l": b"a/b", b"m": b"l/../x"}, b"m", ""),
        ({b"a/l": b"..", b"m": b"a/l/x"}, b"m", ""),
        ({b"a/l": b"..", b"m": b"a/l/../x"}, b"m", "out"),
        ({b"d": b"."}, b"d", ""),
    ],
)
def test_where_links_lead(links: dict[bytes, bytes], path: bytes, leads: str) -> None:
    assert (leads in leaves(path, links)) if leads else not leaves(path, links)


def test_links_may_be_left_alone(tmp_path: Path) -> None:
    source = crafted(tmp_path / "source", [("120000", "data", "/etc/passwd"), ("100644", "a.py", CLEAN)])
    facts = cloned(source, tmp_path / "clone", replace(LIMITS, links="leave"))
    assert (facts["tree_files"], facts["links"]) == (1, 1)
    write_tree(Git(), tmp_path / "clone", tmp_path / "tree")
    assert not (tmp_path / "tree" / "data").is_symlink()
    assert (tmp_path / "tree" / "data").read_text() == "/etc/passwd"


def test_what_is_all_right(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a b.py": CLEAN, "ünï.py": CLEAN, "sub/deep/x.py": CLEAN, ".gitignore": "*.log\n", ".github/w.yml": "x",
        "digit/x.py": CLEAN, "legit": "x",
    }  # fmt: skip
    source = repository(tmp_path / "source", files)
    (source / "link").symlink_to("sub/deep")
    head = commit(source, {})
    facts = cloned(source, tmp_path / "clone")
    assert (facts["base"], facts["base_branch"], facts["tree_files"], facts["links"]) == (head, "main", 7, 1)


def test_no_commits(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(Refused, match="no commits"):
        cloned(tmp_path / "empty", tmp_path / "clone")


def test_no_repository(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(Failed, match="does not appear to be a git repository"):
        cloned(tmp_path / "folder", tmp_path / "clone")
    with pytest.raises(Failed, match="no such folder"):
        cloned(tmp_path / "nothing", tmp_path / "clone")
