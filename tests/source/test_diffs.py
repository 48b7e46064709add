"""Diffs: what programs take byte for byte, and what people see."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.source.diffs import blocks, coloured, header_name, mark_words, printable, unified

CONTENT = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"c\r\n", b"d\r", b"\x0c\n", b"e"]), max_size=30).map(
    b"".join
)


def take(old: bytes, diff: bytes) -> bytes:
    """A strict patch of our own: every context and removed line must stand exactly where the hunk says."""
    lines = re.findall(rb"[^\n]*\n|[^\n]+", old)
    body = re.findall(rb"[^\n]*\n", diff)[2:]
    out: list[bytes] = []
    place = 0
    for number, line in enumerate(body):
        follower = body[number + 1] if number + 1 < len(body) else b""
        content = line[1:-1] if follower.startswith(b"\\") else line[1:]
        if line.startswith(b"@@"):
            match = re.fullmatch(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n", line)
            assert match
            start = int(match[1]) - (match[2] != b"0")
            out += lines[place:start]
            place = start
            assert len(out) == int(match[3]) - (match[4] != b"0")
        elif line.startswith((b" ", b"-")):
            assert lines[place] == content
            place += 1
            if line.startswith(b" "):
                out.append(content)
        elif line.startswith(b"+"):
            out.append(content)
        else:
            assert line == b"\\ No newline at end of file\n"
    return b"".join(out + lines[place:])


@given(old=CONTENT, new=CONTENT, context=st.integers(0, 4))
def test_any_diff_gives_the_new_text_back(old: bytes, new: bytes, context: int) -> None:
    diff = unified("a.py", old, new, context=context)
    assert (diff == b"") == (old == new)
    assert take(old, diff) == new


@pytest.mark.parametrize("command", [["git", "apply", "--whitespace=nowarn"], ["patch", "-p1", "-s"]])
def test_git_and_patch_take_a_hundred_random_ones(tmp_path: Path, command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    chance = random.Random(7)
    diff, wanted = b"", {}
    for number in range(100):
        lines = [chance.choice([b"a\n", b"b\n", b"\n", b"c\r\n", b"\td\r\n", b"e\x0c\n"]) for _ in range(40)]
        changed = [line if chance.random() < 0.8 else b"new %d\r\n" % chance.randrange(9) for line in lines]
        old, new = b"".join(lines) + b"tail" * (number % 2), b"".join(changed) + b"tail" * (number % 3 == 0)
        name = f"file {number}.py" if number % 5 else f"file{number}.py"
        (tmp_path / name).write_bytes(old)
        diff += unified(name, old, new)
        wanted[name] = new
    taken = subprocess.run(command, input=diff, cwd=tmp_path, capture_output=True, check=False)
    assert taken.returncode == 0, taken.stdout + taken.stderr
    assert {name: (tmp_path / name).read_bytes() for name in wanted} == wanted


def test_equal_texts_have_no_diff() -> None:
    assert unified("a.py", b"x\n", b"x\n") == b""
    assert coloured("a.py", "x\n", "x\n") == ""


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("a.py", b"b/a.py"),
        ("a b.py", b"b/a b.py\t"),
        ("gr\u00fcn.py", "b/gr\u00fcn.py".encode()),
        ('q".py', b'"b/q\\".py"'),
        ("new\nline\x01.py", b'"b/new\\nline\\001.py"'),
        ("/tmp/a.py", b"b/tmp/a.py"),
        ("bad\udcff.py", b"b/bad\xff.py"),
    ],
)
def test_names_are_written_as_git_writes_them(path: str, header: bytes) -> None:
    assert header_name("b", path) == header


def test_hunks_that_touch_are_one() -> None:
    old = b"".join(b"%d\n" % n for n in range(20))
    near = old.replace(b"\n3\n", b"\nx\n").replace(b"\n10\n", b"\ny\n")
    far = old.replace(b"\n3\n", b"\nx\n").replace(b"\n11\n", b"\ny\n")
    assert unified("a", old, near).count(b"@@ -") == 1
    assert unified("a", old, far).count(b"@@ -") == 2


def test_blocks_cover_both_sides_without_gaps() -> None:
    found = blocks(list("abcdef"), list("abxdfg"))
    assert [(b.old_end, b.new_end) for b in found[:-1]] == [(b.old_start, b.new_start) for b in found[1:]]
    assert (found[0].old_start, found[0].new_start, found[-1].old_end, found[-1].new_end) == (0, 0, 6, 6)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d*m", "", text)


def test_colours_add_nothing_but_colours() -> None:
    old, new = "a = 1\ntotal += loss\nb = 2", "a = 1\ntotal += loss.item()\nb = 2"
    assert plain(coloured("x y.py", old, new)) == unified("x y.py", old.encode(), new.encode()).decode().replace(
        "\t", ""
    ).replace(" b = 2\n\\ No newline at end of file\n", " b = 2\n")


def test_changed_words_are_marked_and_others_are_not() -> None:
    removed, added = mark_words(["loss.backward(retain_graph=True)\n"], ["loss.backward()\n"])
    assert removed == ["loss.backward(\x1b[7mretain_graph=True\x1b[27m)"]
    assert added == ["loss.backward()"]


def test_lines_moved_under_a_block_show_their_new_indentation() -> None:
    removed, added = mark_words(["for x in y:\n"], ["with a:\n", "    for x in y:\n"])
    assert removed == ["for x in y:"]
    assert added == ["with a:", "\x1b[7m    \x1b[27mfor x in y:"]


def test_nothing_is_marked_where_nothing_is_left() -> None:
    assert mark_words(["alpha\n"], ["beta(gamma)\n"]) == (["alpha"], ["beta(gamma)"])
    assert mark_words([], ["new\n"]) == ([], ["new"])


@given(old=CONTENT, new=CONTENT)
def test_marking_loses_no_word(old: bytes, new: bytes) -> None:
    sides = [re.findall(r"[^\n]*\n|[^\n]+", side.decode()) for side in (old, new)]
    for side, marked in zip(sides, mark_words(*sides), strict=True):
        assert [plain(line) for line in marked] == [printable(line.rstrip("\r\n")) for line in side]


def test_a_file_cannot_drive_the_terminal() -> None:
    shown = coloured("\x1b]0;title\x07.py", "x = '\x1b[2J'\n", "y = '\x9b2J'\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]", shown)
    assert plain(shown).count("\x1b") == 0


def test_a_file_of_twenty_thousand_lines_changed_everywhere_takes_a_moment() -> None:
    old = b"".join(b"x = wrong\ny%d = 1\n" % number for number in range(10_000))
    started = time.process_time()
    assert take(old, unified("a.py", old, old.replace(b"wrong", b"right"))) == old.replace(b"wrong", b"right")
    assert time.process_time() - started < 5


def test_a_byte_of_a_name_that_is_no_utf_8_is_shown_as_one() -> None:
    assert printable("d\udcff/train.py") == "d\\xff/train.py"
    assert printable("\ud83d") == "\\ud83d"
