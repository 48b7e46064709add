"""The examples of docs/watch.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

# Not to be imported and thrown away again by the runs inside: torch can be loaded once, and its first optimizer loads
# the rest of it.
torch = pytest.importorskip("torch")
torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1).step()

import verify.live.watching  # noqa: E402, F401

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("few_objects")

PAGE = (Path(__file__).parents[3] / "docs" / "watch.md").read_text()
EXAMPLES = dict(re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE, re.DOTALL))
OUTPUTS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def test_no_example_is_left_out() -> None:
    assert list(EXAMPLES) == ["test_training.py", "notebook", "report", "validation", "epochs"]
    assert PAGE.count("```python") == len(EXAMPLES)
    assert len(OUTPUTS) == 2


def test_the_regression_test(pytester: pytest.Pytester) -> None:
    (name, text), *_ = EXAMPLES.items()
    path = pytester.path / name
    path.write_text(text)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
    assert text.count("total += loss.item()") == 1
    path.write_text(text.replace("total += loss.item()", "total += loss"))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    assert OUTPUTS[0].strip() in result.stdout.lines


def test_the_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    cell(EXAMPLES["notebook"])
    printed = capsys.readouterr().out.replace("<ipython-input-1>", "In[1]").splitlines()
    assert printed[:2] == OUTPUTS[1].splitlines()


@pytest.mark.parametrize("name", ["validation", "epochs"])
def test_the_loops(name: str) -> None:
    run = cell(EXAMPLES[name])["run"]
    assert run.steps == {"validation": 30, "epochs": 10}[name]


@pytest.mark.slow
def test_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cell(EXAMPLES["report"])


def test_the_validation_loop_is_silent_without_gradients() -> None:
    text = EXAMPLES["validation"].partition("assert run.leak")[0]
    text = text.replace("with verify.watch() as run:", "with verify.watch() as run, torch.no_grad():")
    run = cell(text)["run"]
    run.assert_flat()
    run.assert_no_wasted_forwards()


def cell(text: str) -> dict[str, Any]:
    """What running ``text`` as a notebook's cell leaves behind."""
    left: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<ipython-input-1>", "exec"), left)
    return left
