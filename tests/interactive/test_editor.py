"""The user's editor, which here is a program of a line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codemods.interactive.dialogue import EditorError
from codemods.interactive.editor import edited
from codemods.rewriting.changes import Hunk

ONE = Hunk("a.py", 3, ("x = 1\n",), 3, ("x = 2\n",), (0,))
TWO = Hunk("a.py", 9, ("y = 1\r\n",), 9, ("y = 2\r\n",), (0,))
LAST = Hunk("a.py", 12, ("z = 1",), 12, ("z = 2",), (0,))
GONE = Hunk("a.py", 5, ("w = 1\n",), 5, (), (0,))
PROPOSED = {hunk: "".join(hunk.added) for hunk in (ONE, GONE, TWO, LAST)}


def place(hunk: Hunk) -> str:
    return f"{hunk.path}:{hunk.old_start}"


def editor(folder: Path, program: str) -> dict[str, str]:
    path = folder / "an editor.py"
    path.write_text(
        "import sys\npath = sys.argv[-1]\ntext = open(path, encoding='utf-8').read()\n"
        f"{program}\nopen(path, 'w', encoding='utf-8').write(text)\n"
    )
    return {"EDITOR": f"{sys.executable} '{path}' --wait"}


def test_every_hunk_comes_back_with_its_line_ends(tmp_path: Path) -> None:
    found = edited(PROPOSED, place, editor(tmp_path, "text = text.replace('= 2', '= \u4e09')"))
    assert found == {ONE: "x = \u4e09\n", GONE: "", TWO: "y = \u4e09\r\n", LAST: "z = \u4e09"}


def test_an_editor_that_changes_nothing(tmp_path: Path) -> None:
    assert edited(PROPOSED, place, editor(tmp_path, "")) == PROPOSED


def test_visual_goes_before_editor(tmp_path: Path) -> None:
    environ = {**editor(tmp_path, "text = ''"), "VISUAL": "true"}
    assert edited(PROPOSED, place, environ) == PROPOSED


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("text = ''", "Nothing came back"),
        ("text = text.replace('#| a.py:9', '')", "came back changed"),
        ("sys.exit(3)", "status 3"),
        ("import os; os.unlink(path); sys.exit(0)", "left no file"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, program: str, said: str) -> None:
    with pytest.raises(EditorError, match=said):
        edited(PROPOSED, place, editor(tmp_path, program))


def test_no_such_editor() -> None:
    with pytest.raises(EditorError, match="could not be started: no such file or directory"):
        edited(PROPOSED, place, {"EDITOR": "no-such-editor -x"})


def test_a_command_that_is_no_command() -> None:
    with pytest.raises(EditorError, match="VISUAL or EDITOR"):
        edited(PROPOSED, place, {"EDITOR": "vi 'unclosed"})
