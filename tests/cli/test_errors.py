"""Bad usage and bad luck: one sentence, status 2, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import codemods.checking.check
from codemods import __version__
from tests.cli.conftest import Codemod

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "nowhere.py"], "nowhere.py: no such file"),
        (["apply", "a.py", "nowhere"], "nowhere: no such file"),
        (["check", "a.py", "--select", "wrng"], "no rule is called 'wrng'; did you mean wrong?"),
        (["check", "a.py", "--ignore", "hand"], "no rule is called 'hand'; did you mean righthand?"),
        (["check", "a.py", "--select", "zzzzzz"], "no rule is called 'zzzzzz'; `codemod rules` lists them"),
        (["check", "a.py", "--format", "yaml"], "--format yaml: must be one of text, "),
        (["check", "a.py", "--color", "pink"], "--color pink: must be one of auto, always, never"),
        (["check", "a.py", "--hidden-state", "x"], "--hidden-state x: must be one of auto, reinit, detach"),
        (["check", "a.py", "-q", "-v"], "exclude each other"),
        (["check", "a.py", "-"], "cannot be combined"),
        (["check", "a.py", "--config", "none.toml"], "none.toml: no such file"),
        (["check", "a.py", "--config", "bad.toml"], "unknown key 'selct'"),
        (["check", "a.py", "--output", "no/where.txt"], "cannot write no/where.txt: no such file or directory"),
        (["apply", "a.py", "--format", "json", "--output", "no/where"], "cannot write no/where: no such file"),
        (["apply", "a.py", "--format", "json", "--output", "."], "cannot write .: is a directory"),
        (["check", "a.py", "--jobs", "many"], "--jobs"),
        (["check", "a.py", "--frobnicate"], "--frobnicate"),
        (["verify"], "name a script to run"),
        (["chekc", "a.py"], "chekc"),
        (["explain", "wrogn"], "did you mean wrong?"),
        (["rules", "--format", "html"], "--format html"),
        ([], "Usage"),
    ],
)
def test_bad_usage(codemod: Codemod, folder: Path, arguments: Sequence[str], said: str) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    (folder / "bad.toml").write_text('selct = ["wrong"]\n')
    ran = codemod(*arguments)
    assert ran.status == 2
    assert said in ran.err
    assert ran.out == b""
    assert "Traceback" not in ran.err
    assert (folder / "a.py").read_text() == "x = WRONG\n"


def test_an_error_of_ours_is_one_sentence(codemod: Codemod, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("the graph\nfell over")

    monkeypatch.setitem(codemods.checking.check.check.__kwdefaults__, "analyse", explode)
    (folder / "a.py").write_text("x = 1\n")
    ran = codemod("check", "a.py")
    assert ran.status == 2
    assert ran.err.splitlines()[0] == "codemod: internal error, please report it: RuntimeError: the graph fell over"
    assert "Traceback" not in ran.err
    assert [line.split(",")[0] for line in ran.err.splitlines()[1:]] == ["  in explode"]
    whole = codemod("check", "a.py", "-v").err
    assert "in explode" in whole
    assert len(whole.splitlines()) > 2


@pytest.mark.parametrize("arguments", [["--version"], ["check", "--help"], ["--help"], ["apply", "-h"]])
def test_asking_is_no_error(codemod: Codemod, arguments: Sequence[str]) -> None:
    ran = codemod(*arguments)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out


def test_version_is_the_same_however_it_is_asked(codemod: Codemod) -> None:
    quick = codemod("--version").out.decode()
    assert quick == f"codemod {__version__}\n"
    assert codemod("--version", "check").out.decode() == quick
    module = subprocess.run([sys.executable, "-m", "codemods", "--version"], capture_output=True, env=ENVIRONMENT)
    assert module.stdout.decode() == quick


def test_no_command_and_no_help_loads_torch_or_the_heavy_libraries() -> None:
    code = (
        "import sys, codemods.cli, codemods.rewriting.apply, codemods.cli._app as a; a.build(a.command_names()); "
        "print([m for m in ('torch', 'numpy', 'libcst', 'rich', 'diff_match_patch', 'pathspec') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT, check=True)
    assert shown.stdout.decode().strip() == "[]"


@pytest.mark.parametrize("arguments", [["--version"], ["check", "--help"], ["check", "big.py", "--format", "json"]])
def test_closed_pipe_ends_quietly(tmp_path: Path, arguments: Sequence[str]) -> None:
    (tmp_path / "big.py").write_text("x = WRONG\n" * 1000)
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "tests.cli.fake_codemod", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=ENVIRONMENT,
        timeout=60,
    )
    os.close(writing)
    assert process.stderr == b""
    assert process.returncode == 141


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = SLEEPY\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.fake_codemod", "check", "a.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"asleep\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 130
