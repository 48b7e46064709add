"""The numbers of a fleet report, as the ledger has them."""

from __future__ import annotations

import shlex
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.batch.campaign.settings import Campaign
from codemods.batch.fleet.burndown import Day, days
from codemods.batch.ledger.ledger import STATES, Ledger, Row
from codemods.batch.progress import NO_SCRIPT, outcome
from codemods.batch.requests.standing import summary


@dataclass(frozen=True)
class Saving:
    """One verified command of one repository: the same quantity before and after, None where it was not measured."""

    slug: str
    command: str
    nodes: tuple[int | None, int | None]
    growth: tuple[float | None, float | None]
    peak: tuple[int | None, int | None]
    seconds: tuple[float | None, float | None]
    error: str
    ended: str

    @property
    def told(self) -> str:
        """How the original ended: its error, ``ran``, or what ended both (``timeout``)."""
        return self.error or ("ran" if self.ended == "ok" else self.ended)

    @property
    def factor(self) -> float:
        """How many times fewer graph nodes were alive afterwards; 1.0 where that says nothing."""
        before, after = self.nodes
        return before / max(after, 1) if before and after is not None else 1.0

    @property
    def label(self) -> str:
        """The repository without its owner, and the script: what a row of a chart is called."""
        name = self.slug.rpartition("+")[2]
        name = name if len(name) <= 20 else name[:19] + "…"
        script = next((word for word in shlex.split(self.command) if word.endswith((".py", ".ipynb"))), "")
        return f"{name} · {script.rpartition('/')[2]}" if script else name

    @property
    def pace(self) -> float | None:
        """The time of a step now as a share of the time before; None where one was not measured."""
        before, after = self.seconds
        return after / before if before and after is not None else None


@dataclass(frozen=True)
class Fleet:
    """A campaign's outcome. ``repositories`` are rows of the view ``by_repository`` with ``outcome``, a phrase.

    ``rules`` are rows of ``by_rule`` with ``unproven``: findings that were left only because no run kept the rewrite.
    ``savings`` begin with what was repaired, then come those that saved most.
    """

    name: str
    work: Path
    at: str
    states: dict[str, int]
    repositories: list[Row]
    rules: list[Row]
    verdicts: dict[str, int]
    savings: list[Saving]
    reasons: list[tuple[str, str, str, int]]
    seconds: dict[str, float]
    files: int
    lines: int
    requests: str
    """How many pull requests stand where; empty where there are none."""
    days: list[Day]
    """What was left of them from day to day."""

    @property
    def changed(self) -> int:
        """Repositories with something to change."""
        return sum(bool(row["changed"]) for row in self.repositories)

    @property
    def fixed(self) -> int:
        """Findings that the branches fix."""
        return sum(row["fixed"] for row in self.repositories)

    @property
    def held_back(self) -> int:
        """Those of them in repositories that are refused, as where a promise was broken."""
        return sum(row["fixed"] for row in self.repositories if row["state"] == "refused")

    @property
    def findings(self) -> int:
        """Findings there were."""
        return sum(row["findings"] for row in self.repositories)

    @property
    def proven(self) -> int:
        """Those of the fixed findings whose rewrite a run has kept."""
        return sum(row["proven"] for row in self.repositories)

    @property
    def verified(self) -> int:
        """Repositories with changes whose whole branch a run has kept."""
        return sum(row["verification"] == "kept" for row in self.repositories)

    @property
    def repaired(self) -> list[Saving]:
        """Commands that stopped with an error before and run now."""
        return [saving for saving in self.savings if saving.error and saving.ended == "ok"]

    @property
    def median_factor(self) -> float | None:
        """The median of how many times fewer graph nodes were alive, over commands with fewer; None without any."""
        factors = [saving.factor for saving in self.savings if saving.factor > 1.05]
        return statistics.median(factors) if factors else None

    @property
    def median_pace(self) -> float | None:
        """The median of :attr:`Saving.pace`; None where no step was timed before and after."""
        paces = [saving.pace for saving in self.savings if saving.pace is not None]
        return statistics.median(paces) if paces else None


def read(campaign: Campaign) -> Fleet:
    """Read the outcome of ``campaign`` off its ledger, which may be at work. Raises :class:`CampaignError`."""
    with Ledger.begun(campaign.work, campaign.file) as ledger:
        # What the view lacks: a row of a repository has forty columns.
        statement = "SELECT slug, entries, request, pull_request FROM repositories WHERE listed"
        rows = {row["slug"]: row for row in ledger.each(statement)}
        repositories = ledger.query("SELECT * FROM by_repository ORDER BY slug COLLATE NOCASE")
        for row in repositories:
            row["outcome"] = outcome({**row, **rows[row["slug"]]})
        states = Counter(row["state"] for row in repositories)
        unproven = {
            row["rule"]: row["n"]
            for row in ledger.query(
                "SELECT f.rule, count(*) AS n FROM findings f JOIN repositories r ON r.id = f.repository "
                "WHERE r.listed AND f.fate = 'left' AND f.obstacle IN "
                "('verify: partly reached', 'verify: not reached', 'verify: not judged') GROUP BY f.rule"
            )
        }
        rules = ledger.query("SELECT * FROM by_rule ORDER BY findings DESC, rule")
        savings = [_saving(row) for row in ledger.query("SELECT * FROM saved ORDER BY slug, command")]
        return Fleet(
            name=campaign.name,
            work=campaign.work,
            at=time.strftime("%Y-%m-%d %H:%M"),
            states={state: states[state] for state in STATES if states[state]},
            repositories=repositories,
            # A ledger that was begun before there was this verdict has none.
            rules=[{"partly_reached": 0, **row, "unproven": unproven.get(row["rule"], 0)} for row in rules],
            verdicts={
                row["verdict"]: row["n"]
                for row in ledger.query("SELECT verdict, count(*) AS n FROM judged GROUP BY verdict ORDER BY n DESC")
            },
            savings=sorted(
                # Scripts that could not be run to any purpose saved nothing, and stand among the reasons.
                (saving for saving in savings if saving.nodes != (None, None)),
                key=lambda saving: (not (saving.error and saving.ended == "ok"), -saving.factor),
            ),
            reasons=_reasons(repositories, rows),
            seconds={
                stage: sum(row[f"{stage}_seconds"] or 0 for row in repositories)
                for stage in ("clone", "rewrite", "verify")
            },
            requests=summary(rows.values()),
            days=days(ledger, sum(bool(row["changed"]) for row in repositories)),
            files=sum(row["files"] or 0 for row in repositories),
            lines=sum(row["lines"] or 0 for row in repositories),
        )


def _saving(row: dict[str, Any]) -> Saving:
    return Saving(
        row["slug"],
        row["command"],
        (row["nodes_before"], row["nodes_after"]),
        (row["growth_before"], row["growth_after"]),
        (row["bytes_before"], row["bytes_after"]),
        (row["seconds_before"], row["seconds_after"]),
        row["error_before"],
        row["outcome_after"],
    )


def _reasons(repositories: list[Row], rows: dict[str, Row]) -> list[tuple[str, str, str, int]]:
    """Why repositories stopped: state, stage, the reason without details of a single one, and how many."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for row in repositories:
        if row["state"] in ("failed", "refused"):
            counted[row["state"], row["stage"], _general(row["reason"])] += 1
        elif row["verification"] == "not judged":
            # One sentence a script; scripts of a repository mostly fail alike.
            for why in dict.fromkeys(map(_general, row["why"].split("; "))):
                counted["not verified", "verify", why] += 1
        elif row["changed"] and rows[row["slug"]]["entries"] == "[]":
            counted["not verified", "verify", NO_SCRIPT] += 1
    return [(*key, count) for key, count in counted.most_common()]


def _general(reason: str) -> str:
    import re

    text = re.sub(r"'[^']*'|\"[^\"]*\"|\S*/\S*", "…", reason)
    return re.sub(r"\d+", "N", text)[:160]
