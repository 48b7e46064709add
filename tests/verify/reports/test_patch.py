"""Diffs are read as they are written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codemods.source.diffs import unified
from tests.verify.reports.tools import AFTER, BEFORE
from verify.reports.patch import parse


def test_changed_words_are_marked() -> None:
    (file,) = parse(unified("train.py", BEFORE.encode(), AFTER.encode()).decode())
    assert (file.name, file.added, file.removed) == ("train.py", 2, 2)
    marked = ["".join(p.text for p in line.pieces if p.marked) for line in file.hunks[0].lines if line.sign in "+-"]
    assert marked == ["retain_graph=True", "", "", ".item()"]
    numbers = [(line.sign, line.old, line.new) for line in file.hunks[0].lines]
    assert numbers[:5] == [(" ", 6, 6), (" ", 7, 7), (" ", 8, 8), ("-", 9, None), ("+", None, 9)]


def test_lines_that_look_like_headers() -> None:
    old, new = b"-- x\n++ y\n@@ -1 +1 @@\n", b"-- z\n++ y\n@@ -2 +2 @@\n"
    files = parse(unified("a b.py", old, new).decode() + unified("c.py", b"1\n", b"2\n").decode())
    assert [file.name for file in files] == ["a b.py", "c.py"]
    assert (files[0].added, files[0].removed) == (2, 2)


def test_missing_newline_is_told_of_its_own_side() -> None:
    (file,) = parse(unified("a.py", b"a\nb", b"a\nc\n").decode())
    assert [line.sign for line in file.hunks[0].lines] == [" ", "-", "\\", "+"]
    (file,) = parse(unified("a.py", b"a\nb", b"c\nb").decode())
    assert [line.sign for line in file.hunks[0].lines] == ["-", "+", " ", "\\"]


def test_new_and_empty() -> None:
    (file,) = parse(unified("a.py", b"", b"x\ny\n").decode())
    assert [(line.sign, line.old, line.new) for line in file.hunks[0].lines] == [("+", None, 1), ("+", None, 2)]
    assert parse("") == []
    assert parse("no diff\nat all\n") == []
    assert parse("@@ -1 +1 @@\n-a\n+b\n") == [], "a hunk of no file"


def test_control_characters_are_shown() -> None:
    (file,) = parse(unified("a.py", b"x\n", b"\x1b[7mx\x00\n").decode())
    text = "".join(piece.text for line in file.hunks[0].lines for piece in line.pieces)
    assert "^[[7m" in text
    assert "^@" in text
    assert "\x1b" not in text


@given(st.lists(st.sampled_from("abc-+ @\\"), max_size=30), st.lists(st.sampled_from("abc-+ @\\"), max_size=30))
def test_every_line_comes_through(old: list[str], new: list[str]) -> None:
    diff = unified("a.py", "".join(f"{x}\n" for x in old).encode(), "".join(f"{x}\n" for x in new).encode()).decode()
    read = [
        line.sign + "".join(piece.text for piece in line.pieces)
        for file in parse(diff)
        for hunk in file.hunks
        for line in hunk.lines
    ]
    # Within a changed block all that is gone stands before all that is new, as in the diff.
    written = [line for line in diff.split("\n")[2:-1] if not line.startswith("@@ -")]
    assert sorted(read) == sorted(written)
