"""What became of pull requests, asked of stand-ins for the forges' clients that answer in the shapes of theirs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codemods.batch.campaign import Campaign, read
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.fleet import data
from codemods.batch.following import Standing, follow, of_github, of_gitlab
from codemods.batch.ledger import Ledger
from codemods.batch.places import slug_of
from codemods.batch.planning import status, status_text
from tests.batch.tools import campaign_file

#: Answers with the file that is named like the request's number; fails without one.
CLIENT = """#!/bin/sh
printf '%s %s\\n' "$(basename "$0")" "$*" >> "$LOG"
number=$(printf '%s' "$*" | tr -c '0-9\\n' ' ' | awk '{print $1}')
cat "$ANSWERS/$number.json" 2>/dev/null || { echo "GraphQL: Could not resolve to a PullRequest" >&2; exit 1; }
"""


def check(status: str, conclusion: str) -> dict[str, Any]:
    return {"__typename": "CheckRun", "name": "ci", "status": status, "conclusion": conclusion, "workflowName": "CI"}


def github(state: str = "OPEN", checks: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    comments = [{"author": {"login": "ada"}, "body": "why?"}] * more.pop("said", 0)
    base = {"state": state, "isDraft": False, "reviewDecision": "", "statusCheckRollup": checks or []}
    return {**base, "comments": comments, **more}


GREEN, RED, RUNNING = check("COMPLETED", "SUCCESS"), check("COMPLETED", "FAILURE"), check("IN_PROGRESS", "")
CONTEXT = {"__typename": "StatusContext", "context": "ci/x", "state": "PENDING"}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (github(), "open"),
        (github(isDraft=True), "draft, open"),
        (github(checks=[GREEN, check("COMPLETED", "SKIPPED")]), "open, checks green"),
        (github(checks=[GREEN, RUNNING]), "open, checks waiting"),
        (github(checks=[GREEN, CONTEXT]), "open, checks waiting"),
        (github(checks=[GREEN, RED, RUNNING], said=2), "open, checks red, 2 comments"),
        (github(checks=[{**CONTEXT, "state": "ERROR"}]), "open, checks red"),
        (github(reviewDecision="CHANGES_REQUESTED", said=1), "open, changes requested, 1 comment"),
        (github(reviewDecision="REVIEW_REQUIRED"), "open"),
        (github("MERGED", [RED], reviewDecision="APPROVED"), "merged"),
        (github("CLOSED", isDraft=True), "closed"),
    ],
)
def test_what_github_says(answer: dict[str, Any], told: str) -> None:
    assert of_github(answer).text() == told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"state": "opened", "draft": True, "head_pipeline": None, "user_notes_count": 0}, "draft, open"),
        (
            {"state": "opened", "head_pipeline": {"status": "failed"}, "user_notes_count": 3},
            "open, checks red, 3 comments",
        ),
        ({"state": "opened", "head_pipeline": {"status": "running"}}, "open, checks waiting"),
        ({"state": "opened", "detailed_merge_status": "requested_changes"}, "open, changes requested"),
        ({"state": "merged", "head_pipeline": {"status": "success"}}, "merged"),
        ({"state": "closed"}, "closed"),
    ],
)
def test_what_gitlab_says(answer: dict[str, Any], told: str) -> None:
    assert of_gitlab(answer).text() == told


@pytest.mark.parametrize("read", [of_github, of_gitlab])
def test_a_state_that_is_none_is_no_state(read: Any) -> None:
    with pytest.raises(Failed, match="a state that is none: 'NEW'"):
        read({"state": "NEW"})


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """Three that are published, one on GitLab, and one that is not."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "answers").mkdir()
    for name in ("gh", "glab"):
        (tmp_path / "bin" / name).write_text(CLIENT)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "asked"))
    monkeypatch.setenv("ANSWERS", str(tmp_path / "answers"))
    made = read(campaign_file(tmp_path))
    made.work.mkdir()
    addresses = [
        "https://github.com/o/a/pull/7",
        "https://github.com/o/b/pull/8",
        "https://gitlab.com/g/c/-/merge_requests/9",
    ]
    with Ledger.open(made.work) as ledger:
        ledger.register(((n, n, f"https://host/{n}", "") for n in "abcd"), slug_of)
        for number, address in enumerate(addresses, 1):
            ledger.change(number, "published", stage="publish", pull_request=address)
    return made


def followed(campaign: Campaign, **answers: Any) -> tuple[int, list[str]]:
    for number, answer in answers.items():
        (campaign.file.parent / "answers" / f"{number[1:]}.json").write_text(json.dumps(answer))
    said: list[str] = []
    return follow(campaign, said.append), said


def test_requests_are_followed_to_their_end(campaign: Campaign) -> None:
    assert "pull requests: 3 not asked yet" in status_text(status(campaign))
    failures, said = followed(campaign, _7=github(checks=[RED], said=1), _8=github(), _9={"state": "opened"})
    assert (failures, said[0]) == (0, "a: open, checks red, 1 comment: https://github.com/o/a/pull/7")
    assert said[-1] == "pull requests: 3 open, 1 with red checks"
    asked = (campaign.file.parent / "asked").read_text().splitlines()
    assert asked[0].startswith("gh pr view https://github.com/o/a/pull/7 --json state,isDraft,")
    assert asked[2] == "glab mr view 9 --repo https://gitlab.com/g/c --output json"
    # Nothing new is nothing to say.
    assert followed(campaign)[1] == ["pull requests: 3 open, 1 with red checks"]
    _, said = followed(campaign, _7=github("MERGED"), _8=github("CLOSED"), _9={"state": "opened", "draft": True})
    assert said[-1] == "pull requests: 1 merged, 1 open, 1 closed"
    (campaign.file.parent / "asked").unlink()
    followed(campaign)
    # What is merged stays so; what is closed may be opened again.
    assert [line.split()[3] for line in (campaign.file.parent / "asked").read_text().splitlines()] == [
        "https://github.com/o/b/pull/8", "9",
    ]  # fmt: skip
    told = status_text(status(campaign), verbose=True)
    assert "  a: published: merged\n" in told
    assert "pull requests: 1 merged, 1 open, 1 closed\n" in told
    assert data.read(campaign).requests == "pull requests: 1 merged, 1 open, 1 closed"
    with Ledger.open(campaign.work) as ledger:
        events = ledger.query("SELECT before, after FROM events WHERE stage = 'follow' AND repository = 1")
        assert events == [
            {"before": "", "after": "open, checks red, 1 comment"},
            {"before": "open, checks red, 1 comment", "after": "merged"},
        ]


def test_one_that_cannot_be_asked_for_is_told_and_the_others_are(campaign: Campaign) -> None:
    failures, said = followed(campaign, _8=github("MERGED"), _9=["no object"])
    assert failures == 2
    assert said[0] == "a: gh pr view: GraphQL: Could not resolve to a PullRequest"
    assert said[1] == "b: merged: https://github.com/o/b/pull/8"
    assert said[2] == "c: glab answered '[\"no object\"]'"
    assert said[3] == "pull requests: 1 merged, 2 not asked yet"


def test_only_some_and_none(campaign: Campaign, tmp_path: Path) -> None:
    (tmp_path / "answers" / "8.json").write_text(json.dumps(github()))
    said: list[str] = []
    assert follow(campaign, said.append, only=["b"]) == 0
    assert said == ["b: open: https://github.com/o/b/pull/8", "pull requests: 1 open, 2 not asked yet"]
    with pytest.raises(CampaignError, match="no repository 'x' in this campaign"):
        follow(campaign, said.append, only=["x"])


def test_before_anything_was_run(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="nothing was done yet"):
        follow(read(campaign_file(tmp_path)), lambda _: None)


def test_a_standing_is_carried_whole() -> None:
    assert Standing("closed", True, "red", "approved", 2).text() == "closed, 2 comments"
