"""An executor without processes, for what is not about processes; it can be told what becomes of jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from codemods.batch.campaign.settings import Campaign
from codemods.batch.executors import Doing, Executor
from codemods.batch.ledger.ledger import Row
from codemods.batch.places import Places
from codemods.batch.progress import Progress
from codemods.batch.running import Summary, run
from codemods.batch.stages.job import Job, Outcome
from codemods.batch.stages.jobs import perform, write_facts
from codemods.batch.stages.rewriting import BUNDLE

Fate = Callable[[Job], Outcome | None]


class Inline:
    """Does each job at once, in this process; ``fate`` may say what becomes of one instead."""

    def __init__(self, fate: Fate = lambda job: None) -> None:
        self.done: list[tuple[str, str]] = []
        self._fate = fate
        self._outcomes: list[Outcome] = []

    capacity = 2

    def submit(self, job: Job) -> None:
        """Do it."""
        self.done.append((job.slug, job.stage))
        self._outcomes.append(self._fate(job) or perform(job))

    def wait(self, timeout: float) -> list[Outcome]:
        """What was done."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def doing(self) -> list[Doing]:
        """Nothing, ever."""
        return []

    def close(self) -> None:
        """Nothing to close."""


class Quiet(Progress):
    """Progress that only remembers."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.said: list[str] = []
        self.spent: dict[str, float] = {}

    def begin(self, total: int, finished: int) -> None:
        """Nothing."""

    def settled(self, row: Row, seconds: float) -> None:
        """Remember the seconds."""
        self.spent[row["slug"]] = seconds

    def look(self, doing: Any) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Remember the text."""
        self.said.append(text)


def run_inline(campaign: Campaign, fate: Fate = lambda job: None, **choices: Any) -> tuple[Summary, Inline, Quiet]:
    """Run ``campaign`` in this process."""
    executor, observer = Inline(fate), Quiet()

    def executors(places: Places, todo: int) -> tuple[Executor, Executor]:
        return executor, executor

    return run(campaign, executors, observer, **choices), executor, observer


def verified(verdict: str) -> Any:
    """A fate that has repositories verified with ``verdict`` without running them: the branch is that of a rewrite."""

    def fate(job: Job) -> Outcome | None:
        if job.stage != "verify":
            return None
        made = perform(replace(job, stage="rewrite"))
        assert made.status == "done", made.reason
        place = Path(job.folder) / "result"
        facts = {**made.facts, "stage": "verify", "verification": verdict, "why": "told so", "verdicts": [], "runs": []}
        if verdict == "not judged":
            facts["head"] = ""
            (place / BUNDLE).unlink()
        write_facts(place, facts)
        return replace(made, job=job, facts=facts)

    return fate
