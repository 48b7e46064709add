"""The command line in this process, with the fakes in the place of the engine and the editor."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import codemods.checking.check
import codemods.rewriting.apply
import codemods.rules
from codemods.cli import main
from tests.fakes import Analyser, edit


class Ran(NamedTuple):
    status: int
    out: bytes
    err: str


Codemod = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def codemod(folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Codemod:
    """Run ``codemod`` with arguments, and bytes for standard input, in the working directory ``folder``."""
    monkeypatch.setitem(codemods.checking.check.check.__kwdefaults__, "analyse", Analyser())
    monkeypatch.setitem(codemods.rewriting.apply.apply.__kwdefaults__, "analyse", Analyser())
    monkeypatch.setattr(codemods.rewriting.apply, "_apply_edits", edit)
    monkeypatch.setattr(codemods.rules, "rule_names", lambda: ("left", "righthand", "risky", "stubborn", "wrong"))

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main(arguments)
        out, err = capsysbinary.readouterr()
        return Ran(status, out, err.decode())

    return run
