"""The GitHub Action: its form, and its steps run for real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from codemods.reports import formats
from tests.integrations.test_pre_commit import SCRIPT

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
_EXPRESSION = re.compile(r"\$\{\{\s*([\w.]+)\s*\}\}")


def test_its_form_is_the_documented_one() -> None:
    # https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax
    assert set(ACTION) <= {"name", "author", "description", "inputs", "outputs", "runs", "branding"}
    assert set(ACTION["runs"]) == {"using", "steps"}
    assert ACTION["runs"]["using"] == "composite"
    for given in ACTION["inputs"].values():
        assert set(given) <= {"description", "required", "default", "deprecationMessage"}
        assert isinstance(given["default"], str)
    for given in ACTION["outputs"].values():
        assert set(given) == {"description", "value"}
    for step in STEPS.values():
        assert set(step) <= {"name", "id", "if", "shell", "env", "run", "working-directory", "continue-on-error"}
        assert step["shell"] == "bash"
        # What others may write, such as a branch's name, reaches the shell as a variable, never as a command.
        assert "${{" not in step["run"]


def test_every_expression_names_something_there_is() -> None:
    for step in STEPS.values():
        for expression in _EXPRESSION.findall(" ".join(step.get("env", {}).values())):
            place, *rest = expression.split(".")
            if place == "inputs":
                assert rest[0] in ACTION["inputs"]
            else:
                assert expression in ("github.action_path", "github.event.pull_request.number") or (
                    rest == ["check", "outputs", "status"] and any(one.get("id") == "check" for one in STEPS.values())
                )


class Runner:
    """Runs a step as GitHub's runner does: a file for bash, with -e and pipefail; expressions are put in before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.values = {f"inputs.{name}": given["default"] for name, given in ACTION["inputs"].items()}
        self.values |= {"github.event.pull_request.number": "7", "inputs.token": "secret"}
        for program, text in {
            "codemod/bin/codemod": f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m codemods "$@"',
            # Says what it was asked, and of the list of comments what the test has put there.
            "bin/gh": f'printf "%s\\n" "$*" >> "{folder}/gh.log"\n'
            f'case "$*" in *--paginate*) cat "{folder}/known";; esac',
        }.items():
            (folder / program).parent.mkdir(parents=True, exist_ok=True)
            (folder / program).write_text(f"#!/bin/sh\n{text}\n")
            (folder / program).chmod(0o755)
        (folder / "known").write_text("")
        (folder / "work").mkdir()

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        env = {key: _EXPRESSION.sub(lambda m: self.values[m[1]], value) for key, value in step["env"].items()}
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        output = self.folder / "output"
        output.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.folder / "work",
            env={
                **os.environ,
                **env,
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.folder),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_REPOSITORY": "owner/name",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{key}"] = value
        return done

    @property
    def asked(self) -> list[str]:
        """What ``gh`` was asked."""
        log = self.folder / "gh.log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


needs_formats = pytest.mark.skipif(
    not {"github", "markdown"} <= set(formats()), reason="needs the formats github and markdown"
)


@needs_formats
def test_findings_annotate_comment_and_fail(runner: Runner) -> None:
    (runner.folder / "work" / "train.py").write_text(SCRIPT)
    checked = runner.run("Check")
    assert (checked.returncode, runner.values["steps.check.outputs.status"]) == (0, "1")
    assert "file=train.py" in checked.stdout
    assert "line=11" in checked.stdout
    assert runner.run("Comment on the pull request").returncode == 0
    _, posted, *_ = runner.asked
    assert posted == "api --method POST repos/owner/name/issues/7/comments --raw-field body=<!-- codemod -->"
    assert "attached-loss-total" in "\n".join(runner.asked)
    assert runner.run("Result").returncode == 1
    runner.values["inputs.fail"] = "false"
    assert runner.run("Result").returncode == 0


@needs_formats
def test_an_earlier_comment_is_brought_up_to_date(runner: Runner) -> None:
    (runner.folder / "work" / "train.py").write_text("x = 1\n")
    (runner.folder / "known").write_text("42\n43\n")
    assert runner.run("Check").returncode == 0
    assert runner.values["steps.check.outputs.status"] == "0"
    assert runner.run("Comment on the pull request").returncode == 0
    assert any("--method PATCH repos/owner/name/issues/comments/42 " in line for line in runner.asked)
    assert runner.run("Result").returncode == 0


@needs_formats
def test_without_findings_nothing_is_said(runner: Runner) -> None:
    (runner.folder / "work" / "train.py").write_text("x = 1\n")
    runner.run("Check")
    assert runner.run("Comment on the pull request").returncode == 0
    assert [line for line in runner.asked if "--method" in line] == []


def test_an_error_fails_and_is_no_comment(runner: Runner) -> None:
    runner.values |= {"inputs.paths": "no-such-folder", "inputs.fail": "false"}
    checked = runner.run("Check")
    assert (checked.returncode, runner.values["steps.check.outputs.status"]) == (0, "2")
    assert runner.run("Comment on the pull request").returncode == 0
    assert runner.asked == []
    assert runner.run("Result").returncode == 2


def test_inputs_are_words_and_no_commands(runner: Runner) -> None:
    (runner.folder / "work" / "a b.py").write_text("x = 1\n")
    runner.values["inputs.paths"] = "$(touch owned) ; touch owned"
    runner.values["inputs.since"] = "`touch owned`"
    assert runner.run("Check").returncode == 0
    assert not (runner.folder / "work" / "owned").exists()


def test_paths_stand_on_lines_and_keep_their_blanks(runner: Runner) -> None:
    work = runner.folder / "work"
    (work / "a b.py").write_text(SCRIPT)
    (work / "other").mkdir()
    (work / "other" / "c d.py").write_text(SCRIPT)
    (work / "left.py").write_text(SCRIPT)
    for paths in ("a b.py\nother\n", "\n  a b.py  \n\n  other/c d.py\n"):
        runner.values["inputs.paths"] = paths
        checked = runner.run("Check")
        assert (runner.values["steps.check.outputs.status"], checked.stderr) == ("1", "")
        for name in ("a b.py", "other/c d.py"):
            assert f"file={name}," in checked.stdout
        assert "left.py" not in checked.stdout
    runner.values |= {"inputs.paths": "a b.py", "inputs.args": "--ignore attached-loss-total"}
    assert "::" not in runner.run("Check").stdout
    runner.values |= {"inputs.paths": "left.py other", "inputs.args": "--ignore\nattached-loss-total\n"}
    runner.run("Check")
    assert runner.values["steps.check.outputs.status"] == "0"


def test_the_files_are_looked_at_once(runner: Runner) -> None:
    (runner.folder / "work" / "train.py").write_text(SCRIPT)
    runner.run("Check")
    (runner.folder / "work" / "train.py").unlink()
    assert runner.run("Comment on the pull request").returncode == 0
    assert "attached-loss-total" in "\n".join(runner.asked)


def test_a_token_that_may_only_read_is_no_failure(runner: Runner) -> None:
    (runner.folder / "work" / "train.py").write_text(SCRIPT)
    gh = runner.folder / "bin" / "gh"
    gh.write_text('#!/bin/sh\ncase "$*" in *--paginate*) exit 0;; esac\necho "HTTP 403" >&2\nexit 1\n')
    runner.run("Check")
    done = runner.run("Comment on the pull request")
    assert (done.returncode, "::notice title=codemod::" in done.stdout) == (0, True)
    gh.write_text("#!/bin/sh\nexit 1\n")
    assert runner.run("Comment on the pull request").returncode == 0
