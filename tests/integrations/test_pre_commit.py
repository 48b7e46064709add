"""The hooks, through pre-commit itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
SCRIPT = """\
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
total = 0
for x, y in [(torch.randn(2, 3), torch.randn(2, 1))]:
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""


class Project:
    """A git repository, with ``codemod`` on the PATH as it would be in the environment that pre-commit builds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        program = folder / "bin" / "codemod"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m codemods "$@"\n')
        program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.env = {
            **kept,
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(folder / "home"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        self.run("git", "init", "-q")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def commit(self) -> subprocess.CompletedProcess[str]:
        self.run("git", "add", "-A")
        return self.run("git", "commit", "-m", "x", check=False)

    def configure(self, *names: str) -> None:
        """Use our hooks of these names, but for the environment: building it is pip's work, and slow."""
        hooks = [hook | {"language": "system"} for hook in yaml.safe_load(HOOKS.read_text()) if hook["id"] in names]
        config = {"repos": [{"repo": "local", "hooks": hooks}]}
        (self.folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))


def test_hooks_are_given_python_and_notebooks() -> None:
    identify = pytest.importorskip("identify.identify")
    for hook in yaml.safe_load(HOOKS.read_text()):
        for name, taken in (("a.py", True), ("a.ipynb", True), ("a.md", False), ("a.json", False)):
            assert bool(set(hook["types_or"]) & identify.tags_from_filename(name)) is taken


@pytest.mark.slow
def test_a_commit_is_refused_a_file_mended_and_the_rest_let_through(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    project = Project(tmp_path)
    project.run(sys.executable, "-m", "pre_commit", "validate-manifest", str(HOOKS))
    project.configure("codemod-check")
    project.run(sys.executable, "-m", "pre_commit", "install")
    (project.folder / "train.py").write_text(SCRIPT)
    refused = project.commit()
    assert refused.returncode == 1
    assert "train.py:11:5: attached-loss-total" in refused.stdout + refused.stderr
    assert project.run("git", "rev-parse", "HEAD", check=False).returncode != 0

    project.configure("codemod-apply")
    assert project.commit().returncode == 1  # pre-commit refuses what a hook has changed
    mended = SCRIPT.replace("total += loss", "total += loss.item()")
    assert (project.folder / "train.py").read_text() == mended

    project.configure("codemod-check", "codemod-apply")
    assert project.commit().returncode == 0
    (project.folder / "notes.md").write_text("total += loss\n")
    assert project.commit().returncode == 0


@pytest.mark.slow
def test_a_push_with_findings_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.run("git", "init", "-q", "--bare", "../remote.git")
    project.run("git", "remote", "add", "origin", "../remote.git")
    mended = SCRIPT.replace("total += loss", "total += loss.item()")
    train = project.folder / "train.py"
    train.write_text(mended)
    assert project.commit().returncode == 0
    project.run("git", "push", "-q", "origin", "HEAD:main")

    (script,) = re.findall(r"```sh\n(#!.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    hook = project.folder / ".git" / "hooks" / "pre-push"
    hook.write_text(script)
    hook.chmod(0o755)
    (project.folder / "clean.py").write_text("x = 1\n")
    assert project.commit().returncode == 0
    assert project.run("git", "push", "origin", "HEAD:main", check=False).returncode == 0

    train.write_text(SCRIPT)
    assert project.commit().returncode == 0
    refused = project.run("git", "push", "origin", "HEAD:main", check=False)
    assert refused.returncode == 1
    assert "train.py:11:5: attached-loss-total" in refused.stdout + refused.stderr
    train.write_text(mended)
    assert project.commit().returncode == 0
    assert project.run("git", "push", "origin", "HEAD:main", check=False).returncode == 0
