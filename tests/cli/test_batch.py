"""``codemod batch`` as a person has it: what is said, and with which status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.batch.tools import CLEAN, TRAIN, bare, campaign_file, repository
from tests.commands import codemod


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A campaign of two repositories, in the working directory."""
    monkeypatch.chdir(tmp_path)
    source = repository(tmp_path / "source", {"train.py": TRAIN})
    bare(tmp_path / "repos" / "wrong.git", source)
    repository(tmp_path / "repos" / "fine", {"lib.py": CLEAN})
    return campaign_file(tmp_path, '[publish]\nremote = "repos/{name}.git"\nrequire = "not-broken"\n').name


def test_from_init_to_publish(file: str, tmp_path: Path) -> None:
    made = codemod("batch", "init", "mine.toml")
    assert (made.status, "codemod batch plan mine.toml" in made.stdout) == (0, True)
    planned = codemod("batch", "plan", file)
    assert "2 repositories, 2 with something to do" in planned.stdout
    before = codemod("batch", "status", file)
    assert before.stdout == "trial: 2 planned\nnothing was done yet\n"
    ran = codemod("batch", "run", file)
    assert (ran.status, ran.stdout) == (0, "trial: 1 rewritten, 1 unchanged\n")
    lines = sorted(line.split("  ", 1)[1].rsplit(" (", 1)[0] for line in ran.stderr.splitlines())
    assert lines == ["fine: nothing to change", "wrong: rewritten, 1 file changed; not verified"]
    again = codemod("batch", "run", file)
    assert (again.status, again.stdout) == (0, "trial: nothing was left to do\n")
    status = json.loads(codemod("batch", "status", file, "--format", "json").stdout)
    assert status["states"] == {"rewritten": 1, "unchanged": 1}
    reported = codemod("batch", "report", file, "--format", "markdown")
    assert reported.stdout == "work/report/report.md\n"
    dry = codemod("batch", "publish", file, "--dry-run")
    assert (dry.status, "git -C " in dry.stdout) == (0, True)
    published = codemod("batch", "publish", file)
    assert (published.status, "wrong: codemod is pushed" in published.stdout) == (0, True)
    assert "1 published" in codemod("batch", "status", file).stdout
    # Nothing lies about beside the work folder.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaign.toml", "mine.toml", "repos", "source", "work"]


def test_an_interpreter_that_is_not_there(file: str, tmp_path: Path) -> None:
    text = Path(file).read_text().replace("run = false", 'python = "no/such/python"')
    Path(file).write_text(text)
    for words in ("plan", "run", "retry --all"):
        ran = codemod("batch", *words.split(), file)
        said = f"codemod: {tmp_path / file}: python in [verify]: {tmp_path / 'no/such/python'}: no such file\n"
        assert (ran.status, ran.stdout, ran.stderr) == (2, "", said)
    assert not (tmp_path / "work").exists()
    assert codemod("batch", "run", file, "--clone-only").status == 0
    Path(file).write_text(text.replace("[verify]", "[verify]\nrun = false"))
    assert codemod("batch", "plan", file).status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nothing.toml"], "nothing.toml: no such file; codemod batch init nothing.toml writes one"),
        (["init", "campaign.toml"], "campaign.toml exists; --force writes over it"),
        (["report", "campaign.toml"], "nothing was done yet"),
        (["publish", "campaign.toml"], "nothing was done yet"),
        (["retry", "campaign.toml"], "say what to do again"),
        (["run", "campaign.toml", "--only", "no"], "no repository 'no' in this campaign"),
        (["report", "campaign.toml", "--format", "pdf"], "--format pdf: must be one of html, markdown"),
        (["status", "campaign.toml", "--format", "xml"], "--format xml: must be one of text, json"),
        (
            ["run", "campaign.toml", "--scheduler", "tcp://127.0.0.1:9"],
            "the scheduler tcp://127.0.0.1:9 does not answer",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    file: str, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codemods.batch.executors.dask._REACHING", 1)
    ran = codemod("batch", *words)
    assert ran.status == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_campaign_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = campaign_file(tmp_path).name
    for word in ("plan", "run"):
        ran = codemod("batch", word, file)
        assert (ran.status, ran.stdout, "names no repositories" in ran.stderr) == (2, "", True)
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("words", [[], ["no-such-command"]])
def test_bad_usage(words: list[str]) -> None:
    assert codemod("batch", *words).status == 2


def test_what_fails_is_told_by_the_status(file: str, tmp_path: Path) -> None:
    Path(file).write_text(Path(file).read_text() + '[[repository]]\nsource = "nothing"\n')
    ran = codemod("batch", "run", file, "-q")
    assert (ran.status, ran.stdout, ran.stderr) == (1, "", "")
    told = codemod("batch", "status", file).stdout
    assert "nothing: failed at clone: " in told
    assert "log: repositories/nothing/logs/clone.log" in told
    retried = codemod("batch", "retry", file, "--failed")
    assert (retried.status, retried.stdout) == (1, "trial: 1 failed\n")


@pytest.mark.parametrize("file", ["", "."])
@pytest.mark.parametrize("words", [[], ["--force"]])
def test_a_campaign_file_without_a_name(
    file: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = codemod("batch", "init", file, *words)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr == "codemod: cannot write .: is a directory\n"
    assert list(tmp_path.iterdir()) == []
