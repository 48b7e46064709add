"""Shell completion, by the scripts that shells load."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.cli._completion import Candidate, candidates
from codemods.cli._shells import SCRIPTS
from codemods.rules import rule_names
from tests.commands import codemod

ROOT = Path(__file__).resolve().parents[2]


def values(*words: str) -> list[str]:
    return [candidate.value for candidate in candidates(words)]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("ch",), ["check"]),
        (("check", "--sel"), ["--select"]),
        (("check", "--color", ""), ["auto", "always", "never"]),
        (("check", "--color", "a"), ["auto", "always"]),
        (("check", "--color=n"), ["--color=never"]),
        (("check", "--color", "=", "n"), ["never"]),
        (("check", "--color", "="), ["auto", "always", "never"]),
        (("check", "x.py", "--select", "stored"), ["stored-graph"]),
        (("check", "--ignore", "stored-graph,unreset"), ["stored-graph,unreset-loss"]),
        (("check", "--ignore", "stored-graph,stored"), []),
        (("explain", "stored"), ["stored-graph"]),
        (("--vers",), ["--version"]),
        (("verify", "--device", "c"), ["cpu", "cuda"]),
    ],
)
def test_candidates(words: tuple[str, ...], wanted: list[str]) -> None:
    assert values(*words) == wanted


def test_where_files_stand_the_shell_completes_them() -> None:
    assert values("check", "") == values("check", "--output", "") == values("check", "-q", "src/") == []
    assert values("nonsense", "") == values("explain", "no-such") == []


def test_every_rule_is_offered_with_and_every_command_and_option() -> None:
    assert values("explain", "") == values("check", "--select", "") == list(rule_names())
    assert {"apply", "check", "lsp", "verify"} <= set(values(""))
    assert Candidate("--since", "Only report findings on lines changed since this git revision.") in candidates(
        ["check", "--"]
    )
    assert "-q" in values("check", "-")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with the command ``codemod``."""
    script = tmp_path / "bin" / "codemod"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m codemods "$@"\n')
    script.chmod(0o755)
    return script.parent


def asked(program: Path, shell: str, *arguments: str) -> list[str]:
    env = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([shell, *arguments], capture_output=True, text=True, env=env, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash(program: Path) -> None:
    script = (
        'eval "$(codemod --show-completion bash)"\n'
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _codemod codemod; echo "${COMPREPLY[*]}"; }\n'
        "try codemod ex\ntry codemod check --format = sa\ntry codemod check ''\ntry codemod explain stored\n"
        "complete -p codemod\n"
    )
    *found, registered = asked(program, "bash", "--norc", "-c", script)
    assert found == ["explain", "sarif", "", "stored-graph"]
    assert registered == "complete -o bashdefault -o default -F _codemod codemod"


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish(program: Path) -> None:
    script = "codemod --show-completion fish | source; complete -C 'codemod explain stored'"
    assert asked(program, "fish", "--no-config", "-c", script) == ["stored-graph"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_that_show_help(monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_CODEMOD_COMPLETE", shell)
    ran = codemod("check", "--since")
    assert ran == (0, "--since\tOnly report findings on lines changed since this git revision.\n", "")


def test_scripts_are_printed_and_other_shells_named() -> None:
    for shell, script in SCRIPTS.items():
        assert codemod("--show-completion", shell) == (0, script, "")
    ran = codemod("--show-completion", "tcsh")
    assert ran == (2, "", "codemod: --show-completion tcsh: must be one of bash, zsh, fish\n")
