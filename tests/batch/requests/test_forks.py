"""Forks, made where pushing is not allowed and nowhere else; at a forge that answers as GitHub's and GitLab's do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import read
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.requests import forks
from codemods.batch.sources import of_path, parse
from tests.batch.tools import git
from tests.batch.worlds import Rewound, World, rewound

ME = "campaigner"


@pytest.fixture(scope="module", params=["gh", "glab"])
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rewound]:
    """Two repositories, of which ``o/one`` may not be pushed to; nothing is published."""

    def forbid(world: World) -> None:
        state = world.forge.read()
        state["repos"]["127.0.0.1/o/one"]["push"] = False
        world.forge.write(state)
        git(world.forge.root / "o" / "one.git", "config", "http.receivepack", "false")

    with rewound(tmp_path_factory.mktemp(request.param), request.param, "fork = true\n", before=forbid) as made:
        yield made


@pytest.fixture
def world(begun: Rewound, monkeypatch: pytest.MonkeyPatch) -> World:
    return begun(monkeypatch)


def heads(world: World, name: str) -> list[str]:
    place = world.forge.root / f"{name}.git"
    return git(place, "for-each-ref", "--format=%(refname:short)", "refs/heads").split() if place.exists() else []


def test_where_pushing_is_not_allowed_a_fork_is_made(world: World) -> None:
    assert world.publish() == 0, world.said
    assert (heads(world, f"{ME}/one"), heads(world, "o/one")) == (["codemod", "main"], ["main"])
    # Where it is allowed none is made.
    assert (heads(world, f"{ME}/two"), heads(world, "o/two")) == ([], ["codemod", "main"])
    assert (world.row("one")["fork"], world.row("two")["fork"]) == (f"{ME}/one", "")
    assert world.request("one")["fork"] == f"{ME}/one"
    assert "fork" not in world.request("two")
    assert world.row("one")["pull_request"].startswith("https://127.0.0.1/o/one/")
    world.forge.forget()
    assert world.publish() == 0
    assert world.forge.asked("api") == []


def test_one_that_is_there_is_taken(world: World) -> None:
    state = world.forge.read()
    known = state["repos"]["127.0.0.1/o/one"]["git"]
    place = world.forge.root / ME / "one.git"
    git(world.folder, "clone", "-q", "--bare", known, str(place))
    git(place, "config", "http.receivepack", "true")
    state["repos"][f"127.0.0.1/{ME}/one"] = {"requests": [], "git": str(place), "fork": True}
    world.forge.write(state)
    assert world.publish(only=["o+one"]) == 0, world.said
    assert heads(world, f"{ME}/one") == ["codemod", "main"]


@pytest.mark.slow
def test_its_request_is_followed_and_redone(world: World) -> None:
    assert world.publish() == 0
    assert world.follow() == "pull requests: 2 open"
    old = heads(world, f"{ME}/one")
    pushed = world.row("one")["pushed"]
    world.moves("one", (world.work["one"] / "train.py").read_text() + "print('more')\n")
    failures, reasons = world.update(only=["o+one"])
    assert (failures, list(reasons)) == (0, ["o+one"]), world.said
    assert world.row("one")["pushed"] != pushed
    assert heads(world, f"{ME}/one") == old
    assert heads(world, "o/one") == ["main"]
    assert world.close(only=["o+one"], delete_branches=True) == 0
    assert heads(world, f"{ME}/one") == ["main"]


def test_without_being_asked_nothing_is_forked(world: World) -> None:
    world.file.write_text(world.file.read_text().replace("fork = true", "fork = false"))
    world.campaign = read(world.file)
    assert world.publish(only=["o+one"]) == 1
    assert "o+one: not published" in world.said[0]
    assert not (world.forge.root / ME).exists()
    assert world.forge.asked("api") == []


def test_nothing_is_forked_for_what_is_not_published(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "surplus-retain-graph")
    assert world.publish(only=["o+one"]) == 1
    assert not (world.forge.root / ME).exists()
    monkeypatch.delenv("SOME_TOKEN")
    world.publish(only=["o+one"], dry_run=True)
    assert "  (by a fork of yours, if you may not push there)" in world.said
    assert not (world.forge.root / ME).exists()


def test_a_refusal_is_told(world: World) -> None:
    state = world.forge.read()
    state["repos"]["127.0.0.1/o/one"]["refuse"] = "HTTP 403: forking is disabled"
    world.forge.write(state)
    assert world.publish(only=["o+one"]) == 1
    assert "HTTP 403: forking is disabled" in world.said[0]
    assert world.row("one")["pushed"] == ""


@pytest.mark.parametrize(
    ("address", "there"),
    [
        ("https://github.com/o/n.git", "https://github.com/me/n-1.git"),
        ("git@github.com:o/n", "git@github.com:me/n-1"),
        ("ssh://git@host:22/o/n", "ssh://git@host:22/me/n-1"),
        ("https://gitlab.com/g/s/n/", "https://gitlab.com/me/n-1/"),
        ("https://o/o/o", "https://o/me/n-1"),
    ],
)
def test_it_is_beside_the_source(address: str, there: str, tmp_path: Path) -> None:
    assert forks.at(parse(address, tmp_path), "me/n-1").url == there


def test_credentials_stay_with_the_host(tmp_path: Path) -> None:
    made = forks.at(parse("https://me:pw@host/o/n", tmp_path), "me/n")
    assert (made.url, made.user, made.password) == ("https://host/me/n", "me", "pw")


def test_one_that_never_comes_is_not_waited_for_forever(tmp_path: Path) -> None:
    slept: list[float] = []
    with pytest.raises(Failed, match="cannot be pushed to"):
        forks.wait_for(of_path(tmp_path / "none"), slept.append)
    assert sum(slept) == 120


def test_a_remote_or_a_fork(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[publish]\nremote = "x/{name}"\nfork = true\n')
    with pytest.raises(CampaignError, match="remote and fork"):
        read(file)
