"""``apply -i`` over notebooks: cells are shown and told, never the program that they are joined to."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.interactive.items import Texts, items_of
from codemods.interactive.session import ask
from codemods.interactive.views import View
from codemods.rewriting.apply import apply
from codemods.source.files import SourceFile, read_source
from codemods.source.options import Options
from tests.interactive.scripted import Script
from tests.notebooks import SETUP, STEP, notebook, text

LAST = "%time first()\nloss = model(torch.randn(2, 4)).sum()\nloss.backward(retain_graph=True)\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceFile:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ipynb").write_bytes(notebook(text("x"), SETUP, STEP, LAST))
    return read_source("a.ipynb")


def shown(source: SourceFile) -> list[str]:
    result = apply([source], options=Options(), dry_run=True, jobs=1)
    view = View(Texts(result, [source]), colour=False)
    return [
        "\n".join(line.plain for line in view.change(item, number, 2, 100))
        for number, item in enumerate(items_of(result), 1)
    ]


def test_what_is_shown_is_the_cell(source: SourceFile) -> None:
    first, second = shown(source)
    assert first.startswith("1/2 surplus-retain-graph [exact] a.ipynb:cell 3:5\n")
    assert "  a.ipynb:cell 3:3: graph produced here\n" in first
    assert "@@ a.ipynb:cell 3:5 @@\n     x, y = torch.randn(8, 4)" in first
    # The cell ends here, and what is above the first line of the next is no context of it.
    assert first.endswith("+    loss.backward()\n     optimizer.step()")
    assert "@@ a.ipynb:cell 4:3 @@\n %time first()\n loss = model(" in second
    assert "codemod" not in first + second


def test_answers_become_cells(source: SourceFile) -> None:
    before = apply([source], options=Options(), dry_run=True, jobs=1)
    texts = Texts(before, [source])
    screen = Script("i", "known", "y")
    outcome = ask(before, [source], screen, texts, options=Options(), jobs=1)
    assert screen.shown == ["1/2 surplus-retain-graph a.ipynb:cell 3:5", "2/2 surplus-retain-graph a.ipynb:cell 4:3"]
    (rewrite,) = outcome.result.rewrites
    assert source.notebook is not None
    changes = {number: new for number, _, new in source.notebook.changes(source.text, rewrite.new)}
    assert changes == {
        3: STEP.replace("=True)", "=True)  # codemod: ignore[surplus-retain-graph] -- known"),
        4: LAST.replace("retain_graph=True", ""),
    }


def test_an_own_text_that_does_not_parse_is_told_with_its_cell(source: SourceFile) -> None:
    before = apply([source], options=Options(), dry_run=True, jobs=1)
    texts = Texts(before, [source])
    hunk = items_of(before)[0].hunks[0]
    assert texts.start(hunk) == "a.ipynb:cell 3:5"
    assert texts.objection({hunk: "    loss.backward(\n"}) is not None
    assert str(texts.objection({hunk: "    loss.backward(\n"})).startswith("a.ipynb:cell 3:")
    assert texts.objection({hunk: "    loss.backward()  # mine\n"}) is None
