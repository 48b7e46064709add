"""Shell completion, by the scripts that shells load."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codemods.cli._completion import script
from codemods.rules import rule_names
from tests.commands import codemod

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What bash is offered for the last of the words behind ``codemod``."""

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_CODEMOD_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["codemod", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        ran = codemod()
        assert (ran.status, ran.stderr) == (0, "")
        return ran.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("ch",), ["check"]),
        (("check", "--sel"), ["--select"]),
        (("check", "--color", ""), ["auto", "always", "never"]),
        (("check", "--color", "a"), ["auto", "always"]),
        (("check", "--color=n"), ["never"]),
        (("check", "--color", "=", "n"), ["never"]),
        (("check", "--color", "="), ["auto", "always", "never"]),
        (("check", "x.py", "--select", "stored"), ["stored-graph"]),
        (("check", "--ignore", "stored-graph,unreset"), ["stored-graph,unreset-loss"]),
        (("check", "--ignore", "stored-graph,stored"), []),
        (("explain", "stored"), ["stored-graph"]),
        (("--vers",), ["--version"]),
        (("verify", "--device", "c"), ["cpu", "cuda"]),
        (("batch", "pl"), ["plan"]),
        (("batch", "report", "--format", "h"), ["html"]),
    ],
)
def test_candidates(complete: Callable[..., list[str]], words: tuple[str, ...], wanted: list[str]) -> None:
    assert complete(*words) == wanted


def test_where_files_stand_the_shell_completes_them(complete: Callable[..., list[str]]) -> None:
    assert complete("check", "") == complete("check", "--output", "") == complete("check", "-q", "src/") == []
    assert complete("explain", "no-such") == []


def test_every_rule_is_offered_and_every_command_and_option(complete: Callable[..., list[str]]) -> None:
    assert complete("explain", "") == complete("check", "--select", "") == list(rule_names())
    assert {"apply", "check", "lsp", "verify"} <= set(complete(""))
    assert {"--since", "-q"} <= set(complete("check", "-"))


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
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _codemod_completion codemod; echo "${COMPREPLY[*]}"; }\n'
        "try codemod ex\ntry codemod check --format = sa\ntry codemod check ''\ntry codemod explain stored\n"
        "complete -p codemod\n"
    )
    *found, registered = asked(program, "bash", "--norc", "-c", script)
    assert found == ["explain", "sarif", "", "stored-graph"]
    assert registered == "complete -o default -F _codemod_completion codemod"


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish(program: Path) -> None:
    script = "codemod --show-completion fish | source; complete -C 'codemod explain stored'"
    assert asked(program, "fish", "--no-config", "-c", script) == ["stored-graph"]


@pytest.mark.parametrize(
    ("shell", "shown"),
    [
        ("zsh", '_arguments \'*: :(("--since":"Only report findings on lines changed since this git revision."))\'\n'),
        ("fish", "--since\tOnly report findings on lines changed since this git revision.\n"),
    ],
)
def test_shells_that_show_help(monkeypatch: pytest.MonkeyPatch, shell: str, shown: str) -> None:
    monkeypatch.setenv("_CODEMOD_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "codemod check --since")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    told = "Only report findings on lines changed since this git revision."
    assert codemod() == (0, shown.format(help=told), "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_printed(shell: str) -> None:
    ran = codemod("--show-completion", shell)
    assert ran == (0, script(shell), "")
    assert f"complete_{shell}" in ran.stdout


def test_other_shells_are_named() -> None:
    ran = codemod("--show-completion", "tcsh")
    assert ran == (2, "", "codemod: --show-completion tcsh: must be one of bash, zsh, fish\n")
