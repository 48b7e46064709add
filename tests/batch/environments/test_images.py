"""Images of containers as environments, by a stand-in for the program that runs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Runs, Steps, read
from codemods.batch.environments import interpreters
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.planning import plan, plan_text
from codemods.batch.stages.steps import run_steps
from codemods.batch.stages.verifying import settings_of
from tests.batch.inline import run_inline
from tests.batch.tools import TRAIN, campaign_file, repository
from tests.verify.containers import StandIn, options

IMAGE = "acme/torch:2"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A docker, first on PATH, that has the image."""
    made = StandIn(tmp_path / "bin").install([IMAGE])
    monkeypatch.setenv("PATH", f"{made.folder}{os.pathsep}{os.environ['PATH']}")
    return made


def campaign(folder: Path, verify: str = "", more: str = "") -> Path:
    """The file of a campaign over one repository whose runs are made in containers."""
    repository(folder / "repos" / "one", {"train.py": "import no_such_module_a\n" + TRAIN})
    file = campaign_file(folder, more, verify=True)
    settings = verify or f'image = "{IMAGE}"\npython = "{sys.executable}"\n'
    file.write_text(file.read_text().replace("[verify]\n", f"[verify]\n{settings}"))
    return file


class TestTheFile:
    """What a campaign file says of images."""

    def test_a_group_has_its_own(self, tmp_path: Path) -> None:
        group = f'[[group]]\nmatch = ["*one"]\nverify.image = "{IMAGE}"\n'
        read_one = read(campaign(tmp_path, 'requirements = "own"\n', group)).repositories[0].runs
        assert (read_one.image, read_one.own_requirements) == (IMAGE, False)
        assert interpreters.of(read_one) == "python3"
        assert settings_of(read_one).image == IMAGE

    def test_a_repository_may_go_back_to_requirements(self, tmp_path: Path) -> None:
        single = '[[repository]]\nsource = "repos/one"\nverify.requirements = "own"\n'
        runs = read(campaign(tmp_path, more=single)).repositories[0].runs
        assert (runs.image, runs.own_requirements) == ("", True)

    @pytest.mark.parametrize("other", ['requirements = "own"', 'python = "3.10"'])
    def test_it_is_one_or_the_other(self, tmp_path: Path, other: str) -> None:
        with pytest.raises(CampaignError, match=r"\[verify\]: image goes with neither requirements nor a version"):
            read(campaign(tmp_path, f'image = "{IMAGE}"\n{other}\n'))

    @pytest.mark.parametrize("image", ["--privileged", "a b", "x;y"])
    def test_it_is_a_name(self, tmp_path: Path, image: str) -> None:
        with pytest.raises(CampaignError, match="must be the name of a container's image"):
            read(campaign(tmp_path, f'image = "{image}"\n'))

    def test_another_one_makes_what_was_done_stale(self, tmp_path: Path) -> None:
        settings = ["\n", 'python = "python3"\n', f'image = "{IMAGE}"\n', f'image = "{IMAGE}.1"\n']
        files = [campaign(tmp_path / str(number), text) for number, text in enumerate(settings)]
        prints = [one.fingerprint(one.repositories[0]) for one in map(read, files)]
        assert len(set(prints)) == 4


class TestThePlan:
    """What is known before anything is run."""

    def test_no_container_program_is_told_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = read(campaign(tmp_path))
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
        with pytest.raises(CampaignError, match=r"image in \[verify\]: no container can be had: neither docker nor"):
            plan(made)

    def test_what_the_image_lacks(self, tmp_path: Path, docker: StandIn) -> None:
        made = read(campaign(tmp_path))
        plans = plan(made)
        assert plans[0]["missing"] == ["module no_such_module_a"]
        assert f"runs in containers of {IMAGE}, by docker\n" in plan_text(made, plans)
        assert docker.calls("run")

    def test_an_image_that_is_not_here_yet(self, tmp_path: Path, docker: StandIn) -> None:
        docker.install()
        made = read(campaign(tmp_path))
        plans = plan(made)
        assert plans[0]["prospect"] == "can be run"
        assert f"{IMAGE}, by docker, which is not here yet: run fetches it" in plan_text(made, plans)
        assert not docker.calls("pull")


def test_it_is_fetched_and_named_by_its_digest(tmp_path: Path, docker: StandIn) -> None:
    docker.install()
    said: list[str] = []
    found = interpreters.ready(Runs(image=IMAGE), tmp_path, tmp_path / "environments", said.append)
    assert found == ("python3", (f"environment: the image {IMAGE}, sha256:0012",))
    assert said == ["fetching its image"]
    assert docker.calls("pull") == [["pull", "--quiet", IMAGE]]
    with pytest.raises(Failed, match="docker cannot fetch the image nowhere"):
        interpreters.ready(Runs(image="nowhere"), tmp_path, tmp_path / "environments", lambda _: None)


def test_own_steps_run_in_it(tmp_path: Path, docker: StandIn) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.txt").write_text("old")
    runs = Runs(image=IMAGE, python=sys.executable, env=("MODE=fast",))
    steps = Steps(before=('test "$OF_THE_IMAGE $MODE" = "yes fast"',), after=("grep new a.txt",))
    assert [one.why for one in run_steps(steps, runs, root, {"a.txt": b"new"})] == ["", ""]


@pytest.mark.slow
def test_in_a_campaign(tmp_path: Path, docker: StandIn) -> None:
    made = read(campaign(tmp_path, more='[publish]\nrequire = "not-broken"\n'))
    summary, _, _ = run_inline(made)
    ledger = Ledger.read(made.work)
    assert ledger is not None
    with ledger:
        (row,) = ledger.repositories()
        notes = [one["text"] for one in ledger.each("SELECT text FROM problems WHERE kind = 'note'")]
    assert summary.settled == {"verified": 1}, row["why"]
    assert f"environment: the image {IMAGE}, sha256:0012" in notes
    results = made.work / "repositories" / "one" / "verify"
    request = (results / "pull-request.md").read_text()
    assert f"--image {IMAGE}" in request
    assert sys.executable not in request
    networks = {tuple(options(call)["--network"]) for call in docker.calls("run")}
    assert networks == {("none",)}
