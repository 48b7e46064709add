"""Workers that are processes of this machine, and which executors a run has."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

from codemods.analysis.workers import cores
from codemods.batch.campaign.settings import Campaign
from codemods.batch.executors import Doing, Executor, received
from codemods.batch.places import Places
from codemods.batch.stages.job import Job, Outcome
from codemods.batch.stages.worker import Worker


def executors_for(
    campaign: Campaign, places: Places, todo: int, *, jobs: int | None = None, scheduler: str | None = None
) -> tuple[Executor, Executor]:
    """Return the executor for clones and the one for all else, which may be the same.

    ``todo`` repositories are to be done; ``jobs`` goes before the campaign's own number. Raises
    :class:`~codemods.batch.errors.CampaignError` for a ``scheduler`` that cannot be used.
    """
    count = jobs or campaign.limits.jobs or cores()
    local = ProcessExecutor(max(1, min(count, todo)), places.temporary, places.cache)
    if scheduler is None:
        return local, local
    from codemods.batch.executors.dask import DaskExecutor

    try:
        gpu = any(one.runs.run and one.runs.device == "cuda" for one in campaign.repositories)
        return local, DaskExecutor(scheduler, gpu=gpu)
    except BaseException:
        local.close()
        raise


class ProcessExecutor:
    """``count`` processes on this machine; ``scratch`` is where they put temporary files, ``cache`` what stays."""

    def __init__(self, count: int, scratch: Path, cache: Path) -> None:
        self._count = count
        self._jobs: queue.Queue[Job | None] = queue.Queue()
        self._outcomes: queue.Queue[Outcome] = queue.Queue()
        self._doing: dict[int, Doing] = {}
        self._cancelled = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve, args=(number, Worker(scratch, cache)), daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def capacity(self) -> int:
        """See :class:`Executor`; one more than there are, so that none has to wait for the ledger."""
        return self._count + 1

    def submit(self, job: Job) -> None:
        """See :class:`Executor`."""
        self._jobs.put(job)

    def wait(self, timeout: float) -> list[Outcome]:
        """See :class:`Executor`."""
        return received(self._outcomes, timeout)

    def doing(self) -> list[Doing]:
        """See :class:`Executor`."""
        return [doing for _, doing in sorted(self._doing.copy().items())]

    def close(self) -> None:
        """See :class:`Executor`."""
        self._cancelled.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(30)

    def _serve(self, number: int, worker: Worker) -> None:
        try:
            while (job := self._jobs.get()) is not None and not self._cancelled.is_set():
                doing = self._doing[number] = Doing(str(number + 1), job.repository, job.slug, job.stage)

                def tell(text: str, doing: Doing = doing) -> None:
                    doing.text = text

                try:
                    outcome = worker.do(job, tell, self._cancelled)
                except Exception as error:  # no worker could be started: the thread must not die of it in silence
                    outcome = Outcome(job, "exhausted", f"no worker could be started: {error}", {}, job.folder)
                self._doing.pop(number, None)
                self._outcomes.put(outcome)
        finally:
            worker.close()
