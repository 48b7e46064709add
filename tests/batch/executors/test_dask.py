"""A campaign on a cluster: a real scheduler, real workers in processes of their own, one of them killed at work."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import read
from codemods.batch.errors import CampaignError
from codemods.batch.executors.dask import DaskExecutor
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.places import Places
from codemods.batch.stages.job import Job
from tests.batch.inline import run_inline
from tests.batch.test_processes import ROOT, finished, many, results, started, until
from tests.batch.tools import TRAIN, campaign_file, repository

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")]

Start = Callable[..., "subprocess.Popen[bytes]"]


class Cluster:
    """A scheduler and workers on the loopback interface, each worker with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir()
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")

    def worker(self, *words: str) -> subprocess.Popen[bytes]:
        name = f"worker{len(self.processes)}"
        more = ["--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name]
        return self._start("worker", *more, "--local-directory", str(self.folder / name), *words)

    def _start(self, kind: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self.file), *words]
        with open(self.folder / f"{kind}{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "2s"},
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    @property
    def address(self) -> str:
        for _ in range(300):
            with contextlib.suppress(OSError, ValueError):
                return str(json.loads(self.file.read_text())["address"])
            time.sleep(0.1)
        raise AssertionError("no scheduler")

    def wait(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False, timeout=30) as client:
            client.wait_for_workers(workers, timeout=60)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("dask") / "cluster")
    try:
        for _ in range(2):
            made.worker()
        made.worker("--resources", "GPU=1")
        made.wait(3)
        yield made
    finally:
        made.close()


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children")
    tasks = Path(f"/proc/{pid}/task").iterdir() if text.exists() else ()
    found = []
    for task in tasks:
        with contextlib.suppress(OSError):
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def test_the_same_as_on_one_machine_though_a_worker_is_killed_at_work(cluster: Cluster, tmp_path: Path) -> None:
    file = many(tmp_path, 8)
    victim = cluster.processes[1]
    with started(file, "--scheduler", cluster.address) as process:
        until(lambda: children(victim.pid) or process.poll() is not None)
        ours = children(victim.pid)
        assert ours, "the worker was given nothing"
        os.kill(victim.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    victim.wait()
    # What the worker had started does not outlive it.
    until(lambda: not [pid for pid in ours if Path(f"/proc/{pid}").exists()])
    on_the_cluster = results(tmp_path / "work")
    assert {made[0] for made in on_the_cluster.values()} == {"rewritten", "unchanged"}
    (tmp_path / "work").rename(tmp_path / "cluster-work")
    run_inline(read(file))
    assert results(tmp_path / "work") == on_the_cluster
    # The other workers keep nothing of it.
    for folder in cluster.folder.glob("worker[23]"):
        left = [path for path in folder.rglob("codemod-*") if path.name not in ("codemod-tmp", "codemod-cache")]
        assert left == []


def test_verified_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "r", {"train.py": TRAIN, "idle.py": TRAIN})
    file = campaign_file(tmp_path, '[[repository]]\nsource = "repos/r"\nverify.commands = ["train.py"]\n', verify=True)
    status, _, err = finished(file, "--scheduler", cluster.address)
    assert status == 0, err
    with Ledger.open(tmp_path / "work") as ledger:
        (row,) = ledger.repositories()
        assert (row["state"], row["verification"]) == ("verified", "kept")
        # the other script is looked at too, because the command does not come to it
        commands = [one["command"] for one in ledger.query("SELECT command FROM runs")]
        assert sorted(commands) == ["python idle.py"] * 2 + ["python train.py"] * 2
        assert ledger.query("SELECT path FROM findings WHERE fate = 'left'") == []
    assert (Places(tmp_path / "work").of("r", "verify") / "verification.html").is_file()


def test_a_job_for_a_gpu_goes_where_one_is(cluster: Cluster, tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "r", {"train.py": TRAIN})
    campaign = read(campaign_file(tmp_path, "[[repository]]\nsource = 'repos/r'\nverify.device = 'cuda'\n"))
    run_inline(campaign, stages=("clone",))
    executor = DaskExecutor(cluster.address, gpu=True)
    try:
        # It has no command to run, and mostly no card; what counts is that it was given to somebody.
        executor.submit(
            Job(
                "g", 1, "r", "verify", str(tmp_path / "attempt"), runs=campaign.repositories[0].runs,
                clone=str(Places(campaign.work).clone("r")),
            )
        )  # fmt: skip
        outcomes = []
        for _ in range(60):
            outcomes += executor.wait(1.0)
            if outcomes:
                break
        assert [one.status for one in outcomes] in (["done"], ["failed"])
        assert outcomes[0].facts.get("verification", "not judged") == "not judged"
        assert outcomes[0].job.packed == b""
        assert (tmp_path / "attempt" / "log.txt").is_file()
    finally:
        executor.close()


def test_a_cluster_without_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(tmp_path / "cluster")
    try:
        cluster.worker()
        cluster.wait(1)
        with pytest.raises(CampaignError, match=r"no worker of tcp://127.0.0.1:.* offers a GPU: start them with"):
            DaskExecutor(cluster.address, gpu=True)
        with monkeypatch.context() as patch:
            patch.setattr("codemods.batch.executors.dask.__version__", "99.0")
            with pytest.raises(CampaignError, match=r"has codemod 0\.\S+, and this is 99\.0"):
                DaskExecutor(cluster.address)
        file = many(tmp_path, 3)
        with started(file, "--scheduler", cluster.address) as process:
            until(lambda: children(cluster.processes[1].pid) or process.poll() is not None)
            # The scheduler and all workers go: that is no repository's fault.
            cluster.close()
            _, err = process.communicate(timeout=120)
        assert process.returncode == 2, err
        assert "finished work is kept; run the same command to continue" in err
        assert "Traceback" not in err
        with Ledger.open(tmp_path / "work") as ledger:
            assert not {row["state"] for row in ledger.repositories()} & {"failed", "refused"}
    finally:
        cluster.close()


def test_without_dask_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CampaignError, match=r"pip install '\.\[dask\]'"):
        DaskExecutor("tcp://127.0.0.1:1")
