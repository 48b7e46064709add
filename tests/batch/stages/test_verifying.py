"""What a verified repository tells others, and what stays in the work folder."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import read
from codemods.batch.carrying import encoded
from codemods.batch.environments import interpreters
from codemods.batch.places import Places
from codemods.batch.stages.job import Job
from codemods.batch.stages.verifying import in_environment, reproduction
from tests.batch.inline import run_inline
from tests.batch.test_running import rows
from tests.batch.tools import TRAIN, campaign_file, git, repository
from tests.verify.reports import tools

#: The run is stopped by an error of the script's own that quotes what it should not.
TELLING = TRAIN.replace(
    "        total += loss\n",
    "        total += loss\n        if x is data[3][0]:\n            raise RuntimeError(open('key.txt').read())\n",
)


@pytest.mark.slow
def test_what_a_script_raises_is_not_published(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "r", {"train.py": TELLING, "key.txt": "open-sesame"})
    campaign = read(campaign_file(tmp_path, verify=True, artifacts='"patch", "markdown", "json"'))
    run_inline(campaign)
    row = rows(campaign)["r"]
    assert row["verification"] == "kept", row["why"]
    place = Places(campaign.work).of("r", "verify")
    commits = git(Places(campaign.work).clone("r"), "log", "--format=%B", f"{row['base']}..codemod")
    published = commits + (place / "pull-request.md").read_text()
    assert "open-sesame" not in published
    assert "RuntimeError" in published
    # Who has the work folder may read what it was.
    assert "open-sesame" in (place / "verification.json").read_text()
    assert json.loads((place / "verification.json").read_text())


@pytest.mark.parametrize("python", ["", "/elsewhere/environments/1/bin/python"])
def test_what_a_repository_requires_is_imported_in_the_sandbox_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(interpreters, "ready", lambda *_: (python or sys.executable, ()))
    settings, _ = in_environment(Job("1", 1, "r", "verify", "x"), tmp_path, lambda _: None)
    assert settings.ahead == (not python)


def test_a_reproduction_names_folders_notebooks_and_blanks() -> None:
    made = tools.exact()
    entries = (("'my train.py' --epochs 1", "."), ("train.py", "src dir"), ("'nb 1.ipynb'", "."))
    text = reproduction(Job("1", 1, "r", "verify", "x", entries=entries), made)
    first, second = text.splitlines()
    assert shlex.split(first)[:2] == ["codemod", "verify"]
    assert shlex.split(first)[-4:] == ["--entry", "'my train.py' --epochs 1", "--entry", "'nb 1.ipynb'"]
    assert second.startswith("(cd 'src dir' && codemod verify ")
    assert shlex.split(second.strip("()"))[-4:] == ["--tree", "..", "--entry", "train.py"]


def test_a_reproduction_names_nothing_of_this_machine() -> None:
    made = tools.exact()
    here = {"python": "/elsewhere/environments/1/bin/python", "expose": ("/elsewhere/data",), "environment": ["KEY"]}
    made = replace(made, settings={**made.settings, **here, "steps": 7})
    text = reproduction(Job("1", 1, "r", "verify", "x", entries=(("train.py", "."),)), made)
    assert text == "codemod verify --steps 7 --env KEY --entry train.py"


def test_a_reproduction_names_bytes_and_what_moves_a_cursor(tmp_path: Path) -> None:
    names = ["tr\udcff\udcfe in.py", "a\nb's\\.py", "é\x1b[2J.py"]
    entries = tuple((shlex.quote(name), ".") for name in names)
    text = encoded(reproduction(Job("1", 1, "r", "verify", "x", entries=entries), tools.exact()))
    assert text.decode().isprintable()
    # A stand-in for codemod, which prints what it is given.
    bash = [b"bash", b"-c", b"codemod() { printf '%s\\0' \"$@\"; }; " + text]
    words = subprocess.run(bash, capture_output=True, check=True).stdout.split(b"\0")
    given = [word.decode("utf-8", "surrogateescape") for word in words[2::2]]
    assert [shlex.split(word)[0] for word in given if shlex.split(word)[0] in names] == names
