"""A campaign from its file to its branches, and on from wherever it was stopped."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codemods.batch import pending
from codemods.batch.campaign.settings import Campaign, read
from codemods.batch.errors import CampaignError, Exhausted
from codemods.batch.executors import Doing
from codemods.batch.fleet import write_reports
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.ledger.lock import owned
from codemods.batch.overview import status, status_text
from codemods.batch.pending import OTHER_TOOL, by_other_tool
from codemods.batch.places import Places
from codemods.batch.planning import plan, plan_text
from codemods.batch.running import run
from codemods.batch.stages import rewriting
from codemods.batch.stages.job import Job, Outcome
from codemods.batch.stages.jobs import perform, write_facts
from codemods.batch.stages.rewriting import unproven_of
from codemods.rewriting.changes import Proof
from tests.batch.inline import Inline, Quiet, run_inline, verified
from tests.batch.tools import CLEAN, TRAIN, campaign_file, commit, git, repository, tree_of


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Three repositories: one to be rewritten, one that is fine, and a folder that is none."""
    repository(tmp_path / "repos" / "wrong", {"train.py": TRAIN, "broken.py": "def f(:\n", "README.md": "x"})
    repository(tmp_path / "repos" / "fine", {"lib.py": CLEAN})
    file = campaign_file(tmp_path, '[[repository]]\nsource = "nothing"\n')
    return read(file)


def rows(campaign: Campaign) -> dict[str, Row]:
    ledger = Ledger.read(campaign.work)
    assert ledger is not None
    with ledger:
        return {row["slug"]: row for row in ledger.repositories()}


def states(campaign: Campaign) -> dict[str, str]:
    return {slug: row["state"] for slug, row in rows(campaign).items()}


def failed(job: Job, status: str = "died", reason: str = "its worker was ended by SIGKILL") -> Outcome:
    return Outcome(job, status, reason, {}, job.folder)


def test_from_the_file_to_the_branch(campaign: Campaign) -> None:
    summary, _, _ = run_inline(campaign)
    assert summary.settled == {"rewritten": 1, "unchanged": 1, "failed": 1}
    assert states(campaign) == {"fine": "unchanged", "wrong": "rewritten", "nothing": "failed"}
    row = rows(campaign)["wrong"]
    clone = Places(campaign.work).clone("wrong")
    assert git(clone, "rev-parse", "codemod") == row["head"]
    assert git(clone, "rev-parse", "codemod~2") == row["base"] == git(clone, "rev-parse", "HEAD")
    assert "retain_graph" not in git(clone, "show", "codemod:train.py")
    assert (row["changed"], row["commits"], row["files"]) == (1, 2, 2)
    place = Places(campaign.work).of("wrong", "rewrite")
    git(campaign.file.parent / "repos" / "wrong", "apply", "--check", str(place / "changes.patch"))
    assert json.loads((place / "report.json").read_text())["summary"]["fixed"] == 2
    assert "Not verified" in (place / "pull-request.md").read_text()
    nothing = rows(campaign)["nothing"]
    assert (nothing["stage"], nothing["reason"]) == ("clone", f"{campaign.file.parent / 'nothing'}: no such folder")
    assert "no such folder" in (campaign.work / nothing["log"]).read_text()
    # Of what needs nothing, nothing is kept but what was found.
    assert not Places(campaign.work).clone("fine").exists()
    with Ledger.open(campaign.work) as ledger:
        assert {r["rule"] for r in ledger.query("SELECT rule FROM findings")} == {
            "surplus-retain-graph",
            "attached-loss-total",
        }
        assert [r["path"] for r in ledger.query("SELECT path FROM problems WHERE kind='unread'")] == ["broken.py"]


def test_a_second_run_does_nothing(campaign: Campaign) -> None:
    run_inline(campaign)
    before = rows(campaign)
    summary, executor, _ = run_inline(campaign)
    assert (summary.settled, executor.done) == ({}, [])
    # It did not fail again, and failed all the same.
    assert summary.standing == {"failed": 1}
    assert rows(campaign) == before


def test_retry_does_again_what_failed_and_only_that(campaign: Campaign) -> None:
    run_inline(campaign)
    repository(campaign.file.parent / "nothing", {"train.py": TRAIN})
    _, executor, _ = run_inline(campaign, again=lambda row: "tried again" if row["state"] == "failed" else "")
    assert executor.done == [("nothing", "clone"), ("nothing", "rewrite")]
    assert states(campaign)["nothing"] == "rewritten"


def test_only_some(campaign: Campaign) -> None:
    _, executor, _ = run_inline(campaign, only=["fine"])
    assert {slug for slug, _ in executor.done} == {"fine"}
    with pytest.raises(CampaignError, match="no repository 'fime' in this campaign; did you mean fine"):
        run_inline(campaign, only=["fime"])


def test_only_clones(campaign: Campaign) -> None:
    summary, _, _ = run_inline(campaign, stages=("clone",))
    assert summary.settled == {"cloned": 2, "failed": 1}
    run_inline(campaign)
    assert states(campaign)["wrong"] == "rewritten"


def test_what_was_interrupted_comes_last(campaign: Campaign) -> None:
    """A repository over which the whole campaign is ended each time holds up no other."""

    def ended(job: Job) -> Outcome | None:
        if job.slug == "fine" and job.stage == "rewrite":
            raise KeyboardInterrupt
        return None

    runs = 0
    while runs < 6:
        runs += 1
        with pytest.raises(KeyboardInterrupt):
            run_inline(campaign, ended)
        with Ledger.open(campaign.work) as ledger:
            rows = {row["slug"]: row for row in ledger.repositories()}
        if all(row["state"] not in ("planned", "cloned") for slug, row in rows.items() if slug != "fine"):
            break
    assert runs <= 3
    assert rows["fine"]["state"] == "cloned"
    executor = run_inline(campaign)[1]
    assert executor.done == [("fine", "rewrite")]
    with Ledger.open(campaign.work) as ledger:
        assert {row["interruptions"] for row in ledger.repositories()} == {0}


def test_what_waits_for_a_worker_is_not_under_way(campaign: Campaign) -> None:
    told: list[str] = []

    class OneAtATime(Inline):
        jobs: list[Job]

        def __init__(self) -> None:
            super().__init__()
            self.jobs = []

        def submit(self, job: Job) -> None:
            self.jobs.append(job)

        def doing(self) -> list[Doing]:
            return [Doing("1", one.repository, one.slug, one.stage) for one in self.jobs[:1]]

        def wait(self, timeout: float) -> list[Outcome]:
            told.append(status_text(status(campaign)).partition("; under way: ")[2].splitlines()[0])
            return [perform(self.jobs.pop(0))]

    executor = OneAtATime()
    run(campaign, lambda places, todo: (executor, executor), Quiet())
    assert told[0] == "fine; 1 waiting for a worker"
    assert told[-1] == "nothing"
    assert not any("," in text for text in told)


def test_a_worker_that_dies_once_is_forgiven(campaign: Campaign) -> None:
    deaths = []

    def fate(job: Job) -> Outcome | None:
        if job.slug == "wrong" and job.stage == "rewrite" and not deaths:
            deaths.append(job)
            return failed(job)
        return None

    _, executor, observer = run_inline(campaign, fate)
    assert executor.done.count(("wrong", "rewrite")) == 2
    assert states(campaign)["wrong"] == "rewritten"
    assert "tried once more" in observer.said[0]


def test_a_worker_that_dies_twice_is_the_repositorys_fault(campaign: Campaign) -> None:
    run_inline(campaign, lambda job: failed(job) if job.slug == "wrong" and job.stage == "rewrite" else None)
    row = rows(campaign)["wrong"]
    assert (row["state"], row["stage"]) == ("failed", "rewrite")
    assert row["reason"] == "its worker was ended by SIGKILL, and so was another that tried"


def test_a_full_disk_stops_the_campaign_and_is_nobodys_fault(campaign: Campaign) -> None:
    def fate(job: Job) -> Outcome | None:
        return failed(job, "exhausted", "no space left on the device") if job.stage == "rewrite" else None

    with pytest.raises(Exhausted, match="no space left"):
        run_inline(campaign, fate)
    assert "failed" not in {states(campaign)["wrong"], states(campaign)["fine"]}
    run_inline(campaign)
    assert states(campaign)["wrong"] == "rewritten"


@pytest.mark.parametrize("stage", ["clone", "rewrite"])
def test_stopped_between_a_result_and_the_ledger_it_goes_on_from_the_result(
    campaign: Campaign, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = Ledger.change

    def stop(self: Ledger, number: int, state: str, **rest: Any) -> None:
        if rest.get("stage") == stage and self.repository(number)["slug"] == "wrong":
            raise KeyboardInterrupt
        change(self, number, state, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "change", stop)
        with pytest.raises(KeyboardInterrupt):
            run_inline(campaign)
    assert Places(campaign.work).of("wrong", stage).is_dir()
    _, executor, _ = run_inline(campaign)
    assert ("wrong", stage) not in executor.done
    assert states(campaign)["wrong"] == "rewritten"


def test_a_result_of_another_attempt_is_not_taken(campaign: Campaign) -> None:
    run_inline(campaign, stages=("clone",))
    with Ledger.open(campaign.work) as ledger:
        number = next(row["id"] for row in ledger.repositories() if row["slug"] == "wrong")
        ledger.begin(number, "an attempt that came to nothing")
    place = Places(campaign.work).of("wrong", "rewrite")
    place.mkdir()
    write_facts(place, {"attempt": "an earlier one", "head": "0" * 40, "changed": 9})
    _, executor, _ = run_inline(campaign)
    assert ("wrong", "rewrite") in executor.done
    assert rows(campaign)["wrong"]["changed"] == 1


def test_what_a_killed_run_left_is_swept(campaign: Campaign) -> None:
    left = campaign.work / "scratch" / "abc" / "tree"
    left.mkdir(parents=True)
    run_inline(campaign)
    assert not left.exists()


def test_twice_at_the_same_time(campaign: Campaign) -> None:
    with owned(campaign.work), pytest.raises(CampaignError, match="at work already: process"):
        run_inline(campaign)


def test_the_status_says_who_is_at_work(campaign: Campaign) -> None:
    assert "at work" not in status_text(status(campaign))
    with owned(campaign.work):
        assert f"at work: process {os.getpid()} on " in status_text(status(campaign))
    assert "at work" not in status_text(status(campaign))


def test_a_campaign_of_nothing_is_told_by_plan_and_run_alike(campaign: Campaign) -> None:
    nothing = replace(campaign, repositories=())
    for work in (plan, run_inline):
        with pytest.raises(CampaignError, match="names no repositories: fill in urls, paths, globs or list"):
            work(nothing)
    assert status_text(status(nothing)) == f"{campaign.name}: names no repositories\n"


def test_a_repository_that_moved_is_done_again(campaign: Campaign) -> None:
    run_inline(campaign)
    source = campaign.file.parent / "repos" / "wrong"
    head = commit(source, {"train.py": TRAIN + "print('more')\n"})
    # Within a day nobody asks.
    assert run_inline(campaign)[1].done == []
    told = status(campaign, upstream=True)
    assert [one["slug"] for one in told["repositories"] if one["moved"]] == ["wrong"]
    assert "wrong: moved upstream, " in status_text(told)
    eager = replace(campaign, limits=replace(campaign.limits, look_again=0.0))
    summary, executor, _ = run_inline(eager)
    assert (summary.moved, executor.done) == (1, [("wrong", "clone"), ("wrong", "rewrite")])
    assert rows(campaign)["wrong"]["base"] == head
    assert run_inline(eager)[0].moved == 0


def test_what_the_campaign_no_longer_lists_is_left_alone(campaign: Campaign) -> None:
    run_inline(campaign)
    fewer = replace(campaign, repositories=campaign.repositories[:1])
    run_inline(fewer)
    assert len(rows(fewer)) == 1
    assert Places(campaign.work).of("wrong", "rewrite").is_dir()
    assert len(rows(campaign)) == 1
    assert run_inline(campaign)[1].done == []
    assert len(rows(campaign)) == 3


def test_a_repository_that_is_skipped(campaign: Campaign) -> None:
    first = replace(campaign.repositories[1], skip="asked to")
    made = replace(campaign, repositories=(campaign.repositories[0], first))
    _, executor, _ = run_inline(made)
    assert {slug for slug, _ in executor.done} == {campaign.repositories[0].source.name}
    assert "left out: asked to" in plan_text(made, plan(made))


def test_other_settings_are_noticed(campaign: Campaign) -> None:
    run_inline(campaign)
    other = replace(campaign, options=replace(campaign.options, ignore=("attached-loss-total",)))
    told = status(other)
    assert {one["slug"] for one in told["repositories"] if one["other_settings"]} == {"fine", "wrong"}
    assert "codemod batch retry --changed" in status_text(told)
    assert not any(one["other_settings"] for one in status(campaign)["repositories"])


def test_what_a_repository_wants_left_alone_is(tmp_path: Path) -> None:
    config = '[tool.codemod]\nignore = ["surplus-retain-graph"]\nexclude = ["old/"]\n'
    repository(tmp_path / "repos" / "r", {"train.py": TRAIN, "old/train.py": TRAIN, "pyproject.toml": config})
    campaign = read(campaign_file(tmp_path))
    run_inline(campaign)
    with Ledger.open(campaign.work) as ledger:
        found = ledger.query("SELECT rule, path FROM findings")
    assert [(row["rule"], row["path"]) for row in found] == [("attached-loss-total", "train.py")]


def test_a_plan_writes_nothing(campaign: Campaign) -> None:
    plans = {one["slug"]: one for one in plan(campaign)}
    assert not campaign.work.exists()
    assert {slug: one["next"] for slug, one in plans.items()} == {"wrong": "clone", "fine": "clone", "nothing": "clone"}
    ready = replace(
        campaign,
        repositories=tuple(replace(one, runs=replace(one.runs, run=True)) for one in campaign.repositories),
    )
    plans = {one["slug"]: one for one in plan(ready)}
    assert plans["wrong"]["entries"] == [{"command": "train.py", "folder": ".", "why": "called train, trains"}]
    assert plans["fine"]["verify"] == "no script that trains was found"
    assert "no such folder" in plans["nothing"]["trouble"]
    assert not campaign.work.exists()
    run_inline(campaign)
    assert {one["next"] for one in plan(campaign)} == {""}


@pytest.mark.parametrize(
    ("verdict", "state"),
    [("kept", "verified"), ("partly kept", "rewritten"), ("broken", "refused"), ("not judged", "rewritten")],
)
def test_what_becomes_of_a_verdict(tmp_path: Path, verdict: str, state: str) -> None:
    repository(tmp_path / "repos" / "r", {"train.py": TRAIN})
    campaign = read(campaign_file(tmp_path, verify=True))
    _, executor, _ = run_inline(campaign, verified(verdict))
    assert executor.done == [("r", "clone"), ("r", "rewrite"), ("r", "verify")]
    row = rows(campaign)["r"]
    assert (row["state"], row["verification"]) == (state, verdict)
    assert row["head"] == git(Places(campaign.work).clone("r"), "rev-parse", "codemod")
    assert run_inline(campaign)[1].done == []
    if verdict == "broken":
        assert row["reason"] == "a promise was broken: told so"


def test_the_same_campaign_elsewhere_makes_the_same_trees(campaign: Campaign) -> None:
    run_inline(campaign)
    other = replace(campaign, work=campaign.work.with_name("other"))
    run_inline(other)
    trees = [tree_of(Places(one.work).clone("wrong"), "codemod") for one in (campaign, other)]
    assert trees[0] == trees[1]


@pytest.mark.parametrize(
    ("said", "status"),
    [("sha1 file write error. Out of diskspace", "exhausted"), ("[Errno 28] No space left on device", "exhausted"),
     ("remote: No space left on device", "failed"), ("fatal: repository not found", "failed")],
)  # fmt: skip
def test_whose_fault_a_failure_is(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, status: str
) -> None:
    fake = tmp_path / "git"
    fake.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 128\n")
    fake.chmod(0o755)
    monkeypatch.setattr("codemods.batch.git.executable", lambda: str(fake))
    job = Job("a", 1, "a", "clone", str(tmp_path / "attempt"), source=campaign.repositories[0].source)
    assert perform(job).status == status


def test_an_error_of_ours_fails_one_repository_and_stands_in_its_log(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("codemods.batch.stages.rewriting.apply", broken)
        run_inline(campaign)
    row = rows(campaign)["wrong"]
    assert (row["state"], row["reason"]) == ("failed", "ValueError: a bug")
    assert "Traceback" in (campaign.work / row["log"]).read_text()


def test_configured_commands_are_kept_where_their_script_exists(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "a", {"train.py": TRAIN, "Early Stop.ipynb": "{}"})
    commands = [
        "train.py --epochs 1",
        "Early Stop.ipynb",
        "other.py",
        "other.ipynb --x",
        "-m pytest -q",
        "an 'open quote",
    ]
    text = f'[[repository]]\nsource = "repos/a"\nverify.commands = {json.dumps(commands)}\n'
    campaign = read(campaign_file(tmp_path, text, verify=True))
    run_inline(campaign, lambda job: failed(job) if job.stage == "verify" else None)
    kept = [command for command, folder, why in json.loads(rows(campaign)["a"]["entries"])]
    assert kept == ["train.py --epochs 1", "'Early Stop.ipynb'", "-m pytest -q", "an 'open quote"]


def test_what_is_left_for_want_of_a_proof_says_so() -> None:
    kept, idle, tied = ("a", "t.py", 3), ("b", "t.py", 4), ("c", "u.py", 5)
    proofs = {frozenset({kept}): Proof("kept", ""), frozenset({idle, tied}): Proof("not reached", "never ran")}
    assert unproven_of(proofs) == {idle: "verify: not reached", tied: "verify: not reached"}
    assert unproven_of({}) == {}


def test_names_that_are_no_utf_8_are_carried_everywhere(tmp_path: Path) -> None:
    name, wrong = os.fsdecode(b"tr\xe4in.py"), os.fsdecode(b"bad\xff.py")
    source = tmp_path / "repos" / "r"
    repository(source, {name: TRAIN, wrong: "def f(:\n"})
    campaign = read(campaign_file(tmp_path, artifacts='"patch", "json", "sarif", "markdown", "html"', verify=True))
    summary, executor, _ = run_inline(campaign, verified("kept"))
    assert (summary.settled, executor.done[-1]) == ({"verified": 1}, ("r", "verify"))
    clone = Places(campaign.work).clone("r")
    assert "retain_graph" not in git(clone, "show", f"codemod:{name}")
    with Ledger.open(campaign.work) as ledger:
        assert {row["path"] for row in ledger.query("SELECT path FROM findings")} == {r"tr\xe4in.py"}
        assert [row["path"] for row in ledger.query("SELECT path FROM problems")] == [r"bad\xff.py"]
    for form in ("html", "markdown", "csv"):
        assert write_reports(campaign, tmp_path / form, [form])
    assert r"tr\xe4in.py" in (tmp_path / "csv" / "findings.csv").read_text(encoding="utf-8")
    json.dumps(status(campaign)).encode("utf-8")
    assert run_inline(campaign)[1].done == []


def test_a_death_over_one_stage_is_not_held_against_the_next(campaign: Campaign) -> None:
    seen = set()

    def fate(job: Job) -> Outcome | None:
        if job.slug == "wrong" and job.stage not in seen:
            seen.add(job.stage)
            return failed(job)
        return None

    run_inline(campaign, fate)
    assert seen == {"clone", "rewrite"}
    assert states(campaign)["wrong"] == "rewritten"


def test_results_that_are_gone_are_made_again(campaign: Campaign) -> None:
    run_inline(campaign)
    before = rows(campaign)
    shutil.rmtree(campaign.work / "repositories")
    summary, executor, observer = run_inline(campaign)
    assert summary.settled == {"rewritten": 1, "unchanged": 1}
    assert sorted(executor.done) == [(slug, stage) for slug in ("fine", "wrong") for stage in ("clone", "rewrite")]
    assert sum("its results are not in the work folder" in text for text in observer.said) == 2
    assert rows(campaign)["wrong"]["head"] == before["wrong"]["head"]


def test_a_source_that_vanishes_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        repository(tmp_path / "repos" / name, {"lib.py": CLEAN})
    file = campaign_file(tmp_path)
    run_inline(read(file))
    assert "does not name" not in status_text(status(read(file)))
    shutil.rmtree(tmp_path / "repos" / "b")
    _, _, observer = run_inline(read(file))
    assert observer.said == ["b: the campaign does not name it any more; what was done with it stays"]
    assert "1 that the campaign does not name any more: b\n" in status_text(status(read(file)))
    assert run_inline(read(file))[2].said == []


def test_a_glob_that_no_repository_fits_is_told(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "a", {"lib.py": CLEAN})
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    file = campaign_file(tmp_path)
    text = file.read_text()
    file.write_text(text.replace('globs = ["repos/*"]', 'globs = ["repos/*", "repso/*", "docs/*"]'))
    told = ["no repository fits globs: repso/*", "no repository fits globs: docs/*"]
    assert run_inline(read(file))[2].said == told
    text_of_plan = plan_text(read(file), plan(read(file)))
    assert text_of_plan.split("\n\n")[1].splitlines() == told
    file.write_text(text.replace('globs = ["repos/*"]', 'globs = ["repso/*"]'))
    with pytest.raises(CampaignError, match=r"names no repositories: none fits globs: repso/\*$"):
        run_inline(read(file))


def test_a_path_that_is_not_there_is_told_by_the_plan(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "a", {"lib.py": CLEAN})
    file = campaign_file(tmp_path)
    file.write_text(file.read_text().replace("[verify]", 'paths = ["nowhere"]\n[verify]'))
    text = plan_text(read(file), plan(read(file)))
    assert f"    {tmp_path / 'nowhere'}: no such folder\n" in text
    assert "\n\n\n" not in text


def test_after_an_upgrade_only_what_comes_out_otherwise_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("fine", CLEAN), ("same", TRAIN), ("other", TRAIN + "print(1)\n")):
        repository(tmp_path / "repos" / name, {"train.py": text})
    campaign = read(campaign_file(tmp_path, verify=True))
    run_inline(campaign, verified("kept"))
    before = rows(campaign)
    assert not any(one["other_tool"] for one in status(campaign)["repositories"])
    for module in (pending, rewriting):
        monkeypatch.setattr(module, "digest", lambda: "newer")
    assert "3 done by a codemod with other rules; codemod batch retry --changed" in status_text(status(campaign))

    def fate(job: Job) -> Outcome | None:
        if job.slug == "other":
            # The newer one has one rule less.
            job = replace(job, options=replace(job.options, ignore=("attached-loss-total",)))
            return verified("kept")(job) or replace(perform(job), job=job)
        return verified("kept")(job)

    _, executor, _ = run_inline(campaign, fate, again=lambda row: OTHER_TOOL if by_other_tool(row) else "")
    done = [(slug, stage) for slug, stage in executor.done if stage != "clone"]
    assert sorted(done) == [("fine", "rewrite"), ("other", "rewrite"), ("other", "verify"), ("same", "rewrite")]
    after = rows(campaign)
    for slug in ("fine", "same"):
        assert {**after[slug], "tool": "", "changed_at": 0} == {
            **before[slug], "tool": "", "changed_at": 0,
            **{name: after[slug][name] for name in ("cloned_at", "clone_seconds")},
        }  # fmt: skip
    assert (after["same"]["state"], after["other"]["state"], after["other"]["tool"]) == (
        "verified",
        "verified",
        "newer",
    )
    assert after["other"]["head"] != before["other"]["head"]
    assert not any(by_other_tool(row) for row in after.values())
    assert run_inline(campaign)[1].done == []


def test_what_waits_for_others_takes_no_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        repository(tmp_path / "repos" / name, {"train.py": TRAIN})

    def fate(job: Job) -> Outcome | None:
        return replace(perform(job), seconds={"clone": 2.0, "rewrite": 30.0}[job.stage])

    _, _, observer = run_inline(read(campaign_file(tmp_path)), fate)
    assert observer.spent == {"one": 32.0, "two": 32.0}
