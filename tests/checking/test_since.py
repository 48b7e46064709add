"""Which lines changed since a revision, told by real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codemods.checking.changed_lines import SinceError, changes_since
from codemods.source.files import SourceFile, display_path, read_source
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span
from tests import fakes

LINES = "".join(f"line{number} = {number}\n" for number in range(1, 11))


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
        return subprocess.run(
            ["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True, text=True, env=env
        ).stdout

    def write(self, name: str, text: str | bytes) -> SourceFile:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.read(name)

    def read(self, name: str) -> SourceFile:
        return read_source(self.folder / name)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x", "--allow-empty")

    def touched(self, name: str, revision: str = "main") -> list[int] | None:
        source = self.read(name)
        lines = changes_since(revision, [source]).lines.get(source.path, frozenset())
        return None if lines is None else sorted(lines)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with `a.py` on main, and a branch `work` checked out."""
    monkeypatch.chdir(tmp_path)
    made = Repository(tmp_path / "repo")
    made.write("a.py", LINES)
    made.write("b.py", LINES)
    made.commit()
    made.git("checkout", "-q", "-b", "work")
    return made


def test_nothing_changed(repository: Repository) -> None:
    assert repository.touched("a.py") == []


def test_committed_staged_and_unstaged_changes_count(repository: Repository) -> None:
    repository.write("a.py", LINES.replace("line2 = 2", "line2 = 22"))
    repository.commit()
    repository.write("a.py", LINES.replace("line2 = 2", "line2 = 22").replace("line5 = 5", "line5 = 55"))
    repository.git("add", "-A")
    text = LINES.replace("line2 = 2", "line2 = 22").replace("line5 = 5", "line5 = 55") + "last = 1\n"
    repository.write("a.py", text)
    assert repository.touched("a.py") == [2, 5, 11]
    assert repository.touched("b.py") == []
    assert repository.touched("a.py", "HEAD") == [5, 11]


def test_what_others_did_since_does_not_count(repository: Repository) -> None:
    repository.write("a.py", LINES.replace("line2 = 2", "line2 = 22"))
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("b.py", LINES.replace("line9 = 9", "line9 = 99"))
    repository.write("a.py", "first = 0\n" + LINES)
    repository.commit()
    repository.git("checkout", "-q", "work")
    assert repository.touched("b.py") == []
    assert repository.touched("a.py") == [2]


def test_lines_taken_out_touch_their_neighbours(repository: Repository) -> None:
    repository.write("a.py", LINES.replace("line4 = 4\n", ""))
    assert repository.touched("a.py") == [3, 4]


def test_a_moved_line_and_a_changed_line_end(repository: Repository) -> None:
    repository.write("a.py", "new = 1\n" + LINES)
    assert repository.touched("a.py") == [1]
    repository.write("b.py", LINES.replace("\n", "\r\n"))
    assert repository.touched("b.py") == []


def test_new_files_are_new_from_end_to_end(repository: Repository) -> None:
    repository.write("untracked.py", LINES)
    repository.write(".gitignore", "ignored.py\n")
    repository.write("ignored.py", LINES)
    assert repository.touched("untracked.py") is None
    assert repository.touched("ignored.py") is None
    repository.git("add", "untracked.py")
    assert repository.touched("untracked.py") is None
    repository.commit()
    assert repository.touched("untracked.py") is None
    assert repository.touched("untracked.py", "HEAD") == []


def test_a_renamed_file_is_compared_with_what_it_was(repository: Repository) -> None:
    repository.git("mv", "a.py", "sub file.py")
    text = LINES.replace("line7 = 7", "line7 = 77")
    repository.write("sub file.py", text)
    assert repository.touched("sub file.py") == [7]
    repository.commit()
    assert repository.touched("sub file.py") == [7]


def test_names_of_any_kind(repository: Repository) -> None:
    names = ["gr\u00fcn.py", 'quo"te.py', "tab\t.py", "line\nend.py", "-x.py", "\u00e9/\u00e8.py"]
    for name in names:
        repository.write(name, LINES)
    repository.commit()
    for name in names:
        repository.write(name, LINES + "x = 1\n")
        assert repository.touched(name, "HEAD") == [11]


def test_odd_encodings_and_settings_of_the_user(repository: Repository) -> None:
    latin = "# -*- coding: latin-1 -*-\nx = '\u00e9'\ny = 1\n"
    repository.write("l.py", latin.encode("latin-1"))
    repository.write(".gitattributes", "*.py -diff\n")
    repository.commit()
    for setting in ("diff.noprefix=true", "color.ui=always", "diff.external=false", "diff.renames=false"):
        repository.git("config", *setting.split("="))
    repository.write("l.py", latin.replace("y = 1", "y = 2").encode("latin-1"))
    assert repository.touched("l.py", "HEAD") == [3]


def test_from_a_folder_below_and_within_a_hook(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("pkg/c.py", LINES)
    repository.commit()
    repository.write("pkg/c.py", "x = 1\n" + LINES)
    monkeypatch.chdir(repository.folder / "pkg")
    monkeypatch.setenv("GIT_DIR", str(repository.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "nowhere")
    source = read_source("c.py")
    assert source.path == "c.py"
    assert changes_since("HEAD", [source]).lines == {"c.py": frozenset({1})}


def test_a_link_is_what_it_leads_to(repository: Repository) -> None:
    (repository.folder / "link.py").symlink_to("a.py")
    repository.write("a.py", "x = 1\n" + LINES)
    link = repository.read("link.py")
    assert changes_since("HEAD", [link]).lines == {display_path(repository.folder / "link.py"): frozenset({1})}


def finding(path: str, first: int, last: int) -> Finding:
    return Finding("rule", path, Span(first, 0, last, 5), Promise.EXACT, "")


def test_a_finding_counts_by_the_lines_of_its_own_statement(repository: Repository) -> None:
    repository.write("a.py", LINES.replace("line5 = 5", "line5 = 55"))
    source = repository.read("a.py")
    changes = changes_since("main", [source])
    assert [changes.touch(finding(source.path, *lines)) for lines in ((4, 4), (5, 5), (3, 6), (6, 9))] == [
        False,
        True,
        True,
        False,
    ]
    assert not changes.touch(finding("other.py", 5, 5))


def test_an_unknown_revision(repository: Repository) -> None:
    for revision in ("nowhere", "", "-x", "--all", "main..work", "HEAD~99", "a.py", "\0"):
        with pytest.raises(SinceError, match="no such revision"):
            changes_since(revision, [repository.read("a.py")])


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(SinceError, match="needs a git repository"):
        changes_since("main", [fakes.source("a.py", "x", tmp_path)])


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    made = Repository(tmp_path / "repo")
    with pytest.raises(SinceError, match="no such revision"):
        changes_since("HEAD", [made.write("a.py", LINES)])


def test_no_git(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    source = repository.read("a.py")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SinceError, match="which is not on the PATH"):
        changes_since("main", [source])


def test_histories_that_never_met(repository: Repository) -> None:
    repository.git("checkout", "-q", "--orphan", "other")
    repository.write("a.py", "x = 1\n")
    repository.commit()
    with pytest.raises(SinceError, match="no history in common"):
        changes_since("main", [repository.read("a.py")])


def test_a_shallow_clone_says_so(repository: Repository, tmp_path: Path) -> None:
    repository.write("a.py", LINES + "x = 1\n")
    repository.commit()
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.folder}", str(clone))
    with pytest.raises(SinceError, match=r"no such revision .* shallow clone"):
        changes_since("origin/main", [read_source(clone / "a.py")])
    repository.git("-C", str(clone), "fetch", "-q", "--depth", "1", "origin", "main:main")
    with pytest.raises(SinceError, match=r"no history in common.*shallow clone"):
        changes_since("main", [read_source(clone / "a.py")])


def test_submodules(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.write("s.py", LINES)
    other.commit()
    repository.git("submodule", "--quiet", "add", str(other.folder), "lib")
    repository.commit()
    with pytest.raises(SinceError, match=r"another one than .* --exclude lib"):
        changes_since("main", [repository.read("a.py"), repository.read("lib/s.py")])
    # By itself it is a repository like any other.
    (repository.folder / "lib" / "s.py").write_text("x = 1\n" + LINES)
    assert repository.touched("lib/s.py", "HEAD") == [1]
    # And to the tree around it it is no file.
    assert repository.touched("a.py") == []
