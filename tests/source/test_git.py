"""git is asked about the folder that is named, whatever a hook hands down, and in English."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codemods.source.git import run_git


def made(folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


def test_the_folder_counts_and_not_what_a_hook_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = made(tmp_path / "here"), made(tmp_path / "there")
    monkeypatch.setenv("GIT_DIR", str(there / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(there))
    done = run_git(here, "rev-parse", "--show-toplevel")
    assert Path(done.stdout.decode().strip()).resolve() == here.resolve()


def test_what_it_is_given_to_read(tmp_path: Path) -> None:
    done = run_git(made(tmp_path / "here"), "hash-object", "--stdin", stdin=b"")
    assert done.stdout.strip() == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_a_failure_is_an_answer(tmp_path: Path) -> None:
    done = run_git(tmp_path, "rev-parse", "--verify", "HEAD")
    assert done.returncode
    assert b"not a git repository" in done.stderr


def test_no_git_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        run_git(tmp_path, "status")


@pytest.mark.parametrize("words", [("ls-files", "-z"), ("status", "--porcelain"), ("diff", "--name-only", "HEAD")])
def test_no_program_of_the_repository_is_run(words: tuple[str, ...], tmp_path: Path) -> None:
    here, mark = made(tmp_path / "here"), tmp_path / "ran"
    program = tmp_path / "watch.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    (here / "a.py").touch()
    run_git(here, "add", "a.py")
    run_git(here, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")
    run_git(here, "config", "core.fsmonitor", str(program))
    subprocess.run(["git", "-C", here, *words], check=True, capture_output=True)
    assert mark.exists()
    mark.unlink()
    assert run_git(here, *words).returncode == 0
    assert not mark.exists()
