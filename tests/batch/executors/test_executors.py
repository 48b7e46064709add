"""Who does the jobs, without a cluster: what becomes of one whose scheduler goes."""

from __future__ import annotations

import asyncio
import queue
from pathlib import Path
from typing import Any

import pytest

from codemods.batch.campaign.settings import Limits, Runs, Steps
from codemods.batch.errors import Exhausted
from codemods.batch.executors.dask import DaskExecutor
from codemods.batch.stages.job import Job


class Gone:
    """Dask's client whose scheduler has gone, and which has not noticed yet."""

    status = "running"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def nthreads(self) -> dict[str, int]:
        raise self._error

    def submit(self, *words: Any, **choices: Any) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error", [ConnectionResetError(104, "reset by peer"), asyncio.TimeoutError(), RuntimeError("Client is closed")]
)
def test_a_scheduler_that_goes_while_it_is_asked(error: Exception, tmp_path: Path) -> None:
    executor = object.__new__(DaskExecutor)
    executor._client, executor._address = Gone(error), "tcp://host:1"
    executor._looked, executor._capacity = float("-inf"), 1
    executor._jobs, executor._since, executor._futures = {}, {}, {}
    executor._outcomes = queue.Queue()
    (tmp_path / ".git").mkdir()
    with pytest.raises(Exhausted, match=r"^the scheduler tcp://host:1 is gone$"):
        executor.capacity  # noqa: B018
    with pytest.raises(Exhausted, match="is gone"):
        executor.submit(Job("1", 1, "r", "rewrite", "x", clone=str(tmp_path)))


def test_an_environment_has_time_to_be_made_wherever_it_is_needed() -> None:
    def seconds(stage: str, steps: Steps, **runs: Any) -> float:
        limits = Limits(rewrite_timeout=60)
        return Job("x", 1, "x", stage, "x", runs=Runs(timeout=10, **runs), limits=limits, steps=steps).timeout

    own = Steps(("a",), ("b",))
    plain, verified = seconds("rewrite", Steps()), seconds("verify", Steps())
    assert seconds("rewrite", own) == plain + 20
    assert seconds("rewrite", Steps(), own_requirements=True) == plain
    assert seconds("rewrite", own, own_requirements=True) == plain + 20 + 1800
    assert seconds("verify", own, requirements=("x",), within=5.0) == verified - 3600 + 20 + 1800 + 5
