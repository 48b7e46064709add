"""Notebooks as commands: the code that runs, the places that are told, and what is not run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.source.options import Options
from tests.commands import codemod
from tests.notebooks import SETUP, STEP, code, notebook, text
from tests.verify.zygote import ForkedPlace
from verify.errors import VerifyError
from verify.measured.records import Backward, Record
from verify.measured.values import Site
from verify.reports import render
from verify.running.against import HandRewriter
from verify.running.notebooks import RUNNER, RunnableNotebook
from verify.running.settings import Settings, entry_command, script_command
from verify.verification import verify


def ran(folder: Path, *cells: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """The notebook of ``cells``, run."""
    data = notebook(text("x"), *cells)
    (folder / "a.ipynb").write_bytes(data)
    runnable = RunnableNotebook(data, "a.ipynb")
    (folder / "program.json").write_text(runnable.program())
    return subprocess.run(
        [python, RUNNER, folder / "program.json", "a.ipynb", "--x"], cwd=folder, capture_output=True, text=True
    )


def test_cells_run_in_order_with_what_jupyter_provides(tmp_path: Path) -> None:
    done = ran(
        tmp_path,
        "from __future__ import annotations\nimport asyncio, os, sys\n%matplotlib inline\n%env GREETING=hello there\n",
        "%%writefile made.py\nvalue = 7\n",
        "import made\ndef later(x: Unknown): return x\nawait asyncio.sleep(0)\nfiles = !ls\n!rm -rf /nowhere\n",
        "%%time\ndisplay(made.value, files, os.environ['GREETING'])\nget_ipython().run_line_magic('load_ext', 'x')\n",
        "%%bash\nexit 1\n",
        "no python here",
        "print(__name__, sys.argv, sys.path[0] == os.getcwd(), 'ok')\nlater?",
        "  print('indented')\n",
        "%time y = 3\nprint(y)",
        "%run made.py\nprint(value)\n%timeit 1 / 0\n",
    )
    assert done.stderr == ""
    assert done.stdout.split("\n") == [
        *("7", "[]", "'hello there'", "__main__ ['a.ipynb', '--x'] True ok", "indented", "3", "7", ""),
    ]


def test_the_last_expression_of_a_cell_is_shown(tmp_path: Path) -> None:
    done = ran(
        tmp_path,
        "x = 3\nx + 1\n",
        "x + 2;\n",
        "x + 3 ; # not shown either\n",
        "None\n",
        "x + 4\ny = 5\n",
        "%pwd\n",
        "import asyncio\nasync def later(): return 'later'\nawait later()\n",
        "object()\n",
        "class Odd:\n    def __repr__(self): raise ValueError('odd')\nOdd()\n",
        "# a comment behind it\nx + 5  # ;\n",
        "",
        "if x:\n    x + 6\n",
    )
    assert done.stdout.split("\n") == ["4", "'later'", "<object object>", "8", ""]
    assert done.stderr == "ValueError: odd\n"


def test_an_error_in_the_last_expression_names_cell_and_line(tmp_path: Path) -> None:
    done = ran(tmp_path, "x = 1\n", "y = 2\n\nx / 0\n", "print('never')")
    assert (done.returncode, done.stdout) == (1, "")
    assert "line " in done.stderr
    assert "x / 0" in done.stderr


def test_an_error_ends_the_run_and_names_cell_and_line(tmp_path: Path) -> None:
    done = ran(tmp_path, "x = 1\n", "def f():\n    return x / 0\n\n%time f()\n", "print('never')")
    assert done.returncode == 1
    assert done.stdout == ""
    told = RunnableNotebook((tmp_path / "a.ipynb").read_bytes(), "a.ipynb").text(done.stderr)
    assert 'a.ipynb", cell 3, line 4, in <module>\n    %time f()' in told
    assert 'a.ipynb", cell 3, line 2, in f\n    return x / 0' in told
    assert "notebook.py" not in told


def test_a_notebook_may_leave_with_a_status(tmp_path: Path) -> None:
    assert ran(tmp_path, "import sys\nsys.exit(3)", "print('never')").returncode == 3


def test_what_is_not_run_is_said() -> None:
    cells = ["!pip install x\n%matplotlib inline\n", "%%bash\nls\n", "%timeit f()\n", "no python", "%%writefile a\nb"]
    assert RunnableNotebook(notebook(*cells), "a.ipynb").notes() == [
        "not run of a.ipynb: cell 4 (invalid syntax), cell 1:1 (!pip install x), cell 2 (%%bash), "
        "cell 3:1 (%timeit f())"
    ]
    assert RunnableNotebook(notebook("%matplotlib inline\nx = 1\nx?\n", text("x")), "a.ipynb").notes() == []


def test_records_are_placed_in_cells() -> None:
    runnable = RunnableNotebook(notebook("a = 1\n", text("x"), "b = 2\nc = 3\n"), "sub/a.ipynb")
    line = runnable.source.text.split("\n").index("c = 3") + 1
    backward = Backward(
        0, Site("sub/a.ipynb", line, "f"), 1, 0.0, (), "", False, False, False, 0, 0, 0.0, 0, 0, None, 0
    )
    record = Record(
        backwards=[backward],
        error_site=Site("other.py", line, "g"),
        reached={("sub/a.ipynb", line)},
        capped=[{"site": ["sub/a.ipynb", line, "f"], "cap": 3}],
    )
    runnable.place(record)
    assert str(record.backwards[0].site) == "sub/a.ipynb:cell 3:2"
    assert str(record.error_site) == f"other.py:{line}"
    assert record.reached == {("sub/a.ipynb", line)}
    assert record.capped[0]["site"][:2] == ["sub/a.ipynb:cell 3", 2]


def test_commands_of_notebooks_start_in_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.ipynb").write_bytes(notebook("x = 1"))
    monkeypatch.chdir(tmp_path)
    for command in (
        script_command("sub/a.ipynb", ["--x"], "python"),
        entry_command("sub/a.ipynb --x", "python", tmp_path),
        entry_command("python sub/a.ipynb --x", "python", tmp_path),
    ):
        assert command.argv == ("python", "a.ipynb", "--x")
        assert command.cwd == tmp_path / "sub"
        assert command.script == tmp_path / "sub" / "a.ipynb"
    for make in (script_command, lambda name, _, python: entry_command(name, python, tmp_path)):
        with pytest.raises(VerifyError, match="no such file"):
            make("none.ipynb", [], "python")


@pytest.mark.parametrize("data", [b"{", notebook("x <- 1", language="R"), b'{"cells": 1}'])
def test_what_is_no_notebook_is_said_in_a_sentence(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.ipynb").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    done = codemod("verify", "a.ipynb")
    assert done.status == 2
    assert done.stderr.startswith("codemod: a.ipynb")
    assert done.stderr.count("\n") == 1


def test_changes_by_hand_are_judged_cell_by_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine, theirs = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    mine.write_bytes(notebook(SETUP, STEP))
    theirs.write_bytes(notebook(SETUP, STEP.replace("retain_graph=True", "")))
    rewriter = HandRewriter(theirs, _promise(), root=tmp_path, script=mine)
    version = rewriter.all()
    assert version.files == {"a.ipynb": theirs.read_bytes()}
    assert version.readable.startswith("--- a/a.ipynb:cell 2\t\n+++ b/a.ipynb:cell 2\t\n@@ -2,5 +2,5 @@\n     x, y = ")
    (finding,) = version.groups[0].findings
    assert version.place("a.ipynb", finding.span.line) == "a.ipynb:cell 2:5"
    theirs.write_bytes(notebook(SETUP, STEP, "x = 1"))
    with pytest.raises(VerifyError, match="has other cells"):
        HandRewriter(theirs, _promise(), root=tmp_path, script=mine)


def _promise() -> object:
    from codemods.terms.findings import Promise

    return Promise.EXACT


@pytest.mark.slow
def test_a_notebook_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never = (
        "if len(model.weight) > 5:\n    for x in range(3):\n"
        "        model(torch.ones(4)).sum().backward(retain_graph=True)\n"
    )
    (tmp_path / "a.ipynb").write_bytes(notebook(text("x"), "!ls\n" + SETUP, code(STEP), never))
    monkeypatch.chdir(tmp_path)
    settings = Settings(steps=5)
    found = verify(
        [script_command("a.ipynb", [], settings.python)],
        options=Options(),
        settings=settings,
        place=ForkedPlace,
        jobs=1,
    )
    shown = render(found, "text", colour=False)
    assert "kept         surplus-retain-graph  a.ipynb:cell 3:5" in shown
    assert "a.ipynb:cell 4:3 never ran within these steps" in shown
    assert "not run of a.ipynb: cell 2:1 (!ls)" in shown
    report = json.loads(render(found, "json", colour=False))
    assert [(f["cell"], f["line"]) for r in report["rewrites"] for f in r["findings"]] == [(3, 5), (4, 3)]
    assert report["entries"][0]["rewritten"]["records"][0]["backwards"][0]["site"] == {
        "path": "a.ipynb", "line": 5, "function": "<module>", "cell": 3
    }  # fmt: skip
    page = render(found, "html", colour=False)
    assert "a.ipynb:cell 3:5" in page
    assert "<code>a.ipynb:cell 3</code>" in page
    assert "&#34;source&#34;" not in page


@pytest.mark.slow
def test_apply_writes_what_was_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = notebook(SETUP, text("x"), "%%time\n" + STEP)
    (tmp_path / "a.ipynb").write_bytes(before)
    monkeypatch.chdir(tmp_path)
    done = codemod("apply", "a.ipynb", "--verify", "a.ipynb", "--steps", "5")
    assert done.status == 0, done.stderr
    assert (tmp_path / "a.ipynb").read_bytes() == before.replace(b"backward(retain_graph=True)", b"backward()")
