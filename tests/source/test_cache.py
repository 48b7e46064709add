"""What is kept between runs: read back by who wrote it, and by nobody else."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.source import cache
from codemods.source.cache import FOLDER, Cache, clean


@pytest.fixture(autouse=True)
def user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home for the key of a user."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    cache._key.cache_clear()
    yield home
    cache._key.cache_clear()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    Cache(tmp_path).write("one", {"a": (1, 2)})
    assert Cache(tmp_path).read("one") == {"a": (1, 2)}
    assert Cache(tmp_path).read("two") is None


def test_git_sees_nothing_of_it(tmp_path: Path) -> None:
    Cache(tmp_path).write("one", 1)
    assert (tmp_path / FOLDER / ".gitignore").read_text() == "*\n"


class Harmful:
    """What runs when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.mkdir, ("harmed",))


def test_what_others_put_there_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Cache(tmp_path).write("one", 1)
    (tmp_path / FOLDER / "one").write_bytes(bytes(32) + pickle.dumps(Harmful()))
    assert Cache(tmp_path).read("one") is None
    assert not Path("harmed").exists()


def test_another_user_reads_nothing(tmp_path: Path, user: Path) -> None:
    Cache(tmp_path).write("one", 1)
    (user / "codemod" / "key").unlink()
    cache._key.cache_clear()
    assert Cache(tmp_path).read("one") is None


def test_another_codemod_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache(tmp_path).write("one", 1)
    monkeypatch.setattr(cache, "_edition", lambda: "another")
    assert Cache(tmp_path).read("one") is None


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: b"", lambda d: d[:40] + b"?" + d[41:], lambda d: d * 2])
def test_what_is_damaged_is_not_there(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    Cache(tmp_path).write("one", list(range(100)))
    path = tmp_path / FOLDER / "one"
    path.write_bytes(damage(path.read_bytes()))
    assert Cache(tmp_path).read("one") is None
    Cache(tmp_path).write("one", 2)
    assert Cache(tmp_path).read("one") == 2


def test_an_entry_under_another_name_is_not_there(tmp_path: Path) -> None:
    Cache(tmp_path).write("one", 1)
    os.rename(tmp_path / FOLDER / "one", tmp_path / FOLDER / "two")
    assert Cache(tmp_path).read("two") is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / FOLDER).symlink_to(tmp_path / "elsewhere")
    Cache(tmp_path).write("one", 1)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert clean([tmp_path]) == []


def test_where_nothing_can_be_written_nothing_is(tmp_path: Path, user: Path) -> None:
    (tmp_path / FOLDER).write_text("a file")
    Cache(tmp_path).write("one", 1)
    assert Cache(tmp_path).read("one") is None
    shutil.rmtree(user / "codemod")
    (user / "codemod").write_text("a file")
    cache._key.cache_clear()
    Cache(tmp_path / "other").write("one", 1)
    assert not (tmp_path / "other").exists()


def test_two_writers(tmp_path: Path) -> None:
    values = [bytes([n]) * 200_000 for n in range(4)]

    def work(value: bytes) -> None:
        for _ in range(10):
            Cache(tmp_path).write("one", value)
            assert Cache(tmp_path).read("one") in values

    threads = [threading.Thread(target=work, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Cache(tmp_path).read("one") in values
    assert sorted(os.listdir(tmp_path / FOLDER)) == [".gitignore", "CACHEDIR.TAG", "one"]


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        Cache(tmp_path).write(f"result{number}", number)
        os.utime(tmp_path / FOLDER / f"result{number}", (number, number))
    Cache(tmp_path).write("jobs", 1)
    Cache(tmp_path).keep_newest("result", 2)
    assert [Cache(tmp_path).read(f"result{n}") for n in range(5)] == [None, None, None, 3, 4]
    assert Cache(tmp_path).read("jobs") == 1


def test_clean_removes_only_what_is_ours(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("")
    (tmp_path / "below").mkdir()
    Cache(tmp_path).write("one", 1)
    assert clean([tmp_path / "below", tmp_path]) == [tmp_path / FOLDER]
    assert clean([tmp_path]) == []
    (tmp_path / FOLDER).mkdir()
    assert clean([tmp_path]) == []
