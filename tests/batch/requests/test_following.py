"""What became of pull requests, asked of stand-ins for the forges' clients that answer in the shapes of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codemods.batch.campaign.settings import Campaign, read
from codemods.batch.errors import CampaignError
from codemods.batch.fleet import data
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.overview import status, status_text
from codemods.batch.places import slug_of
from codemods.batch.requests.following import follow
from tests.batch.forge import GREEN, RED, Forge
from tests.batch.tools import campaign_file

A, B, C = "github.com/o/a", "github.com/o/b", "gitlab.com/g/s/c"


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    """Two repositories on GitHub and one on GitLab, each with a request."""
    forge = Forge(tmp_path / "forge")
    for name, value in forge.environment().items():
        monkeypatch.setenv(name, value)
    for name in (A, B, C):
        forge.add(name, [{}])
    return forge


@pytest.fixture
def campaign(tmp_path: Path, forge: Forge) -> Campaign:
    """These three, published, and one that is not."""
    made = read(campaign_file(tmp_path))
    made.work.mkdir()
    addresses = [f"https://{A}/pull/1", f"https://{B}/pull/1", f"https://{C}/-/merge_requests/1"]
    with Ledger.open(made.work) as ledger:
        ledger.register(((n, n, f"https://host/{n}", "") for n in "abcd"), slug_of)
        for number, address in enumerate(addresses, 1):
            ledger.change(number, "published", stage="publish", pull_request=address)
    return made


def followed(campaign: Campaign, **choices: Any) -> tuple[int, list[str]]:
    said: list[str] = []
    return follow(campaign, said.append, **choices), said


def test_requests_are_followed_to_their_end(campaign: Campaign, forge: Forge) -> None:
    assert "pull requests: 3 not asked yet" in status_text(status(campaign))
    forge.change(A, checks=[RED], comments=[{"author": "ada", "body": "why?"}])
    failures, said = followed(campaign)
    assert (failures, said[0]) == (0, f"a: open, checks red, 1 comment: https://{A}/pull/1")
    assert said[-1] == "pull requests: 3 open, 1 with red checks"
    asked = forge.asked()
    assert asked[0][:6] == ["gh", "pr", "view", "1", "--repo", A]
    assert asked[2] == ["glab", "mr", "view", "1", "--repo", f"https://{C}", "--output", "json"]
    # Nothing new is nothing to say.
    assert followed(campaign)[1] == ["pull requests: 3 open, 1 with red checks"]
    forge.change(A, state="merged", merged="2026-11-02T10:00:00Z", comments=[])
    forge.change(B, state="closed", closed="2026-11-03T10:00:00Z")
    forge.change(C, draft=True)
    _, said = followed(campaign)
    assert said[-1] == "pull requests: 1 merged, 1 open, 1 closed"
    forge.forget()
    followed(campaign)
    # What is merged stays so; what is closed may be opened again.
    assert [words[5] for words in forge.asked("view")] == [B, f"https://{C}"]
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
        assert ledger.query("SELECT slug, state, draft, checks, opened_at, ended_at FROM requests ORDER BY slug") == [
            {"slug": "a", "state": "merged", "draft": 0, "checks": "red", "opened_at": 1792483200.0}
            | {"ended_at": 1793613600.0},
            {"slug": "b", "state": "closed", "draft": 0, "checks": "", "opened_at": 1792483200.0}
            | {"ended_at": 1793700000.0},
            {"slug": "c", "state": "open", "draft": 1, "checks": "", "opened_at": 1792483200.0, "ended_at": None},
        ]


def test_what_people_said_is_kept_and_told(campaign: Campaign, forge: Forge) -> None:
    forge.change(
        A, comments=[{"author": "ada", "body": "does it\nstill learn?"}, {"author": "campaigner", "body": "x"}]
    )
    forge.change(A, reviews=[{"author": "bo", "state": "CHANGES_REQUESTED", "body": "see below"}])
    forge.change(A, remarks=[{"author": "bo", "body": "item()", "path": "train.py", "line": 7}], checks=[GREEN])
    forge.change(A, review="CHANGES_REQUESTED")
    forge.change(C, remarks=[{"author": "cy", "body": "no", "path": "a.py", "line": 2}])
    forge.change(C, comments=[{"author": "campaigner", "body": "rebased"}])
    failures, said = followed(campaign, comments=True)
    assert failures == 0
    assert sorted(said) == [
        "    ada: does it still learn?",
        "    bo on train.py:7: item()",
        "    bo: see below",
        "    cy on a.py:2: no",
        f"a: open, checks green, changes requested, 3 comments: https://{A}/pull/1",
        f"b: open: https://{B}/pull/1",
        f"c: open, 1 comment: https://{C}/-/merge_requests/1",
        "pull requests: 3 open, 1 with changes requested",
    ]
    # Where nobody has said anything, nobody is asked for it.
    assert [words[-1] for words in forge.asked("api")] == [
        "repos/o/a/pulls/1/comments?per_page=100",
        "projects/g%2Fs%2Fc/merge_requests/1/approvals",
        "projects/g%2Fs%2Fc/merge_requests/1/notes?per_page=100",
    ]
    # What was taken back is not told any more.
    forge.change(A, comments=[], reviews=[], remarks=[])
    assert "    ada: does it still learn?" not in followed(campaign, comments=True)[1]


def test_an_approval_on_gitlab_is_asked_for(campaign: Campaign, forge: Forge) -> None:
    forge.change(C, approved_by=["ada"])
    assert f"c: open, approved: https://{C}/-/merge_requests/1" in followed(campaign)[1]
    forge.change(C, detailed="requested_changes")
    assert f"c: open, changes requested: https://{C}/-/merge_requests/1" in followed(campaign)[1]
    # Where the interface has none, nobody is known to have approved it.
    forge.change(C, detailed="mergeable", refuse={"api": "glab: 404 Not Found (HTTP 404)"})
    assert f"c: open: https://{C}/-/merge_requests/1" in followed(campaign)[1]


def test_one_that_cannot_be_asked_for_is_told_and_the_others_are(campaign: Campaign, forge: Forge) -> None:
    forge.change(A, refuse={"view": "GraphQL: Could not resolve to a Repository with the name 'o/a'. (repository)"})
    forge.change(B, state="merged")
    with Ledger.open(campaign.work) as ledger:
        ledger.note(3, pull_request="https://gitlab.com/g/c/issues/9")
    failures, said = followed(campaign)
    assert failures == 2
    assert said[0] == "a: gh pr view: GraphQL: Could not resolve to a Repository with the name 'o/a'. (repository)"
    assert said[1] == f"b: merged: https://{B}/pull/1"
    assert said[2] == "c: https://gitlab.com/g/c/issues/9: no address of a merge request"
    assert said[3] == "pull requests: 1 merged, 2 not asked yet"


def test_what_is_no_json_is_told(campaign: Campaign, forge: Forge) -> None:
    for answer in ("[1]", "<html>"):
        (forge.folder / "bin" / "gh").write_text(f"#!/bin/sh\necho '{answer}'\n")
        assert f"a: gh answered '{answer}'" in followed(campaign)[1]


def test_a_forge_that_is_down_changes_nothing(campaign: Campaign, forge: Forge) -> None:
    followed(campaign)
    forge.set(down="error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com")
    failures, said = followed(campaign)
    assert failures == 3
    assert "a: gh pr view: error connecting to api.github.com check your internet" in said[0]
    assert said[-1] == "pull requests: 3 open"


def test_only_some_and_none(campaign: Campaign) -> None:
    assert followed(campaign, only=["b"]) == (
        0,
        [f"b: open: https://{B}/pull/1", "pull requests: 1 open, 2 not asked yet"],
    )
    with pytest.raises(CampaignError, match="no repository 'x' in this campaign"):
        followed(campaign, only=["x"])


def test_before_anything_was_run(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="nothing was done yet"):
        followed(read(campaign_file(tmp_path)))
