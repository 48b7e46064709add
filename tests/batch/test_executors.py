"""Who does the jobs, without a cluster: what becomes of one whose scheduler goes."""

from __future__ import annotations

import asyncio
import queue
from pathlib import Path
from typing import Any

import pytest

from codemods.batch.errors import Exhausted
from codemods.batch.executors.dask import DaskExecutor
from codemods.batch.job import Job


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
