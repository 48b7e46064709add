"""What the forges' clients say of a request, in the shapes that they were recorded in."""

from __future__ import annotations

from typing import Any

import pytest

from codemods.batch.errors import Failed
from codemods.batch.requests.standing import (
    Comment,
    Standing,
    notes_of_gitlab,
    of_github,
    of_gitlab,
    standing_of,
    summary,
)
from tests.batch.forge import GREEN, RED, RUNNING, STATUS, check


def github(state: str = "OPEN", checks: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    comments = [{"author": {"login": "ada"}, "body": "why?", "viewerDidAuthor": False}] * more.pop("said", 0)
    base = {"state": state, "isDraft": False, "reviewDecision": "", "statusCheckRollup": checks or []}
    return {**base, "comments": comments, "reviews": [], "author": {"login": "me"}, "mergeable": "UNKNOWN", **more}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (github(), "open"),
        (github(isDraft=True), "draft, open"),
        (github(checks=[GREEN, check("COMPLETED", "SKIPPED")]), "open, checks green"),
        (github(checks=[GREEN, RUNNING]), "open, checks waiting"),
        (github(checks=[GREEN, STATUS]), "open, checks waiting"),
        (github(checks=[GREEN, RED, RUNNING], said=2), "open, checks red, 2 comments"),
        (github(checks=[{**STATUS, "state": "ERROR"}]), "open, checks red"),
        (github(reviewDecision="CHANGES_REQUESTED", said=1), "open, changes requested, 1 comment"),
        (github(reviewDecision="REVIEW_REQUIRED"), "open"),
        (github(mergeable="CONFLICTING"), "open, in conflict"),
        (github("MERGED", [RED], reviewDecision="APPROVED"), "merged"),
        (github("CLOSED", isDraft=True), "closed"),
        # Fields that there is nothing to say of are null.
        ({"state": "OPEN", "statusCheckRollup": None, "comments": None, "reviews": None, "author": None}, "open"),
    ],
)
def test_what_github_says(answer: dict[str, Any], told: str) -> None:
    assert of_github(answer).standing.text() == told


def times(conclusion: str, started: str, completed: str, **more: Any) -> dict[str, Any]:
    """The run of a check from and to times of day."""
    day = "2026-11-01T{}:00Z"
    return {
        **check("COMPLETED", conclusion),
        "startedAt": day.format(started),
        "completedAt": day.format(completed),
        **more,
    }


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        # Run again, the later one counts, whatever the order they are told in.
        ([times("FAILURE", "10:00", "10:05"), times("SUCCESS", "11:00", "11:05")], "green"),
        ([times("SUCCESS", "11:00", "11:05"), times("FAILURE", "10:00", "10:05")], "green"),
        ([times("SUCCESS", "10:00", "10:05"), times("FAILURE", "11:00", "11:05")], "red"),
        ([times("FAILURE", "10:00", "10:05"), RUNNING | {"startedAt": "2026-11-01T11:00:00Z"}], "waiting"),
        # Beside each other they are of two events, and one is red.
        ([times("FAILURE", "10:00", "10:05"), times("SUCCESS", "10:01", "10:06")], "red"),
        # One that was cancelled made way for the later one.
        ([times("CANCELLED", "10:00", "10:05"), times("SUCCESS", "10:01", "10:06")], "green"),
        ([times("CANCELLED", "10:00", "10:05")], "red"),
        # Others have other names.
        ([times("FAILURE", "10:00", "10:05"), times("SUCCESS", "11:00", "11:05", name="lint")], "red"),
        ([times("FAILURE", "10:00", "10:05"), times("SUCCESS", "11:00", "11:05", workflowName="Docs")], "red"),
        ([{**STATUS, "state": "FAILURE"}, {**STATUS, "state": "SUCCESS", "startedAt": "2026-11-01T12:00:00Z"}], "red"),
        ([times("STALE", "10:00", "10:05")], "waiting"),
    ],
)
def test_checks_that_were_run_again(checks: list[dict[str, Any]], told: str) -> None:
    assert of_github(github(checks=checks)).standing.checks == told


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
        ({"state": "opened", "has_conflicts": True}, "open, in conflict"),
        ({"state": "merged", "head_pipeline": {"status": "success"}}, "merged"),
        ({"state": "closed"}, "closed"),
    ],
)
def test_what_gitlab_says(answer: dict[str, Any], told: str) -> None:
    assert of_gitlab(answer).standing.text() == told


@pytest.mark.parametrize("read", [of_github, of_gitlab])
def test_a_state_that_is_none_is_no_state(read: Any) -> None:
    with pytest.raises(Failed, match="an unknown state: 'NEW'"):
        read({"state": "NEW"})


def test_who_said_what_and_not_what_we_said() -> None:
    mine = {"author": {"login": "me"}, "body": "rebased", "viewerDidAuthor": True, "createdAt": "2026-01-01T00:00:00Z"}
    gone = {"author": None, "body": "hm", "viewerDidAuthor": False, "createdAt": "no time"}
    review = {"author": {"login": "bo"}, "body": "why not .item()?", "state": "COMMENTED", "submittedAt": None}
    answer = of_github(github(comments=[mine, gone], reviews=[review, {**review, "body": ""}]))
    assert answer.comments == (Comment(None, "", "", None, "hm"), Comment(None, "bo", "", None, "why not .item()?"))
    assert answer.standing.comments == 2
    system = {"system": True, "author": {"username": "bo"}, "body": "changed the description"}
    note = {"system": False, "author": {"username": "bo"}, "body": "no", "created_at": "1970-01-01T00:00:01.500Z"}
    at = {"position": {"new_path": "a.py", "old_path": "a.py", "new_line": None, "old_line": 3}}
    told = notes_of_gitlab([system, note, {**note, **at}, {**note, "author": {"username": "me"}}], "me")
    assert told == (Comment(1.5, "bo", "", None, "no"), Comment(1.5, "bo", "a.py", 3, "no"))


def test_when_it_was_opened_and_came_to_its_end() -> None:
    opened = {"createdAt": "1970-01-01T00:00:10Z", "mergedAt": None, "closedAt": None}
    assert of_github(github(**opened))[1:3] == (10.0, None)
    assert of_github(github("CLOSED", **{**opened, "closedAt": "1970-01-01T00:01:00Z"}))[1:3] == (10.0, 60.0)
    # A request that is merged is closed too; what counts is the merge.
    ends = {"mergedAt": "1970-01-01T00:02:00+00:00", "closedAt": "1970-01-01T00:02:03Z"}
    assert of_github(github("MERGED", **{**opened, **ends}))[2] == 120.0
    told = {"state": "merged", "created_at": "1970-01-01T00:00:10.250Z", "merged_at": "1970-01-01T02:00:00.000+02:00"}
    assert of_gitlab(told)[1:3] == (10.25, 0.0)


def test_a_standing_is_carried_whole() -> None:
    standing = Standing("closed", True, "red", "approved", 2, "abc", True)
    assert standing.text() == "closed, 2 comments"
    assert standing_of({"request": standing.json()}) == standing
    assert standing_of({"request": ""}) is None
    # By an earlier release, and by a later one.
    assert standing_of({"request": '{"state": "open", "draft": true}'}) == Standing("open", True)
    assert standing_of({"request": '{"state": "open", "mood": "good"}'}) == Standing("open")


def test_all_of_them_in_a_line() -> None:
    def row(standing: Standing | None, address: str = "https://host/1") -> dict[str, Any]:
        return {"pull_request": address, "request": standing.json() if standing else ""}

    assert summary([row(None, "")]) == ""
    rows = [row(Standing("open", checks="red", review="changes requested")), row(Standing("open", conflict=True))]
    # Only of what is open it is news that its checks are red.
    rows += [row(Standing("merged", checks="red")), row(Standing("closed")), row(None)]
    assert summary(rows) == (
        "pull requests: 1 merged, 2 open, 1 closed, 1 with red checks, 1 with changes requested, 1 in conflict, "
        "1 not asked yet"
    )
