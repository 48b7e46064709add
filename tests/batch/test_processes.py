"""Campaigns in real processes: killed at any moment, with full disks, and beside repositories that mean harm."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Limits
from codemods.batch.executors.processes import ProcessExecutor
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.places import Places
from codemods.batch.sources import of_path
from codemods.batch.stages.job import Job, Outcome
from tests.batch.tools import CLEAN, TRAIN, Held, campaign_file, commit, git, repository, tree_of

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def started(file: Path, *words: str, env: Mapping[str, str] | None = None, **choices: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "codemods", "batch", "run", str(file), *words],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **choices,  # type: ignore[call-overload]
    )


def finished(file: Path, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    with started(file, *words, env=env) as process:
        out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def job(folder: Path, source: Path, name: str = "a") -> Job:
    return Job(name, 1, name, "clone", str(folder / name), source=of_path(source), limits=Limits())


def outcome(executor: ProcessExecutor) -> Outcome:
    for _ in range(1200):
        for found in executor.wait(0.1):
            return found
    raise AssertionError("nothing came back")


def workers_below(folder: Path) -> list[int]:
    """The worker processes whose temporary files belong below ``folder``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if (
                    b"codemods.batch.stages.worker" in command
                    and str(folder).encode() in (entry / "environ").read_bytes()
                ):
                    found.append(int(entry.name))
    return found


@linux
def test_a_worker_that_is_killed_is_noticed_and_replaced(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.py": CLEAN})
    executor = ProcessExecutor(1, tmp_path / "scratch", tmp_path / "cache")
    try:
        executor.submit(job(tmp_path, source, "first"))
        assert outcome(executor).status == "done"
        (pid,) = workers_below(tmp_path)
        # Held still it is surely at work when it is killed.
        os.kill(pid, signal.SIGSTOP)
        executor.submit(job(tmp_path, source, "second"))
        while not executor.doing():
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        died = outcome(executor)
        assert (died.status, died.reason) == (
            "died",
            "its worker was ended by SIGKILL, as the system does where memory runs out",
        )
        executor.submit(job(tmp_path, source, "third"))
        assert outcome(executor).status == "done"
    finally:
        executor.close()
    assert workers_below(tmp_path) == []


@linux
def test_a_job_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.py": CLEAN})
    executor = ProcessExecutor(1, tmp_path / "scratch", tmp_path / "cache")
    try:
        executor.submit(job(tmp_path, source, "first"))
        outcome(executor)
        (pid,) = workers_below(tmp_path)
        os.kill(pid, signal.SIGSTOP)
        slow = Job("x", 1, "x", "rewrite", str(tmp_path / "x"), limits=Limits(rewrite_timeout=0.5))
        executor.submit(slow)
        late = outcome(executor)
        assert (late.status, late.reason) == ("failed", "took more than 0 seconds")
        assert workers_below(tmp_path) == []
    finally:
        executor.close()


@linux
def test_workers_are_replaced_before_they_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemods.batch.stages.worker.RECYCLE_JOBS", 2)
    source = repository(tmp_path / "source", {"a.py": CLEAN})
    executor = ProcessExecutor(1, tmp_path / "scratch", tmp_path / "cache")
    seen = []
    try:
        for number in range(4):
            executor.submit(job(tmp_path, source, str(number)))
            assert outcome(executor).status == "done"
            seen += workers_below(tmp_path)
    finally:
        executor.close()
    assert seen[0] == seen[1] != seen[2] == seen[3]


def results(work: Path) -> dict[str, tuple[str, ...]]:
    """What a campaign has made, by repository: state, tree of the branch, and every artifact's digest."""
    made = {}
    with Ledger.open(work) as ledger:
        for row in ledger.repositories():
            places = Places(work)
            tree = tree_of(places.clone(row["slug"]), "codemod") if row["head"] else ""
            digests = []
            for path in sorted(places.of(row["slug"], "rewrite").glob("*")):
                # The facts hold times, the bundle commits that bear the time of the campaign.
                if path.name not in ("facts.json", "branch.bundle"):
                    digests.append(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}")
            found = ledger.query(
                "SELECT rule, path, line, fate FROM findings WHERE repository=? ORDER BY 1, 2, 3", row["id"]
            )
            made[row["slug"]] = (row["state"], row["base"], tree, *digests, str(found))
    return made


def many(folder: Path, count: int, *, held: Held | None = None) -> Path:
    for number in range(count):
        files: dict[str, str | bytes] = {"train.py": TRAIN + f"print({number})\n", "lib.py": CLEAN}
        if number % 4 == 3:
            files = {"lib.py": CLEAN}
        repository(folder / "repos" / f"r{number:02}", files)
    return campaign_file(folder, f"[[repository]]\nsource = '{held.address}'\n" if held is not None else "")


def states(work: Path) -> list[str]:
    """The states of the repositories of a campaign, in order."""
    with Ledger.open(work) as ledger:
        return [row["state"] for row in ledger.repositories()]


def events(work: Path) -> int:
    """How many changes of state a campaign has written down."""
    ledger = Ledger.read(work)
    if ledger is None:
        return 0
    with ledger:
        return int(ledger.query("SELECT count(*) AS n FROM events")[0]["n"])


def until(condition: Callable[[], object]) -> None:
    """Wait for ``condition``, which has to come."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def holding(pid: int, held: Held) -> bool:
    """Whether the worker ``pid`` is the one that waits for ``held``."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == pid and held.address.encode() in (entry / "cmdline").read_bytes():
                return True
    return False


@linux
@pytest.mark.slow
def test_killed_at_any_moment_it_comes_to_the_same(tmp_path: Path) -> None:
    held = Held()
    file = many(tmp_path, 12, held=held)
    # What is held cannot be had yet.
    assert finished(file)[0] == 1
    undisturbed = results(tmp_path / "work")
    assert {made[0] for made in undisturbed.values()} == {"rewritten", "unchanged", "failed"}
    (tmp_path / "work").rename(tmp_path / "undisturbed")
    held.hold()
    chance = random.Random(os.environ.get("CODEMOD_TEST_SEED", "batch"))
    for done in (0, 2, 5, 9, 14, 20):
        with started(file) as process:
            until(lambda done=done: events(tmp_path / "work") >= done and workers_below(tmp_path))
            time.sleep(chance.uniform(0, 0.3))
            if done == 5:
                # Once: what two workers have died over has failed.
                until(lambda: [pid for pid in workers_below(tmp_path) if not holding(pid, held)])
                os.kill(next(pid for pid in workers_below(tmp_path) if not holding(pid, held)), signal.SIGKILL)
                time.sleep(0.2)
            assert process.poll() is None, process.communicate()
            process.kill()
            process.communicate()
        until(lambda: not workers_below(tmp_path))
    held.release()
    status, _, err = finished(file)
    assert status == 1, err
    assert results(tmp_path / "work") == undisturbed
    with Ledger.open(tmp_path / "work") as ledger:
        again = ledger.query(
            "SELECT repository, stage, count(*) AS n FROM events WHERE stage IN ('clone', 'rewrite') "
            "GROUP BY repository, stage HAVING n > 1"
        )
    assert again == [], "what was finished was done again"
    assert not (tmp_path / "work" / "scratch").exists()


@linux
def test_the_same_campaign_twice_at_the_same_time(tmp_path: Path) -> None:
    held = Held()
    held.hold()
    file = many(tmp_path, 2, held=held)
    with started(file) as first:
        held.begun()
        status, _, err = finished(file)
        held.release()
        first.communicate(timeout=120)
    assert status == 2
    assert f"the campaign is at work already: process {first.pid} on " in err
    # The first has gone on undisturbed.
    assert first.returncode == 1
    assert states(tmp_path / "work") == ["rewritten", "rewritten", "failed"]


@linux
def test_interrupted_it_says_nothing_bad_and_goes_on(tmp_path: Path) -> None:
    held = Held()
    held.hold()
    file = many(tmp_path, 3, held=held)
    with started(file, start_new_session=True) as process:
        held.begun()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "of 4 repositories are finished; they are kept" in err.splitlines()[-1]
    assert err.splitlines()[-1].endswith("To go on: codemod batch run campaign.toml")
    assert workers_below(tmp_path) == []
    held.release()
    assert finished(file)[0] == 1
    assert states(tmp_path / "work") == ["rewritten", "rewritten", "rewritten", "failed"]


HARM = """
import os, pathlib
pathlib.Path({mark!r}).write_text(__file__)
"""


def harmful(folder: Path, mark: Path) -> None:
    """A repository whose every file says so when it is executed, under names that Python imports of its own accord."""
    text = HARM.format(mark=str(mark))
    names = ("sitecustomize", "usercustomize", "conftest", "setup", "csv", "email", "json", "random", "torch", "typing")
    files: dict[str, str | bytes] = {f"{name}.py": text for name in names}
    files |= {"verify/__init__.py": text, "codemods/__init__.py": text, "libcst/__init__.py": text}
    files |= {"pyproject.toml": "[build-system]\nbuild-backend = 'setup'\n", ".envrc": f"touch {mark}\n"}
    files["train.py"] = text + TRAIN
    repository(folder, files)


def snapshot(*folders: Path) -> dict[str, tuple[int, int]]:
    seen = {}
    for folder in folders:
        for path in folder.rglob("*"):
            status = path.lstat()
            seen[str(path)] = (status.st_size, status.st_mtime_ns if path.is_file() else 0)
    return seen


@linux
@pytest.mark.parametrize(
    "verify", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["rewritten only", "verified too"]
)
def test_nothing_of_a_repository_is_executed_and_nothing_is_written_outside(tmp_path: Path, verify: bool) -> None:
    home, temporary, mark = tmp_path / "home", tmp_path / "tmp", tmp_path / "executed"
    for folder in (home, temporary):
        folder.mkdir()
    if verify:
        # What is run is run in isolation, where it can import and write what it likes.
        (tmp_path / "one").mkdir()
        repository(
            tmp_path / "repos" / "r",
            {"train.py": TRAIN + HARM.format(mark=str(mark)), "csv.py": HARM.format(mark=str(mark)), "lib.py": CLEAN},
        )
    else:
        harmful(tmp_path / "repos" / "r", mark)
    file = campaign_file(tmp_path, verify=verify)
    before = snapshot(home, temporary, tmp_path / "repos", ROOT / "codemods", ROOT / "verify")
    environment = {"HOME": str(home), "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(home / "cache")}
    status, out, err = finished(file, env=environment)
    assert status == 0, out + err
    assert not mark.exists(), mark.read_text()
    after = snapshot(home, temporary, tmp_path / "repos", ROOT / "codemods", ROOT / "verify")
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert not {path for path in changed if "__pycache__" not in path}
    with Ledger.open(tmp_path / "work") as ledger:
        (row,) = ledger.repositories()
    assert (row["state"], row["verification"]) == (("verified", "kept") if verify else ("rewritten", ""))
    if verify:
        place = Places(tmp_path / "work").of("r", "verify")
        assert "- Run before and after: 2 kept." in (place / "pull-request.md").read_text()
        assert (place / "verification.html").read_text().startswith("<!DOCTYPE html>")
        assert git(Places(tmp_path / "work").clone("r"), "log", "--format=%s", "codemod").count("Fix ") == 2


def has_tmpfs() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@linux
@pytest.mark.skipif(not has_tmpfs(), reason="needs a user namespace that may mount")
@pytest.mark.slow
def test_a_disk_that_runs_full(tmp_path: Path) -> None:
    file = many(tmp_path, 4)
    for number in range(4):
        commit(tmp_path / "repos" / f"r{number:02}", {"data.bin": os.urandom(300_000)})
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "kept").mkdir()
    run = f"{sys.executable} -m codemods batch run {file} -q"
    # The second time there is room, and all that the first has left.
    script = (
        f"mount -t tmpfs -o size=1400k none {work} && {run}; echo first $?; mount -o remount,size=64m {work} && {run}; "
        f"echo second $?; cp -a {work}/. {tmp_path}/kept/"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["first 2", "second 0"], done.stderr
    assert "; finished work is kept; run the same command to continue" in done.stderr
    assert "Traceback" not in done.stderr
    with Ledger.open(tmp_path / "kept") as ledger:
        assert {row["state"] for row in ledger.repositories()} == {"rewritten", "unchanged"}
        assert not ledger.query("SELECT * FROM events WHERE after IN ('failed', 'refused')")


def test_a_thread_that_cannot_start_a_worker_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    executor = ProcessExecutor(1, tmp_path / "scratch", tmp_path / "cache")
    try:
        executor.submit(job(tmp_path, tmp_path))
        found = outcome(executor)
        assert (found.status, "no worker could be started" in found.reason) == ("exhausted", True)
    finally:
        executor.close()
    assert threading.active_count() < 50
