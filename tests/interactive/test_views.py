"""How a change looks, at any width, with and without colours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from codemods.interactive.views import View, fold
from codemods.rewriting.changes import Proof
from tests.interactive.scripted import Tree

LONG = "value = WRONG + some_function(with_many, arguments, that, go, on, and_on, beyond, any, narrow, terminal)"


CHINESE = "\u4e09\u89d2" * 40


def lines(tree: Tree, width: int = 80, *, encoding: str = "utf-8", colour: bool = False) -> list[str]:
    view = View(tree.texts, colour=colour, encoding=encoding)
    total = len(tree.items)
    return [line.plain for number, item in enumerate(tree.items, 1) for line in view.change(item, number, total, width)]


def test_everything_is_told(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef f():\n    a = 1\n    b = WRONG + a\n    c = 1\n    return c\n"
    tree = Tree(tmp_path, {"a.py": text}, {"a.py:6": Proof("broken", "the losses differ at step 3")})
    shown = lines(tree)
    assert shown[:13] == [
        "1/1 wrong [exact] a.py:6",
        "WRONG is here",
        "Promise: the rewritten program makes the same parameter updates, bit for bit;",
        "  only memory, time and the digits of totals change.",
        "Verdict: broken: the losses differ at step 3",
        "  a.py:6: graph produced here",
        "    b = WRONG + a",
        "",
        "@@ a.py:6 in f @@",
        " ",
        " def f():",
        "     a = 1",
        "-    b = WRONG + a",
    ]
    assert shown[shown.index("-    b = WRONG + a") + 1] == "?        ^^^^^"
    assert shown[shown.index("+    b = right + a") + 1] == "?        ^^^^^"
    assert shown[-2:] == ["     c = 1", "     return c"]


def test_partners_are_told_with_their_places(tmp_path: Path) -> None:
    shown = lines(Tree(tmp_path, {"a.py": "x = LEFT\n\n\n\n\n\n\n\n\ny = RIGHTHAND\n"}))
    assert any(line.startswith(("a.py:10: righthand: ", "a.py:1: left: ")) for line in shown)
    assert [line for line in shown if line.startswith("@@")] == ["@@ a.py:1 @@", "@@ a.py:10 @@"]


def test_shared_lines_are_said_to_be(tmp_path: Path) -> None:
    shown = lines(Tree(tmp_path, {"a.py": "x = (WRONG, NEST(1))\n"}))
    assert "   (these lines are shared with 2)" in shown
    assert "   (these lines are shared with 1)" in shown


@pytest.mark.parametrize("width", [20, 39, 79])
@pytest.mark.parametrize("text", [LONG, f"s = '{CHINESE}'; x = WRONG", "x = WRONG  # " + "\t" * 30 + "."])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int, text: str) -> None:
    shown = lines(Tree(tmp_path, {"a.py": f"{text}\n"}), width)
    assert max(map(cell_len, shown)) <= width
    code = [line for line in shown if line.startswith("-")]
    assert "".join(line[1:] for line in code) == text.expandtabs(4)


@pytest.mark.parametrize("colour", [False, True])
def test_nothing_in_a_file_drives_the_terminal(tmp_path: Path, colour: bool) -> None:
    evil = "x = WRONG  # \x1b[2J\x1b]0;title\x07 \x9b31m \u202eesrever\u2066 \ufeff\x08\n"
    shown = lines(Tree(tmp_path, {"a.py": evil}), colour=colour)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e\u2066\ufeff]", "".join(shown))
    joined = "".join(line[1:] for line in shown if line.startswith("-"))
    assert "^[[2J^[]0;title^G \\x9b31m \\u202eesrever\\u2066 \\ufeff^H" in joined


def test_a_terminal_without_unicode_gets_none(tmp_path: Path) -> None:
    shown = lines(Tree(tmp_path, {"a.py": "x = WRONG  # \u4e09\n"}), encoding="ascii")
    assert "-x = WRONG  # \\u4e09" in shown
    assert all(line.isascii() for line in shown)


def test_colours_change_no_character(tmp_path: Path) -> None:
    text = "def f(a: int = 3) -> str:\n    '''A\n    string'''\n    return f'{WRONG}' + str(a)  # why\n"
    tree = Tree(tmp_path, {"a.py": text.replace("f'{WRONG}'", "WRONG")})
    plain = [line for line in lines(tree) if not line.startswith("?")]
    assert lines(tree, colour=True) == plain
    view = View(tree.texts, colour=True)
    shown = list(view.change(tree.items[0], 1, 1, 80))
    gone = next(line for line in shown if line.plain.startswith("-"))
    assert any("reverse" in str(span.style) and gone.plain[span.start : span.end] == "WRONG" for span in gone.spans)
    assert any("magenta" in str(span.style) and gone.plain[span.start : span.end] == "return" for span in gone.spans)
    string = next(line for line in shown if line.plain == "     string'''")
    assert any("yellow" in str(span.style) for span in string.spans)


def test_only_line_ends_changed_or_blank_lines(tmp_path: Path) -> None:
    shown = lines(Tree(tmp_path, {"a.py": "\r\n\r\nx = WRONG\r\n\r\n"}))
    assert "-x = WRONG" in shown


def test_prose_folds_between_words() -> None:
    found = [line.plain for line in fold(Text("one two three four"), 9)]
    assert found == ["one two", "  three", "  four"]
    assert [line.plain for line in fold(Text("abcdefghijkl"), 8)] == ["abcdefgh", "  ijkl"]
    assert [line.plain for line in fold(Text(""), 8)] == [""]
