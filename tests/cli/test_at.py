"""``apply --at``: what was accepted elsewhere, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Codemod

TEXT = "a = WRONG\nb = WRONG\nc = WRONG\n"


@pytest.fixture
def tree(folder: Path) -> Path:
    (folder / "sub").mkdir()
    for name in ("a.py", "sub/b c.py"):
        (folder / name).write_text(TEXT)
    return folder


def test_only_what_stands_there_is_made(codemod: Codemod, tree: Path) -> None:
    ran = codemod("apply", "--at", "a.py:2", "--at", "sub/b c.py:3:5:")
    assert ran.status == 0
    assert (tree / "a.py").read_text() == TEXT.replace("b = WRONG", "b = right")
    assert (tree / "sub" / "b c.py").read_text() == TEXT.replace("c = WRONG", "c = right")


def test_where_nothing_stands_nothing_is_made(codemod: Codemod, tree: Path) -> None:
    ran = codemod("apply", "--dry-run", "--at", "a.py:9", "--at", "a.py:0", "--at", "a.py:2")
    assert ran.out.count(b"+b = right") == 1
    assert ran.err.splitlines()[:2] == [f"codemod: --at a.py:{line}: nothing to fix there" for line in (9, 0)]
    assert ran.err.count("nothing to fix") == 2
    assert "nothing to fix" not in codemod("apply", "--dry-run", "-q", "--at", "a.py:9").err
    assert codemod("apply", "--dry-run", "--at", f"{tree}/a.py:1").out.count(b"+a = right") == 1


@pytest.mark.parametrize(
    ("place", "said"),
    [("a.py", "must be PATH:LINE"), ("gone.py:3", "not one of the files"), (":3", "must be PATH:LINE")],
)
def test_what_is_no_place(codemod: Codemod, tree: Path, place: str, said: str) -> None:
    ran = codemod("apply", "--at", place)
    assert (ran.status, said in ran.err) == (2, True)
    assert (tree / "a.py").read_text() == TEXT


def test_no_comments_for_the_rest(codemod: Codemod, tree: Path) -> None:
    ran = codemod("apply", "--at", "a.py:1", "--add-ignores")
    assert (ran.status, "--at" in ran.err) == (2, True)
