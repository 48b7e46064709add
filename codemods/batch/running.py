"""A campaign at work: what is next, who does it, and what the ledger is told. One process owns it at a time.

Each stage is made in a folder of its own in ``scratch`` and moved into place when it is whole; then the ledger is told.
Killed between the two, the campaign takes the result over when it goes on; killed before, it makes the stage again.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codemods.batch import sources
from codemods.batch.campaign.settings import Campaign, Repository
from codemods.batch.errors import Exhausted, is_full
from codemods.batch.executors import Doing, Executor
from codemods.batch.git import Git, identity
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.ledger.lock import owned
from codemods.batch.pending import OTHER_TOOL, chosen, next_stage, register, require_repositories
from codemods.batch.places import Places
from codemods.batch.progress import Progress
from codemods.batch.stages.committing import fetch_bundle
from codemods.batch.stages.job import FACTS, PARTLY, Job, Outcome
from codemods.batch.stages.jobs import read_facts
from codemods.batch.stages.rewriting import BUNDLE

#: A repository whose worker died is tried once more; that of a second one is held to be its fault.
DEATHS = 2
_STATE_AFTER = {"clone": "cloned", "rewrite": "rewritten", "verify": "verified"}
#: The stage whose results a repository in that state has.
_LEFT_BY = {"cloned": "clone", "unchanged": "rewrite", "rewritten": "rewrite", "verified": "verify"}


@dataclass
class Summary:
    """What a run did: ``settled`` counts repositories by the state that they came to, ``standing`` those that failed or
    were refused in an earlier run and still are."""

    settled: dict[str, int] = field(default_factory=dict)
    standing: dict[str, int] = field(default_factory=dict)
    moved: int = 0


Executors = Callable[[Places, int], tuple[Executor, Executor]]


def run(
    campaign: Campaign,
    executors: Executors,
    progress: Progress,
    *,
    only: Collection[str] = (),
    stages: Collection[str] = ("clone", "rewrite", "verify"),
    again: Callable[[Row], str] = lambda _: "",
) -> Summary:
    """Clone, rewrite and verify every repository of ``campaign``, as far as that goes; return what was done.

    ``executors`` makes the two that are used: for clones, which need this machine and its credentials, and for all
    else. ``only`` are names of repositories (empty: all). ``again`` says of a row why it is to be planned again, empty
    if it is not. Raises :class:`CampaignError` where it cannot begin (also where it is at work already) and
    :class:`Exhausted` where this machine has run out of something: what was done until then stands.
    """
    require_repositories(campaign)
    who = identity(campaign.commits.author)
    with owned(campaign.work), Ledger.open(campaign.work) as ledger:
        places = Places(campaign.work)
        places.sweep()
        work = _Work(campaign, ledger, places, progress, who, stages)
        try:
            work.prepare(only, again)
            if work.todo:
                work.loop(*executors(places, len(work.todo)))
        except OSError as error:
            if is_full(error):
                raise Exhausted(f"{campaign.work}: no space left on the device") from None
            raise
        shutil.rmtree(places.scratch, ignore_errors=True)
        return work.summary


@dataclass(eq=False)
class _Work:
    """One run of a campaign."""

    _campaign: Campaign
    _ledger: Ledger
    _places: Places
    _progress: Progress
    _who: tuple[str, str]
    _stages: Collection[str]
    summary: Summary = field(default_factory=Summary)
    todo: deque[int] = field(default_factory=deque)
    _repositories: dict[int, Repository] = field(default_factory=dict)
    _ready: deque[int] = field(default_factory=deque)
    _begun: set[int] = field(default_factory=set)
    _spent: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def prepare(self, only: Collection[str], again: Callable[[Row], str]) -> None:
        """Find out what there is to do."""
        self._repositories, gone = register(self._ledger, self._campaign)
        for pattern in self._campaign.idle:
            self._progress.say(f"no repository fits {pattern}")
        for slug in gone:
            self._progress.say(f"{slug}: the campaign does not name it any more; what was done with it stays")
        numbers = chosen(self._ledger, only)
        old: list[Row] = []
        # One row at a time: of a hundred thousand, what stands in all of them would be most of the memory.
        for row in map(self._ledger.repository, numbers):
            if row["attempt"]:
                self._adopt(row)
                row = self._ledger.repository(row["id"])
            if self._lost(row):
                self._progress.say(f"{row['slug']}: its results are not in the work folder; it is done again")
                self._plan_again(row, "its results were gone")
            elif self._is_old(row):
                old.append(row)
        for number in self._moved(old):
            self.summary.moved += 1
            self._plan_again(self._ledger.repository(number), "moved upstream")
        finished = 0
        interrupted: list[tuple[int, int]] = []
        for number in numbers:
            row = self._ledger.repository(number)
            reason = again(row)
            if reason and row["state"] not in ("planned", "skipped"):
                if reason == OTHER_TOOL:
                    self._rewrite_again(row)
                else:
                    self._plan_again(row, reason)
                row = self._ledger.repository(number)
            stage = self._next(row)
            if stage and row["interruptions"]:
                interrupted.append((row["interruptions"], number))
            elif stage == "clone":
                self.todo.append(number)
            elif stage:
                # What is begun is brought to its end first.
                self.todo.appendleft(number)
            else:
                finished += 1
                if row["state"] in ("failed", "refused"):
                    self.summary.standing[row["state"]] = self.summary.standing.get(row["state"], 0) + 1
        # Last of all: where runs end sooner than such a repository does, or by it, the others are done all the same.
        self.todo.extend(number for _, number in sorted(interrupted))
        self._progress.begin(len(numbers), finished)

    def loop(self, cloner: Executor, worker: Executor) -> None:
        """Keep the executors busy until nothing is left."""
        pending = {id(cloner): 0, id(worker): 0}
        try:
            while self.todo or self._ready or any(pending.values()):
                while self._ready and pending[id(worker)] < worker.capacity:
                    self._submit(self._ready.popleft(), worker)
                    pending[id(worker)] += 1
                # Clones that nobody works on yet only fill the disk.
                while self.todo and pending[id(cloner)] < cloner.capacity and len(self._ready) < 2 * worker.capacity:
                    number = self.todo.popleft()
                    if self._next(self._ledger.repository(number)) != "clone":
                        self._ready.append(number)
                        break
                    self._submit(number, cloner)
                    pending[id(cloner)] += 1
                self._look([*worker.doing(), *(cloner.doing() if cloner is not worker else ())])
                for executor in (worker, cloner) if cloner is not worker else (worker,):
                    if not pending[id(executor)]:
                        continue
                    for outcome in executor.wait(0.1 if cloner is not worker else 0.25):
                        pending[id(executor)] -= 1
                        self._settle(outcome)
        finally:
            for executor in (worker, cloner) if cloner is not worker else (worker,):
                executor.close()

    def _look(self, doing: Sequence[Doing]) -> None:
        """Have the ledger, and whoever watches, know what workers do; the rest of what is submitted waits for them."""
        begun = {one.repository for one in doing} - self._begun
        if begun:
            self._begun |= begun
            self._ledger.work_began(begun)
        self._progress.look(doing)

    # One repository.

    def _next(self, row: Row) -> str:
        stage = next_stage(row, self._repositories[row["id"]])
        return stage if stage in self._stages else ""

    def _submit(self, number: int, executor: Executor) -> None:
        row = self._ledger.repository(number)
        name = uuid.uuid4().hex
        job = self._job(row, name)
        self._begun.discard(number)
        self._ledger.begin(number, name)
        executor.submit(job)

    def _job(self, row: Row, name: str) -> Job:
        campaign, repository = self._campaign, self._repositories[row["id"]]
        stage = self._next(row)
        entries = _entries(row) if stage == "verify" else ()
        return Job(
            id=name,
            repository=row["id"],
            slug=row["slug"],
            stage=stage,
            folder=str(self._places.scratch / name),
            base=row["base"],
            source=repository.source if stage == "clone" else None,
            ref=repository.ref,
            clone="" if stage == "clone" else str(self._places.clone(row["slug"])),
            runs=repository.runs,
            options=campaign.options,
            exclude=campaign.exclude,
            commits=campaign.commits,
            limits=campaign.limits,
            artifacts=campaign.artifacts,
            require=campaign.publishing.require,
            quote_output=campaign.publishing.quote_output,
            identity=self._who,
            when=self._ledger.created,
            fingerprint=campaign.fingerprint(repository),
            entries=entries,
            steps=campaign.steps,
            environments=str(self._places.environments),
        )

    def _settle(self, outcome: Outcome) -> None:
        job = outcome.job
        attempt = Path(job.folder)
        log = self._places.keep_log(job.slug, job.stage, attempt)
        self._spent[job.repository] += outcome.seconds
        if outcome.status == "exhausted":
            raise Exhausted(f"{job.slug}: {outcome.reason}")
        if outcome.status == "died":
            deaths = self._ledger.died(job.repository)
            if deaths < DEATHS:
                self._progress.say(f"{job.slug}: {outcome.reason}; it is tried once more")
                (self.todo if job.stage == "clone" else self._ready).append(job.repository)
                shutil.rmtree(attempt, ignore_errors=True)
                return
            reason = f"{outcome.reason}, and so was another that tried"
            self._ledger.change(job.repository, "failed", stage=job.stage, reason=reason, log=log)
        elif outcome.status == "done" and job.stage == "rewrite" and self._as_before(job, outcome.facts):
            self._ledger.restore(job.repository, outcome.facts["tool"])
            state = self._ledger.repository(job.repository)["state"]
            if state == "unchanged" or (state == "published" and not self._campaign.publishing.keep):
                self._places.drop(job.slug, "clone")
        elif outcome.status == "done":
            self._places.take(job.slug, job.stage, attempt)
            self._advance(self._ledger.repository(job.repository), job.stage, log)
        else:
            self._ledger.change(job.repository, outcome.status, stage=job.stage, reason=outcome.reason, log=log)
        shutil.rmtree(attempt, ignore_errors=True)
        self._go_on(job.repository)

    def _go_on(self, number: int) -> None:
        row = self._ledger.repository(number)
        if self._next(row):
            self._ready.append(number)
            return
        self.summary.settled[row["state"]] = self.summary.settled.get(row["state"], 0) + 1
        self._progress.settled(row, self._spent.pop(number, 0.0))

    def _advance(self, row: Row, stage: str, log: str) -> None:
        """Tell the ledger of a result that is in its place."""
        slug = row["slug"]
        facts = read_facts(self._places.of(slug, stage))
        assert facts is not None, "only what is whole is moved into place"
        state, reason = _STATE_AFTER[stage], ""
        bundle = self._places.of(slug, stage) / BUNDLE
        if stage == "rewrite":
            # What was verified of an earlier rewrite is nothing to this one.
            self._places.drop(slug, "verify")
        if stage == "rewrite" and not facts["head"]:
            # Nothing will be published of it, and of a hundred thousand most are like this.
            self._places.drop(slug, "clone")
            state = "unchanged"
        elif bundle.is_file() and facts.get("verification", "kept") != "not judged":
            clone = self._places.clone(slug)
            local = Git(sources.of_path(clone))
            fetch_bundle(local, clone, self._campaign.commits.branch, bundle)
        if facts.get("verification") == "not judged":
            # The branch of the stage before stands, unverified.
            state, facts = "rewritten", {**facts, "head": row["head"], "commits": row["commits"]}
            for name in ("findings", "changed"):
                facts.pop(name, None)
        elif facts.get("verification") == PARTLY:
            state = "rewritten"
        elif facts.get("verification") == "broken":
            state, reason = "refused", f"a promise was broken: {facts['why']}"
        self._ledger.change(row["id"], state, stage=stage, reason=reason, log=log, facts=facts)

    # What earlier runs left.

    def _adopt(self, row: Row) -> None:
        """Take over a result that is in its place, of an attempt that the ledger was not told the end of."""
        stage = next_stage(row, self._repositories[row["id"]])
        facts = read_facts(self._places.of(row["slug"], stage)) if stage else None
        if facts is not None and facts.get("attempt") == row["attempt"]:
            self._advance(row, stage, self._places.log(row["slug"], stage).relative_to(self._places.work).as_posix())
        else:
            # Also where it seems that it only waited: what ends a run at once is not seen to begin.
            self._ledger.note(row["id"], attempt="", interruptions=row["interruptions"] + 1)

    def _lost(self, row: Row) -> bool:
        """Whether results that the ledger tells of are not where they were put."""
        stage = _LEFT_BY.get(row["state"])
        if stage is None:
            return False
        kept = self._places.of(row["slug"], stage) / FACTS
        return not (kept.is_file() and (row["state"] == "unchanged" or self._places.clone(row["slug"]).is_dir()))

    def _rewrite_again(self, row: Row) -> None:
        there = self._places.clone(row["slug"]).is_dir()
        self._ledger.rewrite_again(row["id"], "cloned" if there else "planned", OTHER_TOOL)

    def _as_before(self, job: Job, facts: Mapping[str, Any]) -> bool:
        """Whether a repository that is rewritten by another codemod comes out as it did."""
        row = self._ledger.repository(job.repository)
        before = json.loads(row["before"] or "{}")
        old = read_facts(self._places.of(job.slug, "rewrite"))
        if not before or old is None or old["base"] != facts["base"] or facts["fingerprint"] != before["fingerprint"]:
            return False
        return bool(facts["tree"] == before["tree"] and facts["findings"] == old["findings"])

    def _plan_again(self, row: Row, reason: str) -> None:
        # The ledger first: a result without an entry is made again, an entry without its result would be a lie.
        self._ledger.plan_again(row["id"], reason)
        self._places.forget(row["slug"])

    def _is_old(self, row: Row) -> bool:
        """Whether a repository, not published yet, was cloned so long ago that its remote is asked."""
        before = time.time() - self._campaign.limits.look_again
        return bool(row["base"] and row["state"] != "published" and (row["cloned_at"] or 0) < before)

    def _moved(self, old: Sequence[Row]) -> list[int]:
        """Those of ``old`` whose upstream has other commits by now."""
        from codemods.batch.requests.upstream import look

        if old:
            self._progress.say(f"asking the remotes of {len(old)} repositories whether they have moved")
        found = look([(row, self._repositories[row["id"]]) for row in old])
        moved = []
        for row in old:
            answer = found[row["id"]]
            if answer.commit:
                self._ledger.note(row["id"], upstream=answer.commit)
                if answer.moved(row["base"]):
                    moved.append(row["id"])
        return moved


def _entries(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple((command, folder) for command, folder, _ in json.loads(row["entries"]))
