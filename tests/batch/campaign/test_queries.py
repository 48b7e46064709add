"""Repositories by query: what clients are asked, and the file that comes of their answers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from codemods.batch.campaign import queries
from codemods.batch.campaign.queries import ask, is_query
from codemods.batch.campaign.settings import read
from codemods.batch.campaign.template import write
from codemods.batch.errors import CampaignError

CLIENT = """#!/bin/sh
printf '%s\\n' "$(basename "$0")${GH_HOST:+ at $GH_HOST}${GITLAB_HOST:+ at $GITLAB_HOST} $*" >> "$LOG"
case "$*" in
  *nobody*) echo '[]' ;;
  *broken*) echo 'not JSON' ;;
  *denied*) echo 'HTTP 404: Not Found (https://me:hunter2@api/x)' >&2; exit 1 ;;
  *projects\\?*) echo '[{"http_url_to_repo": "https://gitlab.com/g/one.git"}, {"http_url_to_repo":
    "https://gitlab.com/me/two.git", "forked_from_project": {"id": 1}}]' ;;
  *--group*) echo '[{"http_url_to_repo": "https://gitlab.com/g/s/one.git"}]' ;;
  *) echo '[{"url": "https://github.com/acme/two"}, {"url": "https://github.com/acme/one"}]' ;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clients that answer, and the file where what they were asked stands."""
    (tmp_path / "bin").mkdir()
    for name in ("gh", "glab"):
        (tmp_path / "bin" / name).write_text(CLIENT)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "asked"))
    return tmp_path / "asked"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("https://github.com/acme", "gh repo list acme --no-archived --source --limit 10000 --json url"),
        ("https://github.acme.org/team/", "gh at github.acme.org repo list team --no-archived --source"),
        ("topic:pytorch", "gh search repos --archived=false --limit 1000 --json url --topic pytorch"),
        ("search:training loop", "gh search repos --archived=false --limit 1000 --json url training loop"),
        (
            "https://gitlab.com/g",
            "glab repo list --group g --include-subgroups --archived=false --per-page 100 --page 1",
        ),
    ],
)
def test_what_is_asked(asked: Path, text: str, command: str) -> None:
    assert is_query(text)
    assert ask(text)
    (line,) = asked.read_text().splitlines()
    assert line.startswith(command)


@pytest.mark.parametrize(
    ("text", "query"),
    [("topic:pytorch", "topic=pytorch"), ("search: training & loop", "search=training+%26+loop")],
)
def test_gitlab_is_asked_where_there_is_only_its_client(
    asked: Path, monkeypatch: pytest.MonkeyPatch, text: str, query: str
) -> None:
    (asked.parent / "bin" / "gh").unlink()
    monkeypatch.setenv("PATH", f"{asked.parent / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    if shutil.which("gh"):
        pytest.skip("gh is installed where everything is")
    assert ask(text) == ["https://gitlab.com/g/one.git"]
    (line,) = asked.read_text().splitlines()
    assert line == f"glab api projects?{query}&archived=false&simple=false&per_page=100&page=1"


@pytest.mark.parametrize(
    "text", ["https://github.com/o/n", "git@github.com:o/n", "ssh://git@h/o", "repos", ".", "/a/b"]
)
def test_what_is_no_query(text: str) -> None:
    assert not is_query(text)


def test_a_campaign_of_an_owner(asked: Path, tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    assert write(file, ["https://github.com/acme", "topic:pytorch", "https://host.org/o/n"]) == 3
    listed = (tmp_path / "campaign-repositories.txt").read_text().splitlines()
    assert listed[0] == "https://github.com/acme/one  # topic:pytorch"
    assert [one.source.url for one in read(file).repositories] == [
        "https://host.org/o/n", "https://github.com/acme/one", "https://github.com/acme/two",
    ]  # fmt: skip
    (tmp_path / "campaign-repositories.txt").write_text("mine")
    with pytest.raises(CampaignError, match="--force"):
        write(file, ["https://github.com/acme"])
    assert (tmp_path / "campaign-repositories.txt").read_text() == "mine"
    # Nor is a list lost whose campaign file is gone.
    file.unlink()
    with pytest.raises(CampaignError, match=r"campaign-repositories\.txt exists; --force"):
        write(file, ["https://github.com/acme"])
    assert (tmp_path / "campaign-repositories.txt").read_text() == "mine"
    assert not file.exists()
    assert write(file, ["https://github.com/acme"], force=True) == 2


def test_what_a_search_cuts_off_is_told(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    ask("topic:pytorch", said.append)
    assert said == []
    monkeypatch.setattr(queries, "MOST", 2)
    ask("topic:pytorch", said.append)
    ask("https://github.com/acme", said.append)
    assert said == ["topic:pytorch: 2 repositories are listed, and there may be more: ask for less at a time"]


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        ("nobody", "no repository was found"),
        ("broken", "gh answered 'not JSON'"),
        ("denied", r"Not Found \(https://\*\*\*@api"),
    ],
)
def test_what_goes_wrong_is_told(asked: Path, tmp_path: Path, owner: str, why: str) -> None:
    with pytest.raises(CampaignError, match=why):
        write(tmp_path / "campaign.toml", [f"https://github.com/{owner}"])
    assert not (tmp_path / "campaign.toml").exists()


def test_without_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nothing")
    with pytest.raises(CampaignError, match="install gh"):
        ask("https://github.com/acme")
    with pytest.raises(CampaignError, match="gh is not installed"):
        ask("topic:x")
