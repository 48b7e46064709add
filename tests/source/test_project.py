from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.discovery import project_root


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "setup.py", "setup.cfg"])
def test_nearest_marked_folder(tmp_path: Path, mark: str) -> None:
    inner = tmp_path / "proj" / "src" / "pkg"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "proj" / mark).touch()
    assert project_root(inner / "a.py") == tmp_path / "proj"
    assert project_root(inner) == tmp_path / "proj"
    assert project_root(tmp_path / "proj" / mark) == tmp_path / "proj"


def test_own_folder_without_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The home directory ends the search, so nothing above this test's folder has a say.
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert project_root(tmp_path / "a" / "b" / "x.py") == tmp_path / "a" / "b"
    assert project_root(tmp_path / "a" / "b") == tmp_path / "a" / "b"


def test_home_is_no_project_even_with_dotfiles_in_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "disk" / "me"
    (real / ".git").mkdir(parents=True)
    (real / "work").mkdir()
    (tmp_path / "setup.py").touch()
    (tmp_path / "home").symlink_to("disk/me")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for home in (tmp_path / "home", real):
        assert project_root(home / "work" / "x.py") == home / "work"
    monkeypatch.chdir(real / "work")
    assert project_root("x.py") == real / "work"


def test_the_file_systems_root_is_no_project() -> None:
    assert project_root("/no-such-folder-here/x.py") == Path("/no-such-folder-here")
