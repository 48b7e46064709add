"""Which executors a run has: this machine's for clones, and for the rest this machine's or a cluster's."""

from __future__ import annotations

import os

from codemods.batch.campaign import Campaign
from codemods.batch.executors import Executor
from codemods.batch.executors.processes import ProcessExecutor
from codemods.batch.places import Places


def executors_for(
    campaign: Campaign, places: Places, todo: int, *, jobs: int | None = None, scheduler: str | None = None
) -> tuple[Executor, Executor]:
    """Return the executor for clones and the one for all else, which may be the same.

    ``todo`` repositories are to be done; ``jobs`` goes before the campaign's own number. Raises
    :class:`~codemods.batch.errors.CampaignError` for a ``scheduler`` that cannot be used.
    """
    count = jobs or campaign.limits.jobs or _cores()
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


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
