"""Notebooks in and out: cells as one program, and files that keep every byte that is not changed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemods.source.errors import ChangedSinceRead, Unencodable, Unreadable
from codemods.source.files import SourceFile, read_source, source_from_bytes
from codemods.source.writing import write_atomically
from codemods.terms.findings import ShownLine
from tests.notebooks import code, notebook, text


def read(data: bytes) -> SourceFile:
    return source_from_bytes(data, "a.ipynb")


def changed(source: SourceFile, old: str, new: str) -> bytes:
    assert source.text.count(old) == 1
    return source.encode(source.text.replace(old, new))


def test_cells_are_one_program_in_order() -> None:
    source = read(notebook(text("# hi"), "a = 1\n%time b = a\n", text("x"), code(["c = 2\n", "d = a"]), "", " \n"))
    compile(source.text, "a", "exec")
    assert [line for line in source.text.split("\n") if line and not line.startswith("#")] == [
        *("a = 1", "if 1: b = a", "c = 2", "d = a"),
    ]
    lines = source.text.split("\n")
    assert source.place(lines.index("if 1: b = a") + 1) == ShownLine(2, 2)
    assert source.place(lines.index("d = a") + 1) == ShownLine(4, 2)
    assert str(source.place(lines.index("d = a") + 1)) == "cell 4:2"


def test_a_plain_file_has_no_cells() -> None:
    source = source_from_bytes(b"a = 1\nb = 2\n", "a.py")
    assert source.place(2) == ShownLine(None, 2)
    assert source.shown("a", "b") == [("a.py", "a", "b")]


@pytest.mark.parametrize(
    "cell", ["x = (\n", "print 1\n", "x = 1 \\", "\x00", "def f(:\n", "\ud800 = 1", "  x = 1\n y = 2\n"]
)
def test_a_broken_cell_is_named_and_the_others_are_read(cell: str) -> None:
    source = read(notebook("a = 1\n", code([cell]), "b = 2\n", ensure_ascii=True))
    assert source.notebook is not None
    assert [(entry.path, entry.cell) for entry in source.notebook.skipped] == [("a.ipynb", 2)]
    assert source.notebook.skipped[0].line <= 2
    assert "a = 1" in source.text
    assert "b = 2" in source.text


@pytest.mark.parametrize("cell", ["%%bash\nif [ ;\n", "%%html\n<b>\n", "%%unknown\nno python here\n", "\n\n"])
def test_what_is_no_python_is_passed_over_in_silence(cell: str) -> None:
    source = read(notebook("a = 1\n", cell))
    assert source.notebook is not None
    assert source.notebook.skipped == ()
    assert source.text == read(notebook("a = 1\n")).text


def test_cells_that_nobody_runs_are_left_out() -> None:
    tagged = code("b = 1\n", metadata={"tags": ["hide", "skip-execution"]})
    shown = code("c = 1\n", metadata={"tags": ["hide-input"]})
    source = read(notebook("a = 1\n", tagged, shown, {**text("d = 1"), "cell_type": "raw"}))
    assert "b = 1" not in source.text
    assert "c = 1" in source.text
    assert "d = 1" not in source.text


def test_format_3_has_worksheets_and_inputs() -> None:
    cells = [
        {"cell_type": "heading", "level": 1, "source": "x"},
        {"cell_type": "code", "collapsed": False, "input": ["a = 1\n", "b = 2"], "language": "python", "outputs": []},
    ]
    data = json.dumps({"metadata": {"name": ""}, "nbformat": 3, "worksheets": [{"cells": cells}]}).encode()
    source = read(data)
    assert source.place(4) == ShownLine(2, 2)
    assert changed(source, "b = 2", "b = 3") == data.replace(b"b = 2", b"b = 3")


BROKEN: list[tuple[bytes, int, str]] = [
    (b"", 1, "empty file"),
    (b'{"cells": [\n', 2, "expecting a value"),
    (b'{"cells": [],\n "nbformat": 4', 2, "not valid JSON: expecting ','"),
    (b"{'a': 1}", 1, "double quotes"),
    (b'{"cells": [], "nbformat": 4}\nx', 2, "more text"),
    (b'{"cells": [\n<<<<<<< HEAD\n', 2, "merge conflict"),
    (b"version https://git-lfs.github.com/spec/v1\n", 1, "Git LFS"),
    (b"[1]", 1, "not a notebook"),
    (b"1", 1, "not a notebook"),
    (b'{"cells": 3, "nbformat": 4}', 1, "not a notebook"),
    (b'{"cells": [], "nbformat": 2}', 1, "notebook format 2"),
    (b'{"cells": []}', 1, "notebook format None"),
    (b'{"a": "\n\xff"}', 2, "byte 0xff is not utf-8"),
    (b"[" * 100_000, 0, "nested too deeply"),
]


@pytest.mark.parametrize(("data", "line", "reason"), BROKEN, ids=[reason for _, _, reason in BROKEN])
def test_what_is_no_notebook_is_named_with_line_and_reason(data: bytes, line: int, reason: str) -> None:
    with pytest.raises(Unreadable) as raised:
        read(data)
    assert raised.value.line == line
    assert reason in raised.value.reason


@pytest.mark.parametrize("cell", [1, None, [], {}, {"cell_type": "code"}, {"cell_type": "code", "source": []}])
def test_strange_cells_do_no_harm(cell: Any) -> None:
    data = json.dumps({"cells": [cell, code("a = 1")], "metadata": [], "nbformat": 4}).encode()
    source = read(data)
    assert source.place(3) == ShownLine(2, 1)
    assert changed(source, "a = 1", "a = 2") == data.replace(b"a = 1", b"a = 2")


def test_a_source_that_is_no_text_is_named() -> None:
    source = read(notebook({**code(""), "source": [1]}, "a = 1"))
    assert source.notebook is not None
    assert [entry.reason for entry in source.notebook.skipped] == ["its source is not text"]


@pytest.mark.parametrize("language", ["R", "julia", "scala"])
def test_another_language_is_skipped(language: str) -> None:
    with pytest.raises(Unreadable, match=f"a notebook in {language}, not Python"):
        read(notebook("a <- 1", language=language))


@pytest.mark.parametrize("language", [None, "python", "Python", "ipython"])
def test_python_is_not(language: str | None) -> None:
    assert "a = 1" in read(notebook("a = 1", language=language)).text


def test_only_the_lines_that_change_change() -> None:
    data = notebook(text("é"), 'a = "é"\nb = 2\n', "c = 3\nd = 4")
    assert changed(read(data), "c = 3\nd = 4", "c = 3\nnew = 1\nd = 5") == data.replace(
        b'    "c = 3\\n",\n    "d = 4"', b'    "c = 3\\n",\n    "new = 1\\n",\n    "d = 5"'
    )


def test_escapes_are_those_of_the_file() -> None:
    data = notebook("a = 'é' < 'ü'\nb = 1\n", ensure_ascii=True).replace(b"<", b"\\u003c").replace(b"'", b"\\u0027")
    assert changed(read(data), "b = 1", "b = 'ö' < 1 > 0") == data.replace(
        b"b = 1", b"b = \\u0027\\u00f6\\u0027 \\u003c 1 > 0"
    )
    upper = notebook("a = 'É'\nb = 1\n", ensure_ascii=True).replace(b"\\u00c9", b"\\u00C9")
    assert changed(read(upper), "b = 1", "b = 'Ü😀'") == upper.replace(b"b = 1", b"b = '\\u00DC\\uD83D\\uDE00'")


def test_a_single_string_keeps_how_it_is_spelled() -> None:
    data = notebook({**code(""), "source": "a = 1/2\nb = 2\nc = 'x'\n"}).replace(b"1/2", b"1\\/2")
    assert changed(read(data), "b = 2", "b = 3/4") == data.replace(b"b = 2", b"b = 3\\/4")


def test_a_list_that_is_not_one_of_lines_stays_what_it_is() -> None:
    data = notebook(code(["a = 1\nb", " = 2\nc = ", "3"]))
    assert changed(read(data), "a = 1\nb = 2", "a = 1\nb = 20") == data.replace(b'" = 2\\nc = "', b'" = 20\\nc = "')


def test_line_ends_and_byte_order_mark_stay() -> None:
    data = b"\xef\xbb\xbf" + notebook(code(["a = 1\r\n", "b = 2\r\n"])).replace(b"\n", b"\r\n")
    source = read(data)
    assert source.encode(source.text) == data
    assert changed(source, "b = 2", "b = 3") == data.replace(b"b = 2", b"b = 3")


def test_a_cell_may_become_empty() -> None:
    data = notebook("a = 1", "b = 2")
    written = json.loads(changed(read(data), "a = 1", ""))
    assert [cell["source"] for cell in written["cells"]] == [[], ["b = 2"]]


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s.replace("# %% [codemod, cell 2]\n", ""),
        lambda s: "x = 1\n" + s,
        lambda s: s.replace("# %%", "    # %%"),
        lambda s: s.replace("_ipython_2_0_()", "print()"),
        lambda s: s.replace("_ipython_2_0_()", ""),
        lambda s: s + s,
        lambda s: s.replace("a = 1", "!ls"),
        lambda s: "",
    ],
)
def test_an_edit_across_cells_or_magics_is_refused(edit: Any) -> None:
    source = read(notebook("a = 1\n", "!ls\nb = 2\n"))
    with pytest.raises(Unencodable):
        source.encode(edit(source.text))


def test_names_of_stand_ins_are_free() -> None:
    data = notebook("_ipython_1_0_ = 1\n!ls\n")
    source = read(data)
    assert source.encode(source.text) == data
    assert changed(source, "= 1", "= 2") == data.replace(b"= 1", b"= 2")


def test_the_bytes_are_read_again_only_when_needed(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook("a = 1\n"))
    source, other = read_source(path), read_source(path)
    assert source.data is not None
    assert source.data.content is None
    write_atomically(source, source.text.replace("a = 1", "a = 2"))
    assert path.read_bytes() == notebook("a = 2\n")
    assert source.encode(source.text) == notebook("a = 1\n")
    with pytest.raises(ChangedSinceRead):
        other.encode(other.text)
    assert pickle.loads(pickle.dumps(source)).data.content is None


LINES = st.sampled_from(
    [
        "x = 1",
        "y = 'é'",
        "%matplotlib inline",
        "!ls {x}",
        "if x:\n    z = 2",
        's = """\n!no\n"""',
        "",
        "# 😀",
        "f = !ls",
    ]
)
CELLS = st.lists(LINES, max_size=5).map("\n".join)
STYLES = st.fixed_dictionaries(
    {"indent": st.sampled_from([None, 1, 2, "\t"]), "ensure_ascii": st.booleans(), "sort_keys": st.booleans()}
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(CELLS, st.booleans(), st.booleans()), min_size=1, max_size=5), STYLES, st.data())
def test_every_byte_outside_a_changed_cell_stays(
    cells: list[tuple[str, bool, bool]], style: dict[str, Any], data: st.DataObject
) -> None:
    made = []
    for source, string, ended in cells:
        whole = source + "\n" * ended
        made.append({**code(whole), "source": whole} if string else code(whole))
    before = notebook(*made, **style)
    source = read(before)
    assert source.encode(source.text) == before
    assert source.notebook is not None
    assert source.notebook.skipped == ()
    programs = [cell for cell in source.notebook.cells if cell.program is not None]
    if not programs:
        return
    cell = data.draw(st.sampled_from(programs))
    lines = source.text.split("\n")
    at = lines.index(f"# %% [codemod, cell {cell.number}]") + 2
    added = data.draw(st.sampled_from(["new = 'ü'", "new = 1", "a = 1\nb = '\\n'"]))
    after = source.encode("\n".join([*lines[:at], added, *lines[at:]]))
    old, new = before.decode(), after.decode()
    assert new.startswith(old[: cell.start])
    assert new.endswith(old[cell.end :])
    assert new.isascii() == old.isascii() or "ü" in added
    told, retold = json.loads(old)["cells"], json.loads(new)["cells"]
    for number, (one, other) in enumerate(zip(told, retold, strict=True), 1):
        if number == cell.number:
            assert type(one["source"]) is type(other["source"])
            assert "".join(other["source"]) == added + "\n" + "".join(one["source"])
        else:
            assert one == other
