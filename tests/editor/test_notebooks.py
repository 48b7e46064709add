"""Notebooks that are open as such in the editor server, through a real client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editor.client import Client, edited, notebook_cell
from tests.notebooks import SETUP, STEP

TIMED = "%%time\n" + STEP
RETAIN = 5  # its line in TIMED, from 0
TOTAL = """\
total = 0
for _ in range(3):
    loss = model(torch.ones(1, 4)).sum()
    loss.backward()
    total += loss
print(total)"""
CELLS = (("markdown", "# Training"), ("python", SETUP), ("python", TIMED), ("python", "!ls\n" + TOTAL))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "pyproject.toml").write_text("[tool.codemod]\n")
    client = Client(tmp_path)
    yield client
    client.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    # It is not on disk, and its name is quoted in its URI.
    return tmp_path / "Early Stopping.ipynb"


def rules(diagnostics: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(one["code"], one["range"]["start"]["line"]) for one in diagnostics]


def chosen(client: Client, actions: list[dict[str, Any]], words: str) -> dict[str, str]:
    """What an action makes of each cell, by its URI."""
    action = next(action for action in actions if words in action["title"])
    made = action if "edit" in action else client.request("codeAction/resolve", action)
    return {one["textDocument"]["uri"]: one["edits"] for one in made["edit"]["documentChanges"]}


def test_all_cells_are_synchronized(client: Client) -> None:
    sync = client.server["capabilities"]["notebookDocumentSync"]
    assert sync["notebookSelector"] == [{"notebook": "jupyter-notebook"}]
    assert client.close() == 0


def test_findings_and_fixes_stand_in_their_cells(client: Client, path: Path) -> None:
    words, setup, timed, summed = client.open_notebook(path, *CELLS)
    (retained,) = client.shown(timed)
    assert rules([retained]) == [("surplus-retain-graph", RETAIN)]
    assert retained["range"]["start"]["character"] == 4
    assert retained["range"]["end"] == {"line": RETAIN, "character": 4 + len("loss.backward(retain_graph=True)")}
    assert {one["location"]["uri"] for one in retained["relatedInformation"]} == {timed}
    assert [one["location"]["range"]["start"]["line"] for one in retained["relatedInformation"]] == [3, RETAIN]
    (total,) = client.shown(summed)
    assert rules([total]) == [("attached-loss-total", 5)]
    assert client.shown(words) == client.shown(setup) == []

    assert "Promise: *exact*" in client.hover(timed, RETAIN)["contents"]["value"]
    assert client.hover(timed, RETAIN - 1) is None
    assert client.hover(summed, 4) is None

    actions = client.actions(timed, RETAIN)
    assert "fix all that is safe in this notebook (2)" in str([action["title"] for action in actions])
    fix = chosen(client, actions, "(surplus-retain-graph)")
    assert list(fix) == [timed]
    assert edited(TIMED, fix[timed]) == TIMED.replace("retain_graph=True", "")
    every = chosen(client, client.actions(setup, 0, ["source.fixAll"]), "fix all")
    assert edited(TIMED, every[timed]) == TIMED.replace("retain_graph=True", "")
    assert edited("!ls\n" + TOTAL, every[summed]) == "!ls\n" + TOTAL.replace("+= loss", "+= loss.item()")
    ignored = chosen(client, client.actions(summed, 5), "ignore attached-loss-total here")
    comment = "total += loss  # codemod: ignore[attached-loss-total]"
    assert edited("!ls\n" + TOTAL, ignored[summed]) == "!ls\n" + TOTAL.replace("total += loss", comment)
    assert client.actions(words, 0, ["quickfix"]) == []
    assert client.close() == 0


def test_typing_in_cells_and_cells_that_come_and_go(client: Client, path: Path) -> None:
    _, _, timed, summed = client.open_notebook(path, *CELLS)
    assert len(client.shown(timed)) == len(client.shown(summed)) == 1
    fix = next(action for action in client.actions(timed, RETAIN) if "(surplus-retain-graph)" in action["title"])
    # Clients send what has changed in a cell. A form feed ends no line, and the face is two units of UTF-16.
    top, at = {"line": 1, "character": 0}, {"line": RETAIN + 1, "character": 4}
    comment = {"range": {"start": top, "end": top}, "text": "# \f\n"}
    client.type_in_cell(path, timed, comment, {"range": {"start": at, "end": at}, "text": "'\U0001f600'; "})
    (moved,) = client.shown(timed)
    assert rules([moved]) == [("surplus-retain-graph", RETAIN + 1)]
    assert moved["range"]["start"]["character"] == 10
    assert "edit" not in client.request("codeAction/resolve", fix)
    argument = {"start": {"line": RETAIN + 1, "character": 24}, "end": {"line": RETAIN + 1, "character": 41}}
    client.type_in_cell(path, timed, {"range": argument, "text": ""})
    assert client.shown(timed) == []

    cell, text = notebook_cell("vscode-notebook-cell:/new#X", "python", "for _ in range(2):\n    print(total")
    array = {"start": 4, "deleteCount": 0, "cells": [cell]}
    client.change_notebook(path, {"structure": {"array": array, "didOpen": [text]}})
    (broken,) = client.shown("vscode-notebook-cell:/new#X")
    assert (broken["severity"], "cannot read this cell" in broken["message"]) == (3, True)
    for _ in range(2):
        client.shown(summed)
    # What is wrong with one cell says nothing of the others.
    assert rules(client.shown(summed)) == [("attached-loss-total", 5)]
    gone = {"array": {"start": 4, "deleteCount": 1}, "didClose": [{"uri": "vscode-notebook-cell:/new#X"}]}
    client.change_notebook(path, {"structure": gone})
    assert client.shown("vscode-notebook-cell:/new#X") == []
    client.notify(
        "notebookDocument/didClose",
        {"notebookDocument": {"uri": path.as_uri()}, "cellTextDocuments": [{"uri": timed}, {"uri": summed}]},
    )
    client.shown(summed)
    assert client.shown(summed) == []
    assert client.close() == 0


def test_what_is_no_python_and_what_is_excluded_is_left_alone(client: Client, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.codemod]\nexclude = ["old/"]\n')
    (first, second) = client.open_notebook(tmp_path / "old" / "a.ipynb", ("python", SETUP), ("python", STEP))
    assert client.shown(first) == client.shown(second) == []
    (first, second) = client.open_notebook(tmp_path / "b.ipynb", ("python", SETUP), ("julia", STEP))
    assert client.shown(first) == client.shown(second) == []
    assert client.close() == 0


def test_what_a_notebook_imports_is_as_it_is_open(client: Client, tmp_path: Path, path: Path) -> None:
    module = tmp_path / "parts.py"
    (tmp_path / "parts.py").write_text("def f(loss):\n    return loss.item()\n")
    cells = (("python", "from parts import f\n" + SETUP), ("python", TOTAL.replace("+= loss", "+= f(loss)")))
    _, summed = client.open_notebook(path, *cells)
    assert client.shown(summed) == []
    client.open(module, "def f(loss):\n    return loss\n")
    client.diagnostics(module)
    client.notify("notebookDocument/didSave", {"notebookDocument": {"uri": path.as_uri()}})
    assert rules(client.shown(summed)) == [("attached-loss-total", 4)]
    assert client.close() == 0
