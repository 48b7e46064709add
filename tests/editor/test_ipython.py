"""The magic ``%codemod`` in a real IPython."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython")

CELLS = (
    "import torch\nnet = torch.nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), 0.1)",
    "%time total = 0\nfor _ in range(5):\n    loss = net(torch.randn(4, 3)).mean()\n    opt.zero_grad()\n"
    "    loss.backward()\n    opt.step()\n    total += loss\nprint(total)",
)


class Shell:
    """As much of a shell as has a history, takes a magic and a next cell."""

    def __init__(self, cells: tuple[str, ...]) -> None:
        self.history_manager = self
        self.input_hist_raw = ["", *cells, "%codemod"]
        self.next = ""
        self.magic: Any = None

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        assert (kind, name) == ("line", "codemod")
        self.magic = function

    def set_next_input(self, text: str) -> None:
        self.next = text


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    from codemods.editor.ipython import load_ipython_extension

    monkeypatch.chdir(tmp_path)
    made = Shell(CELLS)
    load_ipython_extension(made)
    yield made
    assert list(tmp_path.iterdir()) == []


def test_findings_are_told_by_the_number_of_the_cell(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.magic("")
    told = capsys.readouterr().out
    assert "In [2], line 7: attached-loss-total [exact] " in told
    assert "    help: keep `loss.item()` instead\n" in told
    assert shell.next == ""


def test_a_cell_is_mended_into_a_new_one(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.magic("2")
    assert shell.next == CELLS[1].replace("total += loss", "total += loss.item()")
    shell.magic("1")
    assert "nothing to rewrite in In [1]" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["9", "all", "0"])
def test_other_words_tell_how_it_is_used(shell: Shell, capsys: pytest.CaptureFixture[str], line: str) -> None:
    shell.magic(line)
    assert capsys.readouterr().out.startswith("%codemod looks at")


def test_a_session_without_findings_and_with_a_cell_that_is_no_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from codemods.editor.ipython import load_ipython_extension

    monkeypatch.chdir(tmp_path)
    made = Shell(("import torch", "for in"))
    load_ipython_extension(made)
    made.magic("")
    told = capsys.readouterr().out
    assert "In [2]: left out: " in told
    assert "nothing found in the cells that were run" in told


def test_a_real_shell_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell(history_manager=None)
    shell.run_line_magic("load_ext", "codemods.editor.ipython")
    shell.run_cell("total = 0", store_history=True)
    shell.run_cell("%codemod", store_history=True)
    assert "nothing found in the cells that were run" in capsys.readouterr().out
