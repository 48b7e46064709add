"""Four workers on the loopback interface; one is killed, then the scheduler: nothing is lost or done twice."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import read
from codemods.batch.ledger.ledger import Ledger
from tests.batch.executors.test_dask import Cluster, children
from tests.batch.inline import run_inline
from tests.batch.test_processes import finished, many, results, started, until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")]

COUNT = 24


def settled(work: Path) -> dict[str, str]:
    """The state of each repository that has come to its end."""
    with contextlib.ExitStack() as stack:
        ledger = Ledger.read(work)
        if ledger is None:
            return {}
        rows = stack.enter_context(ledger).repositories()
    return {row["slug"]: row["state"] for row in rows if row["state"] in ("rewritten", "unchanged")}


def test_a_worker_and_then_the_scheduler_are_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    file = many(tmp_path, COUNT)
    first, second = Cluster(tmp_path / "first"), None
    try:
        for _ in range(4):
            first.worker()
        first.wait(4)
        with started(file, "--scheduler", first.address) as process:
            victim = first.processes[2]
            until(lambda: children(victim.pid) or process.poll() is not None)
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            # It goes on without it, and then the scheduler goes in the middle.
            until(lambda: len(settled(tmp_path / "work")) >= COUNT // 4 or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            os.kill(first.processes[0].pid, signal.SIGKILL)
            _, err = process.communicate(timeout=120)
        assert process.returncode == 2, err
        assert "finished work is kept; run the same command to continue" in err
        assert "Traceback" not in err
        before = settled(tmp_path / "work")
        assert COUNT // 4 <= len(before) < COUNT
        with Ledger.open(tmp_path / "work") as ledger:
            assert not {row["state"] for row in ledger.repositories()} & {"failed", "refused"}
            last = ledger.query("SELECT max(id) AS id FROM events")[0]["id"]
        first.close()

        second = Cluster(tmp_path / "second")
        for _ in range(4):
            second.worker()
        second.wait(4)
        status, out, err = finished(file, "--scheduler", second.address)
        assert status == 0, out + err
        with Ledger.open(tmp_path / "work") as ledger:
            again = ledger.query(
                "SELECT DISTINCT r.slug FROM events e JOIN repositories r ON r.id = e.repository WHERE e.id > ?", last
            )
        # What had come to its end was not touched.
        assert not {row["slug"] for row in again} & before.keys()
    finally:
        first.close()
        if second is not None:
            second.close()
    made = results(tmp_path / "work")
    assert len(made) == COUNT
    (tmp_path / "work").rename(tmp_path / "cluster-work")
    run_inline(read(file))
    assert results(tmp_path / "work") == made
