"""The life of a pull request at a forge of our own: git over HTTP, and clients that answer as gh and glab do."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from codemods.batch import pending
from codemods.batch.campaign.settings import read
from codemods.batch.errors import CampaignError
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.overview import status, status_text
from codemods.batch.places import Places
from codemods.batch.requests import publishing, updating
from codemods.batch.requests.following import follow
from codemods.batch.requests.updating import outdated
from codemods.cli.batch import app
from tests.batch.forge import GREEN, RED, RUNNING
from tests.batch.inline import run_inline, verified
from tests.batch.tools import CLEAN, TRAIN, git
from tests.batch.worlds import Rewound, World, rewound


@pytest.fixture(scope="module", params=["gh", "glab"])
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rewound]:
    """One that has published both repositories."""

    def publish(world: World) -> None:
        assert world.publish() == 0

    with rewound(tmp_path_factory.mktemp(request.param), request.param, ready=publish) as made:
        yield made


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rewound]:
    """One at GitHub that was run and has published nothing."""
    with rewound(tmp_path_factory.mktemp("github"), "gh") as made:
        yield made


@pytest.fixture
def world(published: Rewound, monkeypatch: pytest.MonkeyPatch) -> World:
    return published(monkeypatch)


@pytest.fixture
def github(begun: Rewound, monkeypatch: pytest.MonkeyPatch) -> World:
    return begun(monkeypatch)


def test_opened_with_reviewers_and_labels_and_the_clones_go(world: World) -> None:
    for name in ("one", "two"):
        request, row = world.request(name), world.row(name)
        assert (request["reviewers"], request["labels"], request["draft"]) == (["ada"], ["codemod"], True)
        assert row["state"] == "published"
        assert row["pull_request"].startswith(f"https://127.0.0.1/o/{name}/")
        assert world.at_remote(name) == row["head"] == row["pushed"]
        assert abs(row["opened_at"] - time.time()) < 600
        assert not Places(world.campaign.work).clone(f"o+{name}").exists()
        # What is looked at later stays.
        assert (Places(world.campaign.work).of(f"o+{name}", "verify") / "pull-request.md").is_file()
    assert world.follow() == "pull requests: 2 open"
    assert world.publish() == 0
    assert "nothing left to publish" in world.said[0]


def test_one_repository_has_other_reviewers_and_a_label_that_is_none_is_told(github: World) -> None:
    one, two = github.campaign.repositories
    theirs = replace(one, reviewers=("bo", "acme/ml"), labels=())
    github.campaign = replace(github.campaign, repositories=(theirs, replace(two, labels=("nonsense",))))
    assert github.publish() == 1
    assert github.request("one")["reviewers"] == ["bo", "acme/ml"]
    assert github.request("one")["labels"] == []
    assert github.said[-1] == "o+two: not published: gh pr create: could not add label: 'nonsense' not found"
    # Its branch is there; what is left is its request.
    assert github.at_remote("two") == github.row("two")["pushed"] != ""
    github.campaign = replace(github.campaign, repositories=(theirs, two))
    assert github.publish() == 0
    assert github.said[0] == "o+two: codemod is pushed already"
    assert github.request("two")["labels"] == ["codemod"]


def test_a_text_that_goes_out_later_is_searched_then(github: World, monkeypatch: pytest.MonkeyPatch) -> None:
    github.forge.set(down="HTTP 502")
    assert github.publish(only=["o+one"]) == 1
    assert github.at_remote("one") == github.row("one")["head"]
    github.forge.set(down="")
    # What another shell, or another day, knows to be secret.
    monkeypatch.setenv("SOME_TOKEN", "surplus-retain-graph")
    assert github.publish(only=["o+one"]) == 1
    assert "holds the value of the variable SOME_TOKEN" in github.said[-1]
    assert not github.forge.read()["repos"]["127.0.0.1/o/one"]["requests"]
    monkeypatch.delenv("SOME_TOKEN")
    assert github.publish(only=["o+one"]) == 0
    assert github.request("one")["state"] == "open"


def test_a_comment_is_searched_for_secrets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "correct-horse-battery")
    with pytest.raises(CampaignError, match="the comment holds the value of the variable SOME_TOKEN"):
        world.close(comment="see correct-horse-battery")
    assert {world.request(name)["state"] for name in ("one", "two")} == {"open"}
    assert world.close(comment="see correct horse") == 0


def test_clones_are_kept_where_that_is_asked_for(github: World) -> None:
    assert github.publish(keep=True) == 0
    clone = Places(github.campaign.work).clone("o+one")
    assert clone.is_dir()
    # As after a kill between the ledger and the removal.
    github.publish()
    assert not clone.exists()


def test_what_moved_upstream_is_redone_and_pushed_over_our_own(world: World) -> None:
    before = world.row("one")
    moved = world.moves("one", "# news\n" + TRAIN)
    follow(world.campaign, lambda _: None)
    failures, reasons = world.update()
    assert failures == 0, world.said
    assert reasons == {"o+one": f"moved upstream, from {before['base'][:10]} to {moved[:10]}"}
    row = world.row("one")
    assert (row["state"], row["base"], row["pull_request"]) == ("published", moved, before["pull_request"])
    assert world.at_remote("one") == row["head"] == row["pushed"] != before["head"]
    place = world.forge.root / "o" / "one.git"
    assert git(place, "merge-base", "codemod", "main") == moved
    assert "# news" in git(place, "show", "codemod:train.py")
    assert "retain_graph" not in git(place, "show", "codemod:train.py")
    # There is one request, still a draft, and it says what it holds now.
    assert len(world.forge.read()["repos"]["127.0.0.1/o/one"]["requests"]) == 1
    assert world.request("one")["draft"] is True
    assert world.at_remote("two") == world.row("two")["head"]
    assert world.events("update") == [("verified", f"moved upstream, from {before['base'][:10]} to {moved[:10]}")]
    assert world.update() == (0, {})


def test_a_main_branch_that_is_called_otherwise_by_now(github: World) -> None:
    assert github.publish(only=["o+one"]) == 0
    before = github.row("one")["head"]
    for name in ("one", "two"):
        git(github.forge.root / "o" / f"{name}.git", "branch", "-m", "main", "trunk")
    github.change("one", base="trunk")
    # One that is not published yet would be proposed to a branch that is not there.
    assert github.publish() == 1
    assert github.said[-1] == (
        "o+two: not published: its branch main is gone; codemod batch retry --all --only o+two does it again"
    )
    assert "o+two: upstream: its branch main is gone\n" in status_text(status(github.campaign, upstream=True))
    run_inline(github.campaign, verified("kept"), only=["o+two"], again=lambda row: "done again")
    assert github.publish(only=["o+two"]) == 0
    assert (github.request("two")["base"], github.row("two")["base_branch"]) == ("trunk", "trunk")
    failures, reasons = github.update()
    assert (failures, reasons) == (0, {"o+one": "its branch main is gone"})
    assert (github.row("one")["base_branch"], github.row("one")["state"]) == ("trunk", "published")
    assert github.at_remote("one") == github.row("one")["head"] == before
    assert github.update() == (0, {})


def test_a_branch_that_the_campaign_asks_for_has_no_other(github: World) -> None:
    (one, two), made = github.campaign.repositories, github.campaign
    github.campaign = replace(made, repositories=(replace(one, ref="main"), two))
    run_inline(github.campaign, verified("kept"), again=lambda row: "done again")
    git(github.forge.root / "o" / "one.git", "branch", "-m", "main", "trunk")
    assert github.publish(only=["o+one"]) == 1
    assert github.said[-1] == "o+one: not published: it has no main any more"


def test_a_branch_that_a_reviewer_has_pushed_to_is_left(world: World) -> None:
    theirs = world.review("one")
    world.moves("one", "# news\n" + TRAIN)
    failures, reasons = world.update()
    assert (failures, reasons) == (1, {})
    ours = world.row("one")["pushed"]
    assert world.said == [
        f"o+one: not updated: somebody has pushed to codemod ({ours[:10]} was ours, {theirs[:10]} is there): "
        "it is left as it is"
    ]
    assert world.at_remote("one") == theirs
    assert world.row("one")["state"] == "published"
    # Nor is it merged, nor removed.
    assert world.merge(drafts=True, only=["o+one"]) == 0
    assert f"o+one: left: somebody has pushed to it ({theirs[:10]}, ours is {ours[:10]})" in world.said
    assert world.close(only=["o+one"], delete_branches=True) == 1
    assert world.request("one")["state"] == "closed"
    assert "somebody has pushed to codemod" in world.said[-1]
    assert world.at_remote("one") == theirs


def test_a_reviewer_who_pushes_while_it_is_redone_loses_nothing(world: World) -> None:
    world.moves("one", "# news\n" + TRAIN)
    found = outdated(world.campaign, world.said.append)
    run_inline(world.campaign, verified("kept"), only=list(found.reasons), again=found.again)
    theirs = world.review("one")
    assert world.publish(only=["o+one"]) == 1
    assert "somebody has pushed to codemod" in world.said[0]
    assert world.at_remote("one") == theirs


def test_the_lease_holds_between_the_look_and_the_push(github: World, monkeypatch: pytest.MonkeyPatch) -> None:
    github.publish()
    github.moves("one", "# news\n" + TRAIN)
    found = outdated(github.campaign, github.said.append)
    run_inline(github.campaign, verified("kept"), only=list(found.reasons), again=found.again)
    theirs = github.review("one")
    # As if they had pushed a moment after we looked.
    monkeypatch.setattr("codemods.batch.requests.publishing.require_ours", lambda *_: None)
    assert github.publish(only=["o+one"]) == 1
    assert "stale info" in github.said[0]
    assert github.at_remote("one") == theirs


def test_what_is_merged_closed_or_removed_is_not_redone(world: World) -> None:
    for name in ("one", "two"):
        world.moves(name, "# news\n" + TRAIN)
    world.change("one", state="merged", merged="2026-11-02T00:00:00Z")
    world.forge.drop_branch("o/two", "codemod")
    failures, reasons = world.update()
    assert (failures, reasons) == (1, {})
    assert world.said == ["o+two: not updated: somebody has removed the branch codemod from the remote"]
    world.change("two", state="closed")
    assert world.update() == (0, {})
    assert world.at_remote("two") == ""


def test_a_request_that_is_closed_while_it_is_redone_is_not_pushed_to(world: World) -> None:
    world.moves("one", "# news\n" + TRAIN)
    before = world.at_remote("one")
    found = outdated(world.campaign, world.said.append)
    run_inline(world.campaign, verified("kept"), only=list(found.reasons), again=found.again)
    world.change("one", state="closed")
    assert world.publish(only=["o+one"]) == 1
    assert world.said[0].startswith("o+one: not published: its request is closed: https://")
    assert world.at_remote("one") == before


def test_killed_while_it_is_redone_it_goes_on(github: World) -> None:
    github.publish()
    moved = github.moves("one", "# news\n" + TRAIN)
    found = outdated(github.campaign, github.said.append)
    run_inline(github.campaign, verified("kept"), only=list(found.reasons), again=found.again, stages=("clone",))
    assert github.row("one")["state"] == "cloned"
    failures, reasons = github.update()
    assert (failures, reasons) == (0, {"o+one": updating.GOES_ON})
    assert github.row("one")["base"] == moved
    assert github.at_remote("one") == github.row("one")["head"]


@pytest.mark.parametrize("reviewed", [False, True])
def test_killed_in_a_push_the_branch_is_ours_until_somebody_adds_to_it(
    github: World, monkeypatch: pytest.MonkeyPatch, reviewed: bool
) -> None:
    push = publishing._push

    def killed(*arguments: Any) -> None:
        push(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_push", killed)
        with pytest.raises(KeyboardInterrupt):
            github.publish(only=["o+one"])
    assert github.row("one")["pushed"] == ""
    there = github.review("one") if reviewed else ""
    github.moves("one", "# news\n" + TRAIN)
    run_inline(github.campaign, verified("kept"), only=["o+one"], again=lambda _: "moved upstream")
    assert github.publish(only=["o+one"]) == reviewed
    assert github.at_remote("one") == (there or github.row("one")["head"])


def test_a_request_whose_text_was_removed_is_opened_once_it_is_made_again(github: World) -> None:
    github.forge.set(down="HTTP 502")
    github.publish()
    github.forge.set(down="")
    with Ledger.open(github.campaign.work) as ledger:
        # As where a branch was published before there was a client.
        ledger.note(github.row("one")["id"], state="published")
    head = github.row("one")["head"]
    shutil.rmtree(github.campaign.work / "repositories")
    assert github.publish() == 2
    assert github.said == [
        "o+one: not published: its results are not in the work folder any more; codemod batch update --only o+one "
        "makes them again",
        "o+two: not published: its results are not in the work folder any more; codemod batch run makes them again",
    ]
    assert github.update(only=["o+one"]) == (0, {"o+one": "the text of its request is gone"})
    assert github.request("one")["state"] == "open"
    assert github.at_remote("one") == github.row("one")["head"] == head


def test_what_upstream_has_mended_can_be_closed_in_bulk(world: World) -> None:
    world.moves("one", CLEAN)
    assert world.update()[0] == 0
    assert "o+one: nothing is left to change: its request can go: codemod batch close --obsolete" in world.said
    assert world.row("one")["state"] == "unchanged"
    assert world.request("one")["state"] == "open"
    assert world.close(obsolete=True, comment="mended upstream", delete_branches=True) == 0
    assert world.request("one")["state"] == "closed"
    assert world.request("one")["comments"] == [{"author": "campaigner", "body": "mended upstream"}]
    assert world.at_remote("one") == ""
    assert world.request("two")["state"] == "open"
    assert world.events("close") == [("closed", "")]
    # What we wrote ourselves is no comment.
    assert world.follow() == "pull requests: 1 open, 1 closed"
    assert json.loads(world.row("one")["request"])["comments"] == 0


def test_after_an_upgrade_what_comes_out_the_same_is_left(github: World, monkeypatch: pytest.MonkeyPatch) -> None:
    github.publish()
    before = github.row("one")
    for module in ("stages.rewriting", "pending", "requests.updating"):
        monkeypatch.setattr(f"codemods.batch.{module}.digest", lambda: "another")
    failures, reasons = github.update(only=["o+one"])
    assert (failures, reasons) == (0, {"o+one": pending.OTHER_TOOL})
    assert "o+one: comes out as it was" in github.said
    after = github.row("one")
    assert (after["state"], after["head"], after["tool"]) == ("published", before["head"], "another")
    assert github.at_remote("one") == before["head"]
    assert not Places(github.campaign.work).clone("o+one").exists()
    assert github.update(only=["o+one"]) == (0, {})


def test_a_rule_left_out_later_leaves_the_branch_later(github: World) -> None:
    github.publish()
    github.file.write_text(github.file.read_text() + '[rules]\nignore = ["surplus-retain-graph"]\n')
    github.campaign = read(github.file)
    assert github.publish(only=["o+one"]) == 0
    assert "codemod batch update does it again" in github.said[0]
    assert "2 published with other settings; codemod batch update does them again" in status_text(
        status(github.campaign)
    )
    failures, reasons = github.update(only=["o+one"])
    assert (failures, reasons) == (0, {"o+one": "the campaign's settings changed"})
    assert "retain_graph=True" in git(github.forge.root / "o" / "one.git", "show", "codemod:train.py")
    assert github.request("one")["title"] == "Autograd graph fixes (attached-loss-total)"


def test_what_breaks_when_it_is_redone_is_not_pushed(github: World) -> None:
    github.publish()
    before = github.at_remote("one")
    github.moves("one", "# news\n" + TRAIN)
    failures, _ = github.update("broken")
    assert failures == 1
    assert any(
        line.startswith("o+one: refused, its branch stays as it was: a promise was broken") for line in github.said
    )
    assert github.at_remote("one") == before


def test_merged_in_bulk_at_our_commit_and_no_other(world: World) -> None:
    world.change("two", checks=[RED], pipeline="failed")
    world.change("one", checks=[GREEN], pipeline="success")
    assert world.merge() == 0
    assert world.said[-1] == "nothing to merge"
    assert "o+one: left: it is a draft; --drafts takes these too" in world.said
    # Nothing happens unless somebody says so.
    assert world.merge(confirmed=False, drafts=True) == 0
    assert world.said[-1] == "1 pull request to merge; nothing was done"
    assert world.request("one")["draft"] is True
    assert world.merge(drafts=True, method="squash") == 0
    assert world.request("one")["state"] == "merged"
    assert world.request("one")["method"] == "squash"
    assert "o+two: left: its checks are red" in world.said
    (words,) = world.forge.asked("merge")
    assert world.row("one")["pushed"] in words
    assert world.follow() == "pull requests: 1 merged, 1 open, 1 with red checks"
    assert world.events("merge") == [("merged", "")]
    assert world.row("one")["ended_at"] is not None


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"checks": [GREEN, RUNNING]}, "its checks are waiting"),
        ({"review": "CHANGES_REQUESTED"}, "changes requested"),
        ({"conflict": True}, "it is in conflict; codemod batch update redoes it"),
        ({"review": ""}, "nobody has approved it"),
    ],
)
def test_what_is_not_ready_is_not_merged(github: World, values: dict[str, Any], why: str) -> None:
    github.publish()
    github.change("one", draft=False, **{"review": "APPROVED", **values})
    assert github.merge(approved=True, only=["o+one"]) == 0
    assert github.said == [f"o+one: left: {why}", "nothing to merge"]
    assert github.forge.asked("merge") == []


def test_what_the_forge_refuses_is_told_in_its_own_words(world: World) -> None:
    if world.client == "gh":
        said = (
            "X Pull request o/one#1 is not mergeable: the base branch policy prohibits the merge.\n"
            "To have the pull request merged after all the requirements have been met, add the `--auto` flag."
        )
    else:
        said = "PUT https://127.0.0.1/api/v4/projects/o%2Fone/merge_requests/1/merge: 401 {message: 401 Unauthorized}"
    for name in ("one", "two"):
        world.change(name, draft=False)
    world.change("one", refuse={"merge": said})
    assert world.merge() == 1
    told = f"{world.client} {'pr' if world.client == 'gh' else 'mr'} merge: {' '.join(said.split())}"
    assert f"o+one: {told}" in world.said
    # The others are merged all the same.
    assert (world.request("one")["state"], world.request("two")["state"]) == ("open", "merged")
    assert world.events("merge") == [("refused", told), ("merged", "")]


def test_red_ones_are_closed_and_no_others(world: World) -> None:
    world.change("one", checks=[RED], pipeline="failed")
    world.change("two", checks=[GREEN], pipeline="success")
    assert world.close(red=True) == 0
    assert (world.request("one")["state"], world.request("two")["state"]) == ("closed", "open")
    assert world.at_remote("one") != ""
    assert world.close(red=True) == 0
    assert world.said == ["nothing to close"]


def test_one_that_the_campaign_does_not_name_any_more_is_obsolete(github: World) -> None:
    github.publish()
    github.campaign = replace(github.campaign, repositories=github.campaign.repositories[1:])
    run_inline(github.campaign)
    assert github.close(obsolete=True, delete_branches=True) == 0
    assert github.request("one")["state"] == "closed"
    assert "o+one: the campaign does not name it any more: its branch codemod stays" in github.said
    assert github.request("two")["state"] == "open"


# So many a day, at night.


def at(clock: str, day: int = 20) -> float:
    return time.mktime(time.strptime(f"2026-11-{day} {clock}", "%Y-%m-%d %H:%M"))


def test_only_in_the_campaigns_hours(github: World) -> None:
    settings = replace(github.campaign.publishing, hours=(22 * 60, 6 * 60))
    github.file.write_text(github.file.read_text() + 'hours = "22:00-06:00"\n')
    github.campaign = read(github.file)
    assert github.campaign.publishing == settings
    assert github.publish(clock=lambda: at("12:00")) == 0
    assert github.said == ["nothing is published outside of 22:00-06:00: from 2026-11-20 22:00 on, or with --now"]
    assert github.at_remote("one") == ""
    # A dry run is for looking.
    assert github.publish(clock=lambda: at("12:00"), dry_run=True) == 0
    assert github.said[0] == "o+one:"
    clocks = iter([at("05:59"), at("06:00")])
    assert github.publish(clock=lambda: next(clocks)) == 0
    assert github.at_remote("one") != ""
    assert github.at_remote("two") == ""
    assert github.publish(clock=lambda: at("12:00"), at_once=True) == 0
    assert github.at_remote("two") != ""


def test_so_many_a_day(github: World) -> None:
    github.campaign = replace(github.campaign, publishing=replace(github.campaign.publishing, per_day=1))
    assert github.publish() == 0
    assert github.said[-1] == "1 published today, as many as per-day allows; the rest tomorrow, or with --now"
    assert github.at_remote("two") == ""
    assert github.publish() == 0
    assert github.at_remote("two") == ""
    assert github.publish(clock=lambda: time.time() + 86_400) == 0
    assert github.at_remote("two") != ""


# On the command line.


def test_nothing_is_destroyed_without_a_word(github: World) -> None:
    github.publish()
    github.change("one", draft=False)
    github.change("two", draft=False)
    for words in (["merge"], ["close", "--all"]):
        done = CliRunner().invoke(app, [words[0], str(github.file), *words[1:]], standalone_mode=False)
        assert "nobody is there to answer; pass --yes" in str(done.exception)
    done = CliRunner().invoke(app, ["close", str(github.file)], standalone_mode=False)
    assert "say which to close" in str(done.exception)
    done = CliRunner().invoke(app, ["merge", str(github.file), "--method", "octopus"], standalone_mode=False)
    assert "must be one of merge, squash, rebase" in str(done.exception)
    done = CliRunner().invoke(app, ["close", str(github.file), "--all", "--dry-run"], standalone_mode=False)
    assert "2 pull requests to close; nothing was done" in done.output
    assert github.forge.asked("merge") == github.forge.asked("close") == []
    done = CliRunner().invoke(app, ["merge", str(github.file), "--yes", "--most", "1"], standalone_mode=False)
    assert done.return_value == 0, done.output
    assert (github.request("one")["state"], github.request("two")["state"]) == ("merged", "open")


def test_update_on_the_command_line(github: World, monkeypatch: pytest.MonkeyPatch) -> None:
    github.file.write_text(github.file.read_text().replace("steps = 6", "run = false"))
    github.file.write_text(github.file.read_text() + 'require = "not-broken"\n')
    github.campaign = read(github.file)
    run_inline(github.campaign, again=lambda _: "changed")
    assert github.publish() == 0, github.said
    assert github.row("one")["state"] == "published"
    moved = github.moves("one", "# news\n" + TRAIN)
    before = github.at_remote("one")
    done = CliRunner().invoke(app, ["update", str(github.file), "--dry-run"], standalone_mode=False)
    assert "1 branch to update; nothing was done" in done.output
    done = CliRunner().invoke(app, ["update", str(github.file)], standalone_mode=False)
    assert "nobody is there to answer" in str(done.exception)
    assert github.at_remote("one") == before
    monkeypatch.chdir(github.folder)
    done = CliRunner().invoke(app, ["update", str(github.file), "--yes", "-q"], standalone_mode=False)
    assert done.return_value == 0, done.output
    assert github.row("one")["base"] == moved
    assert github.at_remote("one") == github.row("one")["head"] != before
    done = CliRunner().invoke(app, ["update", str(github.file), "--yes"], standalone_mode=False)
    assert "nothing to update" in done.output
