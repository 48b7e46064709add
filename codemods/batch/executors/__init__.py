"""Who does the jobs: processes of this machine, or an engine that has other machines. One interface."""

from __future__ import annotations

import contextlib
import queue
import time
from dataclasses import dataclass, field
from typing import Protocol

from codemods.batch.stages.job import Job, Outcome


@dataclass
class Doing:
    """What a worker does, for people who wait: a stage of the repository with this number in the ledger."""

    worker: str
    repository: int
    slug: str
    stage: str
    text: str = ""
    since: float = field(default_factory=time.monotonic)


class Executor(Protocol):
    """Does jobs, in any order. Every job that was submitted comes back once, as an :class:`Outcome`.

    The result of one that is done lies in ``job.folder`` by then, wherever it was made.
    """

    @property
    def capacity(self) -> int:
        """How many jobs should be under way; more may be, but only wait."""
        ...

    def submit(self, job: Job) -> None:
        """Take a job."""
        ...

    def wait(self, timeout: float) -> list[Outcome]:
        """The outcomes that there are, waiting up to ``timeout`` seconds for the first."""
        ...

    def doing(self) -> list[Doing]:
        """What is being done at the moment."""
        ...

    def close(self) -> None:
        """End what is under way, and all workers that are ours."""
        ...


def received(outcomes: queue.Queue[Outcome], timeout: float) -> list[Outcome]:
    """Take what there is, waiting up to ``timeout`` seconds for the first."""
    found: list[Outcome] = []
    with contextlib.suppress(queue.Empty):
        found.append(outcomes.get(timeout=timeout))
        while True:
            found.append(outcomes.get_nowait())
    return found
