"""``codemod doctor --attach``: the script to its end, in a process of its own and with nothing in its way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Codemod

TRAINS = """
import sys, torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
history = []
for step in range(int(sys.argv[1])):
    loss = net(torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss)
open("log.txt", "w").write(f"{__name__} {sys.argv[1:]} {len(history)}")
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(TRAINS)
    return path


def attached(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-m", "codemods", "doctor", "--attach", *words]
    return subprocess.run(start, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.slow
def test_a_script_runs_to_its_end_and_what_grows_is_told(script: Path) -> None:
    ran = attached(script.parent, "-o", "report.json", "train.py", "--", "40")
    assert ran.returncode == 1, ran.stderr
    # More steps than a diagnosis makes, and the script's own file is there: nothing is isolated.
    assert (script.parent / "log.txt").read_text() == "__main__ ['40'] 40"
    report = json.loads((script.parent / "report.json").read_text())
    assert (report["command"], report["steps"]) == ("train.py 40", 40)
    assert report["faults"][0]["clues"][0]["name"] == "history[*]"


@pytest.mark.slow
def test_a_module_without_a_fault_says_nothing_and_ends_as_it_does(script: Path) -> None:
    script.write_text(TRAINS.replace("append(loss)", "append(loss.item())"))
    ran = attached(script.parent, "-m", "train", "30")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (script.parent / "log.txt").read_text() == "__main__ ['30'] 30"


@pytest.mark.slow
def test_an_error_is_the_scripts_own_with_its_traceback(script: Path) -> None:
    script.write_text(TRAINS.replace("history.append(loss)", "undefined"))
    ran = attached(script.parent, "train.py", "--", "2")
    assert ran.returncode == 3
    assert "NameError" in ran.stderr
    assert "attaching.py" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train.py", "--steps", "3", "--memory", "2G"], "--steps, --memory cannot be combined with it"),
        (["train.py", "--graph", "g.svg"], "--graph cannot be combined with it"),
        (["--entry", "torchrun train.py"], "verify.watch(report=...)"),
        (["notes.ipynb"], "verify.watch(report=...)"),
        (["missing.py"], "missing.py: no such file"),
        ([], "name a script to run"),
    ],
)
def test_what_attach_cannot_do_is_told(codemod: Codemod, script: Path, words: list[str], said: str) -> None:
    (script.parent / "notes.ipynb").write_text("{}")
    ran = codemod("doctor", "--attach", *words)
    assert ran.status == 2
    assert said in ran.err
