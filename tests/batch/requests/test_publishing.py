"""Branches and pull requests: what may go out, once, and never over somebody else's work."""

from __future__ import annotations

import copy
import functools
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from codemods.batch import forges
from codemods.batch.campaign.settings import Campaign, Publishing, read
from codemods.batch.errors import CampaignError, Failed, Refused
from codemods.batch.git import Git
from codemods.batch.ledger.ledger import FILE, Ledger
from codemods.batch.places import Places
from codemods.batch.requests import publishing
from codemods.batch.requests.publishing import publish
from codemods.batch.requests.secrecy import require_nothing_secret
from codemods.batch.sources import parse
from codemods.cli.batch import app
from tests.batch.inline import run_inline, verified
from tests.batch.tools import CLEAN, TRAIN, bare, campaign_file, commit, git, repository
from tests.batch.worlds import Kept

REMOTE = '[publish]\nremote = "repos/{name}.git"\n'


class Forge:
    """A campaign over bare repositories, run; ``publish`` returns failures and what was said."""

    def __init__(self, folder: Path, verdict: str = "kept") -> None:
        for name, text in (("one", TRAIN), ("two", TRAIN + "print(1)\n"), ("fine", CLEAN)):
            source = repository(folder / "work" / name, {"train.py": text})
            bare(folder / "repos" / f"{name}.git", source)
        self.folder = folder
        # What lies on this machine is pushed to only by its name.
        self.campaign: Campaign = read(campaign_file(folder, REMOTE, verify=True))
        run_inline(self.campaign, verified(verdict))

    def publish(self, **choices: Any) -> tuple[int, list[str]]:
        said: list[str] = []
        self.slept: list[float] = []
        failures = publish(self.campaign, said.append, sleep=self.slept.append, **choices)
        return failures, said

    def row(self, slug: str) -> dict[str, Any]:
        ledger = Ledger.read(self.campaign.work)
        assert ledger is not None
        with ledger:
            return next(row for row in ledger.repositories() if row["slug"] == slug)

    def remote(self, name: str) -> Path:
        return self.folder / "repos" / f"{name}.git"

    def refs(self, name: str) -> dict[str, str]:
        lines = git(self.remote(name), "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split() for line in lines)


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[Forge, Kept]]:
    """By the verdict: one that was run once, and how its folder was then."""
    return {}


@pytest.fixture
def make(made: dict[str, tuple[Forge, Kept]], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Forge]:
    def forge(verdict: str = "kept") -> Forge:
        if verdict in made:
            made[verdict][1].back()
        else:
            new = Forge(tmp_path_factory.mktemp("forge"), verdict)
            made[verdict] = new, Kept(new.folder)
        return copy.copy(made[verdict][0])

    return forge


def test_branches_are_pushed_once(make: Callable[..., Forge]) -> None:
    forge = make()
    assert forge.publish()[0] == 0
    for name in ("one", "two"):
        row = forge.row(name)
        assert row["state"] == "published"
        assert forge.refs(name)["refs/heads/codemod"] == row["head"] == row["pushed"]
    assert list(forge.refs("fine")) == ["refs/heads/main"]
    assert forge.slept == [10.0]
    failures, said = forge.publish()
    assert (failures, forge.slept) == (0, [])
    assert "nothing left to publish" in said[0]


def test_a_dry_run_prints_and_does_nothing(make: Callable[..., Forge]) -> None:
    forge = make()
    before = {name: forge.refs(name) for name in ("one", "two")}
    failures, said = forge.publish(dry_run=True)
    assert failures == 0
    pushes = [line for line in said if line.startswith("  git -C ")]
    assert len(pushes) == 2
    assert "--force-with-lease=refs/heads/codemod: -- file://" in pushes[0]
    assert before == {name: forge.refs(name) for name in ("one", "two")}
    assert forge.row("one")["state"] == "verified"


@pytest.mark.parametrize("require", ["kept", "not-broken"])
def test_what_is_broken_is_never_published(make: Callable[..., Forge], require: str) -> None:
    forge = make("broken")
    forge.campaign = replace(forge.campaign, publishing=Publishing(remote="repos/{name}.git", require=require))
    _, said = forge.publish()
    assert any("one: not published: a promise was broken" in line for line in said)
    assert list(forge.refs("one")) == ["refs/heads/main"]
    # Nor by asking for it, nor if its state were another.
    with sqlite3.connect(forge.campaign.work / FILE) as connection:
        connection.execute("UPDATE repositories SET state = 'verified'")
    forge.publish(only=["one"])
    assert list(forge.refs("one")) == ["refs/heads/main"]


def test_what_is_not_verified_only_if_the_campaign_says_so(make: Callable[..., Forge]) -> None:
    forge = make("not judged")
    forge.publish()
    assert list(forge.refs("one")) == ["refs/heads/main"]
    _, said = forge.publish(only=["one"])
    assert said[0] == "one: not published: it is not verified: told so"
    loose = replace(forge.campaign, publishing=Publishing(remote="repos/{name}.git", require="not-broken"))
    # What a branch holds depends on it, so it has to be made again.
    _, said = publish_said(loose)
    assert "retry --changed" in said
    run_inline(loose, verified("not judged"), again=lambda row: "changed")
    forge.campaign = loose
    assert forge.publish()[0] == 0
    assert "refs/heads/codemod" in forge.refs("one")


def publish_said(campaign: Campaign) -> tuple[int, str]:
    said: list[str] = []
    return publish(campaign, said.append, only=["one"], sleep=lambda _: None), " ".join(said)


def test_what_moved_upstream_is_not_published(make: Callable[..., Forge]) -> None:
    forge = make()
    source = forge.folder / "work" / "one"
    commit(source, {"train.py": TRAIN + "print(2)\n"})
    git(source, "push", "-q", str(forge.remote("one")), "main")
    failures, said = forge.publish()
    assert failures == 1
    assert any("one: not published: moved upstream" in line for line in said)
    assert "refs/heads/codemod" not in forge.refs("one")
    assert "refs/heads/codemod" in forge.refs("two")
    assert forge.row("one")["upstream"] != forge.row("one")["base"]


def test_a_branch_of_somebody_else_is_left_alone(make: Callable[..., Forge]) -> None:
    forge = make()
    source = forge.folder / "work" / "one"
    git(source, "checkout", "-q", "-b", "codemod")
    theirs = commit(source, {"own.py": CLEAN})
    git(source, "push", "-q", str(forge.remote("one")), "codemod")
    failures, said = forge.publish()
    assert failures == 1
    assert any("a branch codemod that this campaign has not made" in line for line in said)
    assert forge.refs("one")["refs/heads/codemod"] == theirs


def test_a_branch_that_is_there_already_is_not_pushed_again(make: Callable[..., Forge]) -> None:
    forge = make()
    clone = forge.campaign.work / "repositories" / "one" / "clone" / "tree"
    git(clone, "push", "-q", forge.remote("one").as_uri(), "codemod")
    # As after a kill between the push and the ledger.
    failures, said = forge.publish()
    assert failures == 0
    assert "one: codemod is pushed already" in said
    assert forge.row("one")["state"] == "published"


def test_a_branch_in_the_clone_that_is_not_ours_is_not_pushed(make: Callable[..., Forge]) -> None:
    forge = make()
    clone = forge.campaign.work / "repositories" / "one" / "clone" / "tree"
    git(clone, "branch", "-f", "codemod", "HEAD")
    failures, said = forge.publish()
    assert failures == 1
    assert any("is not the one that was made" in line for line in said)


def test_to_a_fork(make: Callable[..., Forge]) -> None:
    forge = make()
    for name in ("one", "two"):
        bare(forge.folder / "forks" / f"{name}.git", forge.folder / "work" / name)
    forge.campaign = replace(forge.campaign, publishing=Publishing(remote="forks/{name}.git"))
    assert forge.publish(most=1)[0] == 0
    assert "codemod" in git(forge.folder / "forks" / "one.git", "branch", "--list", "codemod")
    assert not git(forge.folder / "forks" / "two.git", "branch", "--list", "codemod")
    assert list(forge.refs("one")) == ["refs/heads/main"]
    forge.campaign = replace(forge.campaign, publishing=Publishing(remote="forks/{nme}.git"))
    failures, said = forge.publish()
    assert failures == 2
    assert all("names no address" in line for line in said)


def test_before_anything_was_run(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "one", {"a.py": CLEAN})
    with pytest.raises(CampaignError, match="nothing was done yet; codemod batch run"):
        publish(read(campaign_file(tmp_path)), print)


# Pull requests.

GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$LOG"
case "$*" in
  *" list "*) cat "$LOG.open" 2>/dev/null || echo '[]' ;;
  *fail*) echo 'GraphQL: no https://me:hunter2@host/x' >&2; exit 1 ;;
  *) echo 'Warning: 1 uncommitted change' >&2; echo 'https://github.com/o/n/pull/7' ;;
esac
"""


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gh, and the file where what it was asked stands."""
    (tmp_path / "bin").mkdir()
    for name in ("gh", "glab"):
        client = tmp_path / "bin" / name
        client.write_text(GH)
        client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "asked"))
    (tmp_path / "body.md").write_text("text")
    return tmp_path / "asked"


def request(tmp_path: Path, **choices: Any) -> forges.Request:
    fields: dict[str, Any] = {"repository": "o/n", "host": "github.com", "branch": "codemod", "base": "main"}
    fields |= {"title": "A title", "body": tmp_path / "body.md", "draft": True}
    return forges.Request(**{**fields, **choices})


def test_a_request_is_opened_by_gh(gh: Path, tmp_path: Path) -> None:
    assert forges.open_request("gh", request(tmp_path), tmp_path) == "https://github.com/o/n/pull/7"
    asked = gh.read_text().splitlines()[-1]
    assert asked == (
        f"pr create --repo o/n --head codemod --base main --title A title --body-file {tmp_path}/body.md --draft"
    )


def test_one_that_is_open_is_found(gh: Path, tmp_path: Path) -> None:
    Path(f"{gh}.open").write_text('[{"url": "https://github.com/o/n/pull/3", "headRepositoryOwner": {"login": "Me"}}]')
    assert forges.open_request("gh", request(tmp_path), tmp_path) == "https://github.com/o/n/pull/3"
    assert forges.open_request("gh", request(tmp_path, fork="me/n"), tmp_path) == "https://github.com/o/n/pull/3"
    assert "create" not in gh.read_text()
    assert forges.open_request("gh", request(tmp_path, fork="you/n"), tmp_path) == "https://github.com/o/n/pull/7"
    assert "--head you:codemod" in gh.read_text()


def test_a_request_is_opened_by_glab(gh: Path, tmp_path: Path) -> None:
    forges.open_request("glab", request(tmp_path, host="git.lab.org", fork="me/n"), tmp_path)
    listed, asked = gh.read_text().splitlines()
    assert listed == "mr list --repo https://git.lab.org/o/n --source-branch codemod --output json"
    assert asked == (
        "mr create --repo https://git.lab.org/o/n --source-branch codemod --head me/n --target-branch main "
        "--title A title --description text --yes --draft"
    )


def test_a_text_that_is_too_long_is_cut(gh: Path, tmp_path: Path) -> None:
    (tmp_path / "body.md").write_text("ä" * 70_000)
    forges.open_request("gh", request(tmp_path), tmp_path)
    assert "scratch-body.md" in gh.read_text()
    assert not (tmp_path / "scratch-body.md").exists()


def test_what_a_client_says_is_told_without_credentials(gh: Path, tmp_path: Path) -> None:
    with pytest.raises(Failed) as caught:
        forges.open_request("gh", request(tmp_path, title="fail"), tmp_path)
    assert "gh pr create: GraphQL: no https://***@host/x" in str(caught.value)


@pytest.mark.parametrize(
    ("choice", "host", "client"),
    [
        ("auto", "github.com", "gh"),
        ("auto", "gitlab.inria.fr", "glab"),
        ("auto", "git.example.org", ""),
        ("gh", "git.example.org", "gh"),
        ("none", "github.com", ""),
        ("auto", "", ""),
    ],
)
def test_which_client(gh: Path, choice: str, host: str, client: str) -> None:
    assert forges.client_for(choice, host) == client


def test_a_client_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nothing")
    assert forges.client_for("auto", "github.com") == ""
    with pytest.raises(Failed, match="gh is not installed"):
        forges.client_for("gh", "github.com")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("https://github.com/o/n.git", ("github.com", "o/n")),
        ("git@gitlab.com:g/s/n.git", ("gitlab.com", "g/s/n")),
        ("ssh://git@host:22/o/n", ("host", "o/n")),
        ("/some/folder", ("", "")),
    ],
)
def test_where_a_repository_is(text: str, place: tuple[str, str]) -> None:
    assert forges.place_of(parse(text, Path("/"))) == place


def test_what_lies_here_is_pushed_to_only_by_its_name(make: Callable[..., Forge]) -> None:
    forge = make()
    forge.campaign = replace(forge.campaign, publishing=Publishing())
    failures, said = forge.publish()
    assert failures == 2
    assert "one: not published: it lies on this machine" in said[0]
    assert list(forge.refs("one")) == ["refs/heads/main"]
    assert forge.publish(dry_run=True)[0] == 2


def test_nothing_that_a_remote_on_this_machine_brings_is_executed(make: Callable[..., Forge], tmp_path: Path) -> None:
    forge = make()
    ran = tmp_path / "ran"
    remote = forge.remote("one")
    hooks = remote / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction", "proc-receive"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (hooks / name).chmod(0o755)
    (remote / "objects" / "info").mkdir(exist_ok=True)
    (remote / "objects" / "info" / "alternates").write_text(str(forge.remote("two") / "objects") + "\n")
    for key, value in {
        "core.alternateRefsCommand": f"echo refs >> {ran}; :",
        "core.fsmonitor": f"echo monitor >> {ran}; :",
        "core.sshCommand": f"echo ssh >> {ran}; :",
        "core.gitProxy": f"echo proxy >> {ran}; :",
        "credential.helper": f"!echo helper >> {ran}; :",
        "gc.auto": "1",
    }.items():
        git(remote, "config", key, value)
    # There is something to be kept from.
    git(forge.folder / "work" / "one", "push", "-q", str(remote), "main:refs/heads/by-hand")
    assert {"pre-receive", "update", "refs"} <= set(ran.read_text().split())
    ran.unlink()
    assert forge.publish()[0] == 0
    assert forge.refs("one")["refs/heads/codemod"] == forge.row("one")["head"]
    assert not ran.exists()


def test_a_clone_that_somebody_has_configured_is_not_pushed_from(make: Callable[..., Forge]) -> None:
    forge = make()
    clone = forge.campaign.work / "repositories" / "one" / "clone" / "tree"
    git(clone, "config", "core.sshCommand", "touch ran")
    failures, said = forge.publish()
    assert failures == 1
    assert any("has core.sshcommand, which codemod has not written" in line for line in said)
    assert list(forge.refs("one")) == ["refs/heads/main"]


def test_a_title_says_what_no_run_has_kept(make: Callable[..., Forge]) -> None:
    def title(forge: Forge) -> str:
        with Ledger.open(forge.campaign.work) as ledger:
            return publishing._title(forge.campaign, forge.row("one"), ledger)

    rules = "Autograd graph fixes (attached-loss-total, surplus-retain-graph)"
    forge = make()
    assert title(forge) == rules
    with sqlite3.connect(forge.campaign.work / FILE) as connection:
        connection.execute("UPDATE repositories SET verification = 'not judged'")
    assert title(forge) == f"UNVERIFIED: {rules}"
    with sqlite3.connect(forge.campaign.work / FILE) as connection:
        connection.execute("UPDATE repositories SET verification = 'partly kept'")
        connection.execute("UPDATE findings SET proof = 'kept' WHERE rule = 'surplus-retain-graph'")
    assert title(forge) == f"UNVERIFIED (1 of 2 kept by a run): {rules}"
    forge.campaign = replace(forge.campaign, publishing=Publishing(title="Mine"))
    assert title(forge) == "UNVERIFIED (1 of 2 kept by a run): Mine"


def test_the_value_of_a_variable_that_looks_secret_is_not_published(
    make: Callable[..., Forge], monkeypatch: pytest.MonkeyPatch
) -> None:
    forge = make()
    body = Places(forge.campaign.work).of("one", "verify") / "pull-request.md"
    text = body.read_text()
    monkeypatch.setenv("SOME_TOKEN", "correct-horse-battery")
    body.write_text(f"{text}\nKeyError: correct-horse-battery\n")
    failures, said = forge.publish(only=["one"])
    assert failures == 1
    assert said == [
        "one: not published: the text of the request holds the value of the variable SOME_TOKEN, which looks secret"
    ]
    assert list(forge.refs("one")) == ["refs/heads/main"]
    body.write_text(text)
    monkeypatch.setenv("SOME_TOKEN", "Autograd graph fixes")
    assert "the title holds the value" in forge.publish(only=["one"])[1][0]
    monkeypatch.setenv("SOME_TOKEN", "person@example.org")
    assert "the branch holds the value" in forge.publish(only=["one"])[1][0]
    assert list(forge.refs("one")) == ["refs/heads/main"]
    monkeypatch.delenv("SOME_TOKEN")
    assert forge.publish()[0] == 0


def test_a_token_is_published_only_where_the_repository_has_it(make: Callable[..., Forge]) -> None:
    forge = make()
    token = "ghp_" + "a1B2" * 9
    body = Places(forge.campaign.work).of("one", "verify") / "pull-request.md"
    body.write_text(f"{body.read_text()}\n{token}\n")
    failures, said = forge.publish(only=["one"])
    assert failures == 1
    assert "holds what looks like a token, ghp_…, which the repository has not" in said[0]
    assert token not in said[0]
    known = repository(forge.folder / "known", {"train.py": TRAIN + f'key = "{token}"\n'})
    target = publishing.target_of(forge.campaign, forge.row("two"), forge.campaign.repositories[0], _ledger(forge))
    base = git(known, "rev-parse", "HEAD")
    require_nothing_secret({"it": token}, target.repository.runs, (), (Git(), known, base))


def test_credentials_of_an_address_are_not_published(make: Callable[..., Forge]) -> None:
    forge = make()
    runs = forge.campaign.runs
    private = parse("https://me:hunter2%21two@host/o/n?private_token=abcdef123", forge.folder)
    for text in ("at hunter2%21two", "at hunter2!two", "?private_token=abcdef123", "abcdef123"):
        with pytest.raises(Refused, match="it holds the credentials of an address") as caught:
            require_nothing_secret({"it": text}, runs, [private])
        assert text not in str(caught.value)
    for text in ("https://host/o/n by me", "hunter", "private_token", ""):
        require_nothing_secret({"it": text}, runs, [private])
    require_nothing_secret({"it": "git"}, runs, [parse("ssh://git@host/o/n", forge.folder)])


def test_what_a_repository_wants_to_be_binary_is_searched(
    make: Callable[..., Forge], monkeypatch: pytest.MonkeyPatch
) -> None:
    forge = make()
    clone = Places(forge.campaign.work).clone("one")
    (clone / ".git" / "info" / "attributes").write_text("* -diff binary\n")
    (Places(forge.campaign.work).of("one", "verify") / "pull-request.md").write_text("Without a diff.\n")
    monkeypatch.setenv("SOME_TOKEN", "loss.backward(retain_graph=True)")
    assert "the branch holds the value" in forge.publish(only=["one"])[1][0]
    assert list(forge.refs("one")) == ["refs/heads/main"]


def _ledger(forge: Forge) -> Ledger:
    ledger = Ledger.read(forge.campaign.work)
    assert ledger is not None
    return ledger


def test_interrupted_it_says_that_it_goes_on(make: Callable[..., Forge], monkeypatch: pytest.MonkeyPatch) -> None:
    forge = make()

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    # Between two repositories.
    monkeypatch.setattr("codemods.batch.requests.publishing.publish", functools.partial(publish, sleep=interrupted))
    done = CliRunner().invoke(app, ["publish", str(forge.campaign.file)], standalone_mode=False)
    assert done.return_value == 130
    assert done.stdout.count("codemod is pushed") == 1
    assert done.stderr == "interrupted: finished work is in the ledger; run the same command to continue\n"
    assert [forge.row(name)["state"] for name in ("one", "two")] == ["published", "verified"]
    assert forge.publish()[0] == 0
    assert forge.row("two")["state"] == "published"
