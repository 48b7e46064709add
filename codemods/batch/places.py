"""Where things lie in a campaign's work folder, and how they come there: whole, by a rename, or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from codemods.batch.stages.job import LOG, RESULT


class Places:
    """The work folder ``work``: ``repositories/<slug>/<stage>`` holds results, ``scratch`` what is under way."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.scratch = work / "scratch"
        self.temporary = work / "scratch" / "tmp"
        self.cache = work / "cache"
        self.report = work / "report"
        self.environments = work / "environments"

    def of(self, slug: str, stage: str) -> Path:
        """Where the result of a stage lies."""
        return self.work / "repositories" / slug / stage

    def clone(self, slug: str) -> Path:
        """The clone of a repository."""
        return self.of(slug, "clone") / "tree"

    def log(self, slug: str, stage: str) -> Path:
        """The log of the last attempt at a stage."""
        return self.work / "repositories" / slug / "logs" / f"{stage}.log"

    def take(self, slug: str, stage: str, attempt: Path) -> Path:
        """Put the result of ``attempt`` in its place, and whatever is there out of it."""
        place = self.of(slug, stage)
        place.parent.mkdir(parents=True, exist_ok=True)
        self.drop(slug, stage)
        os.replace(attempt / RESULT, place)
        return place

    def keep_log(self, slug: str, stage: str, attempt: Path) -> str:
        """Keep the log of an attempt, whatever became of it; return its path below the work folder, if there is one."""
        log = self.log(slug, stage)
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            os.replace(attempt / LOG, log)
        except OSError:
            return ""
        return log.relative_to(self.work).as_posix()

    def drop(self, slug: str, stage: str) -> None:
        """Remove the result of a stage: at once out of its place, then for good."""
        gone = self.scratch / f"gone-{uuid.uuid4().hex}"
        self.scratch.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.replace(self.of(slug, stage), gone)
            shutil.rmtree(gone, ignore_errors=True)

    def forget(self, slug: str) -> None:
        """Remove the results of all stages; logs stay."""
        for stage in ("verify", "rewrite", "clone"):
            self.drop(slug, stage)

    def sweep(self) -> None:
        """Remove what a run left behind that was killed."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.cache.mkdir(exist_ok=True)


def slug_of(name: str, key: str, taken: Callable[[str], bool]) -> str:
    """A name for a folder: ``name``, with a piece of ``key`` where another repository has it, whatever the case."""
    # Names of devices are no folders on every system.
    if not taken(name.lower()) and not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name):
        return name
    length = 6
    while taken(f"{name}-{key[:length]}".lower()):
        length += 2
    return f"{name}-{key[:length]}"
