"""One job of a campaign, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from codemods.batch.campaign.settings import Commits, Limits, Runs, Steps
from codemods.batch.sources import Source
from codemods.source.options import Options

#: The verification of a branch on which a run has kept only some of the rewrites.
PARTLY = "partly kept"
RESULT, LOG, FACTS = "result", "log.txt", "facts.json"
#: Seconds in which an environment is made.
_MAKING = 1800


Tell = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One stage of the repository ``repository`` (its number in the ledger).

    ``folder`` is where the attempt is made; the executor gives it where that is another machine's. ``source`` is for
    the first stage alone: no credentials travel beyond it. Later ones have a ``clone`` here, or one ``packed`` to
    travel. ``when`` is the time that commits bear, so that a stage done again makes the same ones.
    """

    id: str
    repository: int
    slug: str
    stage: str
    folder: str
    base: str = ""
    source: Source | None = None
    ref: str = ""
    clone: str = ""
    packed: bytes = field(default=b"", repr=False)
    runs: Runs = field(default_factory=Runs)
    options: Options = field(default_factory=Options)
    exclude: tuple[str, ...] = ()
    commits: Commits = field(default_factory=Commits)
    limits: Limits = field(default_factory=Limits)
    artifacts: tuple[str, ...] = ()
    require: str = "kept"
    quote_output: bool = False
    identity: tuple[str, str] = ("", "")
    when: int = 0
    fingerprint: str = ""
    entries: tuple[tuple[str, str], ...] = ()
    steps: Steps = field(default_factory=Steps)
    environments: str = ""
    """Where environments are kept that repositories are run in."""

    @property
    def timeout(self) -> float:
        """The seconds after which a worker is ended, whatever it does. Git and runs have limits of their own."""
        if self.stage == "clone":
            return self.limits.clone_timeout + 300
        steps = len(self.steps.before) + len(self.steps.after)
        seconds = self.limits.rewrite_timeout + self.runs.timeout * steps
        if self.stage == "verify":
            # The last run may begin at the end of its time, and is made again where its port was taken.
            seconds += self.runs.within + 3 * self.runs.timeout
        elif not steps:
            return seconds
        return seconds + (_MAKING if self.runs.requirements or self.runs.own_requirements else 0)

    @property
    def device(self) -> str:
        """``cuda`` for a job that needs a GPU."""
        return "cuda" if self.stage == "verify" and self.runs.device == "cuda" else "cpu"


@dataclass(frozen=True)
class Outcome:
    """What became of a job: ``status`` is done, failed, refused, exhausted (the machine's fault) or died.

    ``facts`` are for the ledger; what else there is lies in ``folder``, below :data:`RESULT`, beside :data:`LOG`.
    """

    job: Job
    status: str
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    folder: str = ""
    seconds: float = 0.0
