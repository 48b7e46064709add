"""What became of pull requests: their forge is asked by its own client, and the ledger told."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from codemods.batch import forges
from codemods.batch.campaign import Campaign
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.ledger import Ledger, Row
from codemods.batch.lock import owned
from codemods.batch.running import chosen

OPEN, MERGED, CLOSED = "open", "merged", "closed"
#: What is asked of gh: https://cli.github.com/manual/gh_pr_view
_FIELDS = "state,isDraft,reviewDecision,statusCheckRollup,comments"
#: The states in which a check is over: https://docs.github.com/en/graphql/reference/enums#checkconclusionstate
_GREEN = frozenset({"SUCCESS", "NEUTRAL", "SKIPPED"})
_WAITING = frozenset({"", "PENDING", "EXPECTED"})
#: And GitLab's: https://docs.gitlab.com/api/pipelines/
_PIPELINES = {"success": "green", "skipped": "green", "failed": "red", "canceled": "red"}


@dataclass(frozen=True)
class Standing:
    """Where a request stands: ``state`` is open, merged or closed; ``checks`` green, red, waiting, or empty for none.

    ``review`` is approved, changes requested, or empty; ``comments`` counts those that people wrote.
    """

    state: str
    draft: bool = False
    checks: str = ""
    review: str = ""
    comments: int = 0

    def text(self) -> str:
        """It in a phrase: ``open, checks red, 2 comments``."""
        parts = [f"{'draft, ' if self.draft and self.state == OPEN else ''}{self.state}"]
        if self.state == OPEN:
            parts += [f"checks {self.checks}"] if self.checks else []
            parts += [self.review] if self.review else []
        if self.comments:
            parts.append(f"{self.comments} comment{'s' * (self.comments != 1)}")
        return ", ".join(parts)


def follow(campaign: Campaign, say: Callable[[str], None], *, only: Collection[str] = ()) -> int:
    """Ask where each request of the campaign stands, tell the ledger and say what changed; return how many failed.

    What is merged is not asked for again. Raises :class:`CampaignError` where nothing was run, or it is at work.
    """
    if not (campaign.work / "ledger.sqlite").is_file():
        raise CampaignError(f"{campaign.work}: nothing was done yet; codemod batch run {campaign.file.name}")
    failures = 0
    with owned(campaign.work), Ledger.open(campaign.work) as ledger:
        wanted = set(chosen(ledger, only))
        rows = [row for row in ledger.repositories() if row["id"] in wanted and row["pull_request"]]
        for row in rows:
            before = standing_of(row)
            if before is not None and before.state == MERGED:
                continue
            try:
                now = _ask(campaign, row["pull_request"])
            except Failed as error:
                failures += 1
                say(f"{row['slug']}: {error}")
                continue
            ledger.note(row["id"], request=json.dumps(asdict(now)), followed_at=time.time())
            if now != before:
                ledger.tell_request(row["id"], before.text() if before is not None else "", now.text())
                say(f"{row['slug']}: {now.text()}: {row['pull_request']}")
        told = summary(ledger.repositories())
    say(told or "no pull request was opened yet")
    return failures


def standing_of(row: Row) -> Standing | None:
    """Where the request of a repository stood when it was asked last; None where it never was."""
    return Standing(**json.loads(row["request"])) if row["request"] else None


def summary(rows: Iterable[Row]) -> str:
    """How many requests stand where, in one line; empty where there are none."""
    opened = [row for row in rows if row["pull_request"]]
    standings = [standing_of(row) for row in opened]
    known = [one for one in standings if one is not None]
    states = Counter(one.state for one in known)
    parts = [f"{states[state]} {state}" for state in (MERGED, OPEN, CLOSED) if states[state]]
    waiting = [one for one in known if one.state == OPEN]
    red, asked = (
        sum(one.checks == "red" for one in waiting),
        sum(bool(one.review == "changes requested") for one in waiting),
    )
    parts += [f"{red} with red checks"] if red else []
    parts += [f"{asked} with changes requested"] if asked else []
    parts += [f"{len(opened) - len(known)} not asked yet"] if len(known) < len(opened) else []
    return f"pull requests: {', '.join(parts)}" if parts else ""


def _ask(campaign: Campaign, address: str) -> Standing:
    parts = urlsplit(address)
    client = forges.client_for(campaign.publishing.client, parts.hostname or "")
    if not client:
        raise Failed(f"{address}: no client for {parts.hostname or 'it'}: install gh or glab, or name one by client")
    if client == "gh":
        return of_github(_answer(["gh", "pr", "view", address, "--json", _FIELDS], campaign))
    match = re.fullmatch(r"/(?P<path>.+?)(?:/-)?/merge_requests/(?P<number>\d+)/?", parts.path)
    if match is None:
        raise Failed(f"{address}: no address of a merge request")
    place = f"{parts.scheme}://{parts.netloc}/{match['path']}"
    return of_gitlab(_answer(["glab", "mr", "view", match["number"], "--repo", place, "--output", "json"], campaign))


def _answer(command: list[str], campaign: Campaign) -> Mapping[str, Any]:
    text = forges.run_client(command, campaign.work)
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Failed(f"{command[0]} answered {text.strip()[:100]!r}")
    return answer


def of_github(answer: Mapping[str, Any]) -> Standing:
    """Read what ``gh pr view --json`` says. Raises :class:`Failed` for a state that is none."""
    state = {"OPEN": OPEN, "MERGED": MERGED, "CLOSED": CLOSED}.get(str(answer.get("state")))
    if state is None:
        raise Failed(f"gh told a state that is none: {answer.get('state')!r}")
    ends = []
    for check in answer.get("statusCheckRollup") or ():
        # A status has a state, the run of a check a conclusion once it is over.
        over = check.get("state") or (check.get("conclusion") if check.get("status") == "COMPLETED" else "") or ""
        ends.append("waiting" if over in _WAITING else "green" if over in _GREEN else "red")
    review = {"APPROVED": "approved", "CHANGES_REQUESTED": "changes requested"}.get(
        str(answer.get("reviewDecision")), ""
    )
    return Standing(state, bool(answer.get("isDraft")), _worst(ends), review, len(answer.get("comments") or ()))


def of_gitlab(answer: Mapping[str, Any]) -> Standing:
    """Read what ``glab mr view --output json`` says. Raises :class:`Failed` for a state that is none."""
    state = {"opened": OPEN, "locked": OPEN, "merged": MERGED, "closed": CLOSED}.get(str(answer.get("state")))
    if state is None:
        raise Failed(f"glab told a state that is none: {answer.get('state')!r}")
    pipeline = answer.get("head_pipeline") or answer.get("pipeline") or {}
    checks = _PIPELINES.get(str(pipeline.get("status")), "waiting") if pipeline else ""
    review = "changes requested" if answer.get("detailed_merge_status") == "requested_changes" else ""
    return Standing(state, bool(answer.get("draft")), checks, review, int(answer.get("user_notes_count") or 0))


def _worst(ends: list[str]) -> str:
    return next((end for end in ("red", "waiting", "green") if end in ends), "")
