"""The editor server through a real client, over the pipes of a process, with the real engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editor.client import Client, edited
from tests.notebooks import SETUP, STEP, notebook

SCRIPT = """\
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = [(torch.randn(2, 3), torch.randn(2, 1))]
total = 0
for x, y in data:
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    '\U0001f600'; total += loss
print(total / len(data))
"""
CLEAN = SCRIPT.replace("retain_graph=True", "").replace("total += loss", "total += loss.item()")
RETAIN, TOTAL = 9, 11  # their lines, from 0


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "pyproject.toml").write_text("[tool.codemod]\n")
    client = Client(tmp_path)
    yield client
    client.kill()


def rules(diagnostics: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(one["code"], one["range"]["start"]["line"]) for one in diagnostics]


def chosen(client: Client, actions: list[dict[str, Any]], words: str) -> dict[str, Any]:
    (action, *_) = [action for action in actions if words in action["title"]]
    return action if "edit" in action else client.request("codeAction/resolve", action)  # type: ignore[no-any-return]


def applied(action: dict[str, Any], text: str, path: Path) -> str:
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"]["uri"] == path.as_uri()
    return edited(text, change["edits"])


def test_a_file_from_opening_to_closing(client: Client, tmp_path: Path) -> None:
    # Not on disk: what is open is all there is. And its name is quoted in its URI.
    path = tmp_path / "a b+c" / "tr\u00e4in.py"
    client.open(path, SCRIPT)
    retained, total = client.diagnostics(path)
    assert rules([retained, total]) == [("surplus-retain-graph", RETAIN), ("attached-loss-total", TOTAL)]
    assert (total["severity"], total["source"]) == (2, "codemod")
    # UTF-16: the face before the statement is two units, and three bytes more in UTF-8.
    column = "    '\U0001f600'; ".encode("utf-16-le")
    assert total["range"] == {
        "start": {"line": TOTAL, "character": len(column) // 2},
        "end": {"line": TOTAL, "character": len(column) // 2 + len("total += loss")},
    }
    assert all(one["location"]["uri"] == path.as_uri() and one["message"] for one in total["relatedInformation"])
    assert total["relatedInformation"]

    told = client.hover(path, TOTAL)["contents"]
    assert told["kind"] == "markdown"
    assert total["message"] in told["value"]
    assert "Promise: *exact*" in told["value"]
    assert client.hover(path, 0) is None

    actions = client.actions(path, TOTAL)
    assert [action["kind"] for action in actions] == ["quickfix", "quickfix", "source.fixAll.codemod", "quickfix"]
    mended = applied(chosen(client, actions, "(attached-loss-total)"), SCRIPT, path)
    assert mended == SCRIPT.replace("total += loss", "total += loss.item()")
    everything = applied(chosen(client, client.actions(path, 0, ["source.fixAll"]), "fix all"), SCRIPT, path)
    assert everything == mended.replace("retain_graph=True", "")
    ignored = applied(chosen(client, actions, "ignore attached-loss-total here"), SCRIPT, path)
    assert ignored == SCRIPT.replace("total += loss", "total += loss  # codemod: ignore[attached-loss-total]")
    assert [action["kind"] for action in client.actions(path, 0)] == ["source.fixAll.codemod"]

    client.change(path, ignored)
    assert rules(client.diagnostics(path)) == [("surplus-retain-graph", RETAIN)]
    client.change(path, everything)
    assert client.diagnostics(path) == []
    assert client.actions(path, TOTAL) == []

    client.change(path, everything.replace("optimizer.step()", "optimizer.step("))
    (broken,) = client.diagnostics(path)
    assert broken["severity"] == 3
    assert "cannot read this file" in broken["message"]
    assert client.actions(path, TOTAL) == []
    client.change(path, SCRIPT)
    assert len(client.diagnostics(path)) == 2

    client.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
    assert client.diagnostics(path) == []
    assert client.close() == 0


def test_typing_is_waited_for_and_old_actions_make_no_edit(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    client.open(path, SCRIPT)
    client.diagnostics(path)
    fix = next(action for action in client.actions(path, TOTAL) if "(attached-loss-total)" in action["title"])
    for number in range(5):
        client.change(path, SCRIPT + f"# {number}\n")
    assert "edit" not in client.request("codeAction/resolve", fix)
    # An answer waits for the text as it is now.
    assert "attached-loss-total" in client.hover(path, TOTAL)["contents"]["value"]
    assert len(client.diagnostics(path)) == 2
    assert client.close() == 0


def test_what_calls_a_file_is_looked_at_again_when_it_is_saved(client: Client, tmp_path: Path) -> None:
    steps = "def loss_of(model, x, y):\n    return ((model(x) - y) ** 2).mean()\n"
    script = SCRIPT.replace("((model(x) - y) ** 2).mean()", "loss_of(model, x, y)")
    script = script.replace("import torch\n", "import torch\nfrom steps import loss_of\n")
    (tmp_path / "steps.py").write_text(steps)
    client.open(tmp_path / "train.py", script)
    assert ("attached-loss-total", TOTAL + 1) in rules(client.diagnostics(tmp_path / "train.py"))
    client.open(tmp_path / "steps.py", steps)
    assert client.diagnostics(tmp_path / "steps.py") == []
    # Unsaved, the other file counts as it is open.
    client.change(tmp_path / "steps.py", steps.replace(".mean()", ".mean().item()"))
    client.diagnostics(tmp_path / "steps.py")
    client.notify("textDocument/didSave", {"textDocument": {"uri": (tmp_path / "steps.py").as_uri()}})
    assert ("attached-loss-total", TOTAL + 1) not in rules(client.diagnostics(tmp_path / "train.py"))
    assert client.close() == 0


def test_the_configuration_of_the_project_counts(client: Client, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.codemod]\nignore = ["surplus-retain-graph"]\nexclude = ["vendor/"]\ntotal-style = "item"\n'
        '[tool.codemod.per-file-ignores]\n"tests/" = ["attached-loss-total"]\n'
    )
    for name, wanted in (("a.py", ["attached-loss-total"]), ("vendor/a.py", []), ("tests/a.py", [])):
        client.open(tmp_path / name, SCRIPT)
        assert [one["code"] for one in client.diagnostics(tmp_path / name)] == wanted
    fix = chosen(client, client.actions(tmp_path / "a.py", TOTAL), "(attached-loss-total)")
    assert "loss.item()" in applied(fix, SCRIPT, tmp_path / "a.py")
    (tmp_path / "pyproject.toml").write_text('[tool.codemod]\nignore = ["surplus"]\n')
    client.change(tmp_path / "a.py", SCRIPT + "\n")
    assert "no rule is called 'surplus'" in client.message()
    (tmp_path / "pyproject.toml").write_text("[tool.codemod\n")
    client.change(tmp_path / "a.py", SCRIPT)
    assert "not valid TOML" in client.message()
    (tmp_path / "pyproject.toml").write_text("")
    client.change(tmp_path / "a.py", SCRIPT + "\n\n")
    assert len(client.diagnostics(tmp_path / "a.py")) == 2
    assert client.close() == 0


def test_a_client_that_knows_less(tmp_path: Path) -> None:
    # No project around it, no versions, no resolving, positions in UTF-8.
    path = tmp_path / "alone.py"
    client = Client(tmp_path / "..", {"general": {"positionEncodings": ["utf-8"]}})
    try:
        assert client.server["capabilities"]["positionEncoding"] == "utf-8"
        client.open(path, SCRIPT)
        _, total = client.diagnostics(path)
        assert total["range"]["start"]["character"] == len("    '\U0001f600'; ".encode())
        fix = next(action for action in client.actions(path, RETAIN) if "surplus-retain-graph)" in action["title"])
        (edit,) = fix["edit"]["changes"][path.as_uri()]
        assert edit["newText"] == "    loss.backward()\n"
        assert client.close() == 0
    finally:
        client.kill()


def test_texts_that_are_no_files_are_left_alone(client: Client, tmp_path: Path) -> None:
    document = {"uri": "untitled:Untitled-1", "languageId": "python", "version": 1, "text": SCRIPT}
    client.notify("textDocument/didOpen", {"textDocument": document})
    client.open(tmp_path / "clean.py", CLEAN)
    assert client.diagnostics(tmp_path / "clean.py") == []
    params = {"textDocument": {"uri": "untitled:Untitled-1"}, "position": {"line": TOTAL, "character": 3}}
    assert client.request("textDocument/hover", params) is None
    assert client.close() == 0


def test_a_client_that_leaves_without_a_word(client: Client) -> None:
    client.notify("exit", None)
    assert client.process.wait(30) == 1


def test_a_client_that_dies(client: Client) -> None:
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(30) == 1


def test_an_answer_comes_soon(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    client.open(path, SCRIPT)
    client.diagnostics(path)
    start = time.monotonic()
    client.change(path, SCRIPT + "\n")
    client.diagnostics(path)
    assert time.monotonic() - start < 20
    assert client.close() == 0


def test_a_notebook_that_is_open_as_text_is_left_alone(client: Client, tmp_path: Path) -> None:
    data = notebook(SETUP, STEP).decode()
    path = tmp_path / "a.ipynb"
    path.write_text(data)
    client.open(path, data)
    assert client.diagnostics(path) == []
    # It does not disturb what else is open.
    client.open(tmp_path / "train.py", SCRIPT)
    assert len(client.diagnostics(tmp_path / "train.py")) == 2
