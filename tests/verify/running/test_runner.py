"""Which interpreters can be used, and what a script gets to see."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verify.zygote import ForkedPlace
from verify.errors import VerifyError
from verify.running.runner import Runner
from verify.running.settings import Settings, script_command


def trouble(folder: Path, answer: str) -> str:
    """What is said of an interpreter that answers ``answer``."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\necho '{answer}'\n")
    python.chmod(0o755)
    return Runner(folder, Settings(python=str(python))).trouble()


def test_this_interpreter_will_do(tmp_path: Path) -> None:
    assert Runner(tmp_path, Settings(python=sys.executable)).trouble() == ""


@pytest.mark.parametrize("answer", ["3.8;2.0.1", "3.13;2.13.0+cpu", "3.11;unknown", "3.11;2.1.0a0+git1234"])
def test_what_will_do(tmp_path: Path, answer: str) -> None:
    assert trouble(tmp_path, answer) == ""


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("3.7;2.0.0", "has Python 3.7; Python 3.8 or newer is needed"),
        ("3.10;1.13.1", "has torch 1.13.1; torch 2.0 or newer is needed"),
        ("3.10;", "has no torch"),
        ("hello", "cannot be run as a Python interpreter"),
    ],
)
def test_what_will_not_do(tmp_path: Path, answer: str, sentence: str) -> None:
    said = trouble(tmp_path, answer)
    assert sentence in said
    assert "\n" not in said


def test_no_interpreter_at_all(tmp_path: Path) -> None:
    with pytest.raises(VerifyError, match=r"nothing: no such file or directory$"):
        Runner(tmp_path, Settings(python=str(tmp_path / "nothing"))).trouble()


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\x7fnot an interpreter\n")
    text.chmod(0o755)
    with pytest.raises(VerifyError, match=r"text: exec format error$"):
        Runner(tmp_path, Settings(python=str(text))).trouble()


@pytest.mark.parametrize("path", [None, ".", ""])
def test_no_module_of_the_tree_runs_before_there_is_isolation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", f"{path}{os.pathsep}/nothing")
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("csv", "email", "contextlib", "zipfile", "json", "sitecustomize"):
        (tree / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tree)
    assert Runner(tree, Settings(python=sys.executable)).trouble() == ""
    assert not (tmp_path / "ran").exists()


KILLED = """
import os, torch
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(9):
    weight.square().sum().backward()
    optimizer.step()
    if step == 6 and KILL:
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("kill", "runs"), [("True", 3), ("False", 2)])
def test_what_a_kill_took_is_written_in_another_run(tmp_path: Path, kill: str, runs: int) -> None:
    (tmp_path / "train.py").write_text(KILLED.replace("KILL", kill))
    starts: list[int] = []
    with Runner(tmp_path, Settings(python=sys.executable), place=ForkedPlace) as runner:
        place: Any = runner._workspace
        execute = place.execute

        def counted(*args: Any, **kwargs: Any) -> Any:
            starts.append(1)
            return execute(*args, **kwargs)

        place.execute = counted
        command = script_command(str(tmp_path / "train.py"), [], sys.executable)
        found = [runner.run("it", command) for _ in range(2)]
    assert len(starts) == runs
    assert [len(run.records[0].steps) for run in found] == [7, 7] if kill == "True" else [9, 9]
