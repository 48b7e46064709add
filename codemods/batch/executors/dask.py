"""Workers of a Dask cluster, reached by its scheduler: Slurm, PBS, Kubernetes and clouds by Dask's own deployers.

They need no disk in common with this machine: a clone travels to them as bytes, and so does the result back. A worker
that dies has its job done elsewhere by the scheduler; after some deaths the job is given up
(https://distributed.dask.org/en/stable/resilience.html). Credentials stay here, because clones are made here.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import queue
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods import __version__
from codemods.batch.errors import CampaignError, Exhausted, is_full
from codemods.batch.executors import Doing, received
from codemods.batch.stages.cloning import pack, unpack
from codemods.batch.stages.job import LOG, RESULT, Job, Outcome
from codemods.batch.stages.worker import Worker
from codemods.source.home import needs

if TYPE_CHECKING:
    from distributed import Future

_REACHING = 30  # seconds until a scheduler must have answered
_AHEAD = 2  # jobs a thread, so that none has to wait for the next to arrive
_REFRESH = 5.0  # seconds between two looks at the cluster


class DaskExecutor:
    """The cluster whose scheduler listens at ``address``, such as ``tcp://10.0.0.1:8786``.

    Raises :class:`CampaignError` where Dask is not installed, the scheduler does not answer, or its workers have no or
    another codemod.
    """

    def __init__(self, address: str, *, gpu: bool = False) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise CampaignError(needs("--scheduler", "Dask", "dask"))
        from distributed import Client

        _hush()
        try:
            self._client = Client(address, timeout=_REACHING, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            said = " ".join(str(error).split())[:200]
            raise CampaignError(f"the scheduler {address} does not answer: {said}") from None
        self._address = address
        self._outcomes: queue.Queue[Outcome] = queue.Queue()
        self._jobs: dict[str, Job] = {}
        self._futures: dict[str, Future] = {}
        self._since: dict[str, float] = {}
        self._closing = False
        self._looked = 0.0
        self._capacity = 1
        try:
            self._require_same_version()
            if gpu:
                self._require_gpus()
        except BaseException:
            self.close()
            raise

    @property
    def capacity(self) -> int:
        """See :class:`Executor`; it follows a cluster that grows and shrinks.

        Raises :class:`Exhausted` where the scheduler is gone, as all that is asked of it does.
        """
        if time.monotonic() - self._looked > _REFRESH:
            self._looked = time.monotonic()
            with self._asking():
                self._capacity = max(1, _AHEAD * sum(self._client.nthreads().values()))
        return self._capacity

    def submit(self, job: Job) -> None:
        """See :class:`Executor`."""
        travelling = replace(job, clone="", folder="", packed=pack(Path(job.clone), ".git"))
        key = f"codemod-{job.stage}-{job.slug}-{job.id}"
        self._jobs[key] = job
        self._since[key] = time.monotonic()
        with warnings.catch_warnings(), self._asking():
            # A repository is more than a number, as it should be: scattered, it would be lost with the first worker.
            warnings.filterwarnings("ignore", message="Sending large graph")
            future = self._client.submit(
                work, travelling, key=key, pure=False, resources={"GPU": 1} if job.device == "cuda" else None
            )
        self._futures[key] = future
        future.add_done_callback(self._done)

    def wait(self, timeout: float) -> list[Outcome]:
        """See :class:`Executor`. Raises :class:`Exhausted` where the scheduler is gone."""
        outcomes = received(self._outcomes, timeout)
        if not outcomes and self._client.status not in ("running", "connecting"):
            raise self._gone()
        return outcomes

    def doing(self) -> list[Doing]:
        """See :class:`Executor`: the jobs that workers have been given, the oldest of each first."""
        found = []
        for key, since in sorted(self._since.copy().items(), key=lambda item: item[1])[: self._capacity // _AHEAD]:
            job = self._jobs.get(key)
            if job is not None:
                found.append(Doing("dask", job.repository, job.slug, job.stage, "", since))
        return found

    def close(self) -> None:
        """See :class:`Executor`; the cluster stays."""
        self._closing = True
        with contextlib.suppress(Exception):
            self._client.cancel(list(self._futures.values()), force=True)
        with contextlib.suppress(Exception):
            self._client.close(timeout=10)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """The scheduler can go at any moment: Dask has several errors for that."""
        try:
            yield
        except (OSError, RuntimeError, asyncio.TimeoutError):
            raise self._gone() from None

    def _gone(self) -> Exhausted:
        return Exhausted(f"the scheduler {self._address} is gone")

    def _done(self, future: Future) -> None:
        """Called in a thread of Dask's."""
        key = str(future.key)
        self._futures.pop(key, None)
        self._since.pop(key, None)
        job = self._jobs.pop(key, None)
        if job is None or self._closing:
            return
        begin = time.monotonic()
        try:
            status, reason, facts, seconds, files = future.result()
            unpack(files, Path(job.folder))
            outcome = Outcome(job, status, reason, facts, job.folder, seconds)
        except OSError as error:
            status = "exhausted" if is_full(error) else "died"
            outcome = Outcome(job, status, f"{type(error).__name__}: {error}", {}, job.folder)
        except BaseException as error:  # whatever the cluster says of a job that it gave up
            text = f"given up by the cluster: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            status = "exhausted" if type(error).__name__ in ("CancelledError", "FutureCancelledError") else "died"
            outcome = Outcome(job, status, text, {}, job.folder, time.monotonic() - begin)
        self._outcomes.put(outcome)

    def _require_same_version(self) -> None:
        try:
            versions = self._client.run(version, on_error="return")
        except Exception as error:
            raise CampaignError(f"the workers of {self._address} do not answer: {error}") from None
        for place, answer in versions.items():
            if isinstance(answer, Exception):
                raise CampaignError(f"{place} has no codemod that it can import: {answer}")
            if answer != __version__:
                raise CampaignError(f"{place} has codemod {answer}, and this is {__version__}")

    def _require_gpus(self) -> None:
        workers: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        if workers and not any(worker.get("resources", {}).get("GPU") for worker in workers.values()):
            raise CampaignError(
                f"device is cuda, but no worker of {self._address} offers a GPU: start them with --resources GPU=1"
            )


def _hush() -> None:
    """Have Dask log nothing but its end: that a worker or the scheduler is gone is told by us, in a sentence."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def version() -> str:
    """The codemod of a worker."""
    return __version__


_local = threading.local()


def work(job: Job) -> tuple[str, str, dict[str, Any], float, bytes]:
    """Do ``job`` on a worker of the cluster: in a process of its own, as on this machine, in a folder that goes.

    Returns status, reason, facts, seconds and the files of the result.
    """
    from distributed import get_worker

    base = Path(get_worker().local_directory)
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="codemod-", dir=base))
    try:
        worker: Worker | None = getattr(_local, "worker", None)
        if worker is None:
            worker = _local.worker = Worker(base / "codemod-tmp", base / "codemod-cache")
        # That the cluster has taken a job back is seen when the worker process goes; nothing asks it to stop before.
        outcome = worker.do(
            replace(job, folder=str(folder), environments=str(base / "codemod-environments")),
            lambda _: None,
            threading.Event(),
        )
        return outcome.status, outcome.reason, outcome.facts, outcome.seconds, pack(Path(outcome.folder), RESULT, LOG)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
