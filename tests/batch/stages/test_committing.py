"""Commits: what stands in which, and that together they are the rewrite, byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Limits
from codemods.batch.git import Git
from codemods.batch.sources import of_path
from codemods.batch.stages.cloning import clone, write_tree
from codemods.batch.stages.committing import bundle, commits_of, fetch_bundle, write_branch
from codemods.rewriting.apply import apply
from codemods.rewriting.result import ApplyResult
from codemods.source.options import Options
from codemods.source.targets import read_targets
from tests.batch.tools import TRAIN, git, repository

WHO = ("A Person", "person@example.org")
HEAD = "# -*- coding: latin-1 -*-\n# \xfc\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files with two findings each, one of them executable, in Latin-1 and with CRLF."""
    odd = (HEAD + TRAIN).replace("\n", "\r\n").encode("latin-1")
    source = repository(tmp_path / "source", {'a "b"\\ü.py': TRAIN, "sub/odd.py": odd})
    git(source, "update-index", "--chmod=+x", "sub/odd.py")
    git(source, "commit", "-q", "-m", "mode")
    clone(Git(of_path(source)), of_path(source), "", tmp_path / "clone", Limits())
    write_tree(Git(), tmp_path / "clone", tmp_path / "tree")
    monkeypatch.chdir(tmp_path / "tree")
    return tmp_path / "tree"


def applied(**choices: object) -> ApplyResult:
    targets = read_targets(["."]).sources
    return apply(targets, options=Options(), dry_run=True, jobs=1, **choices)  # type: ignore[arg-type]


def written(tree: Path, style: str) -> list[tuple[str, list[str]]]:
    """Make the branch; its commits, oldest first: the title and the files."""
    result = applied()
    commits = commits_of(result, style, options=Options())
    base = git(tree, "rev-parse", "HEAD")
    head = write_branch(Git(), tree, "fix/graph", base, commits, WHO, 1_700_000_000)
    assert head == git(tree, "rev-parse", "fix/graph")
    for rewrite in result.rewrites:
        shown = Git().run("cat-file", "blob", f"fix/graph:{rewrite.source.path}", cwd=tree)
        assert shown == rewrite.encoded
    rows = git(tree, "ls-tree", "-r", "-z", "fix/graph").split("\0")
    assert [row.split()[0] for row in rows if row] == ["100644", "100755"]
    titles = git(tree, "log", "--reverse", "--format=%H %an <%ae> %at %s", f"{base}..fix/graph").splitlines()
    told = []
    for line in titles:
        commit, rest = line.split(" ", 1)
        assert rest.startswith("A Person <person@example.org> 1700000000 ")
        names = git(tree, "diff-tree", "--no-commit-id", "--name-only", "-r", "-z", commit)
        told.append((rest.split(" ", 4)[4], sorted(os.path.basename(name) for name in names.split("\0") if name)))
    return told


NAME = 'a "b"\\ü.py'


def test_a_commit_a_rule(tree: Path) -> None:
    assert sorted(written(tree, "per-rule")) == [
        ("Fix attached-loss-total in 2 files", [NAME, "odd.py"]),
        ("Fix surplus-retain-graph in 2 files", [NAME, "odd.py"]),
    ]


def test_a_commit_a_file(tree: Path) -> None:
    assert [paths for _, paths in written(tree, "per-file")] == [[NAME], ["odd.py"]]


def test_one_commit(tree: Path) -> None:
    assert written(tree, "one") == [("Fix surplus-retain-graph and attached-loss-total in 2 files", [NAME, "odd.py"])]


def test_commits_are_the_same_each_time(tree: Path) -> None:
    written(tree, "per-rule")
    first = git(tree, "rev-parse", "fix/graph")
    written(tree, "per-rule")
    assert git(tree, "rev-parse", "fix/graph") == first


def test_rules_that_share_a_line_are_one_commit(tree: Path) -> None:
    for path in tree.rglob("*.py"):
        text = path.read_bytes()
        assert b"loss.backward(retain_graph=True)" in text
        text = text.replace(b"total += loss", b"pass")
        text = text.replace(b"loss.backward(retain_graph=True)", b"loss.backward(retain_graph=True); total += loss")
        path.write_bytes(text)
    result = applied()
    commits = commits_of(result, "per-rule", options=Options())
    whole = {path: data for commit in commits for path, data in commit.files.items()}
    assert whole == {rewrite.source.path: rewrite.encoded for rewrite in result.rewrites}
    assert len(commits) == 1


def test_nothing_to_commit(tree: Path) -> None:
    assert commits_of(applied(wanted=lambda _: False), "per-rule", options=Options()) == []


def test_a_branch_travels(tree: Path, tmp_path: Path) -> None:
    written(tree, "per-rule")
    base = git(tree, "rev-parse", "HEAD")
    bundle(Git(), tree, "fix/graph", base, tmp_path / "b.bundle")
    target = tmp_path / "clone"
    for _ in range(2):
        head = fetch_bundle(Git(of_path(target)), target, "fix/graph", tmp_path / "b.bundle")
        assert head == git(tree, "rev-parse", "fix/graph") == git(target, "rev-parse", "fix/graph")
