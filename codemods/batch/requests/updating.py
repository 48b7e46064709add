"""Branches that are published and out of date: redone on what is upstream now, and pushed over our own.

A branch is not rebased as it is: what was proven was proven of the code that it was cut from. It is rewritten and
verified anew, from the same settings, so that where nothing of ours changes the result is a rebase, and is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from codemods.batch import forges
from codemods.batch.campaign.settings import Campaign, Repository
from codemods.batch.errors import Failed, Refused
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.pending import OTHER_TOOL, chosen
from codemods.batch.requests.following import Say, look, opened
from codemods.batch.requests.publishing import Target, is_finished, results_gone, target_of
from codemods.batch.requests.standing import OPEN
from codemods.batch.requests.told import tell_deed
from codemods.batch.requests.upstream import Answer, our_branch, require_ours
from codemods.batch.requests.upstream import look as look_upstream
from codemods.batch.tool import digest

#: The reason of a branch that an earlier update has begun to redo.
GOES_ON = "goes on"
_UNDER_WAY = ("planned", "cloned", "rewritten", "verified")


@dataclass
class Outdated:
    """The branches to be redone, and why each; how many could not be looked at, or are left to others."""

    reasons: dict[str, str] = field(default_factory=dict)
    failures: int = 0

    def again(self, row: Row) -> str:
        """Why ``run`` is to do a repository again; empty if it goes on as it is."""
        reason = self.reasons.get(row["slug"], "")
        return "" if reason == GOES_ON else reason


def outdated(campaign: Campaign, say: Say, *, only: Collection[str] = ()) -> Outdated:
    """Look which branches that were pushed are out of date, and are still ours and wanted; say of each why.

    The remotes are asked, and the forges where requests stand; the ledger is told. A branch to which somebody else has
    pushed counts as a failure: it is left as it is. Raises :class:`CampaignError` where nothing was run, or the
    campaign is at work.
    """
    found = Outdated()
    by_key = campaign.by_key
    with opened(campaign) as ledger:
        wanted = set(chosen(ledger, only))
        rows = [row for row in ledger.repositories() if row["id"] in wanted and row["pushed"] and row["key"] in by_key]
        rows = [row for row in rows if row["state"] in ("published", *_UNDER_WAY)]
        upstream = look_upstream([(row, by_key[row["key"]]) for row in rows])
        for row in rows:
            repository, answer = by_key[row["key"]], upstream[row["id"]]
            try:
                if not answer.commit:
                    raise Failed(answer.trouble)
                ledger.note(row["id"], upstream=answer.commit)
                target = target_of(campaign, row, repository, ledger)
                reason = _reason(campaign, repository, row, answer, target)
                if not reason or not _is_wanted(campaign, ledger, row):
                    continue
                branch = campaign.commits.branch
                there, pushed = our_branch(ledger, row, target.remote, branch)
                require_ours(branch, pushed, there)
            except (Failed, Refused) as error:
                found.failures += 1
                say(f"{row['slug']}: not updated: {error}")
                continue
            found.reasons[row["slug"]] = reason
            say(f"{row['slug']}: to be redone: {reason}")
    return found


def _reason(campaign: Campaign, repository: Repository, row: Row, answer: Answer, target: Target) -> str:
    """Why a branch is to be redone; empty if it is not."""
    if row["state"] != "published":
        return GOES_ON
    if row["fingerprint"] != campaign.fingerprint(repository):
        return "the campaign's settings changed"
    client = forges.client_for(campaign.publishing.client, forges.place_of(repository.source)[0])
    if not is_finished(row, client) and results_gone(target):
        return "the text of its request is gone"
    return answer.moved(row["base"]) or (OTHER_TOOL if row["tool"] != digest() else "")


def _is_wanted(campaign: Campaign, ledger: Ledger, row: Row) -> bool:
    """Whether the request of a branch is open, or it has none: what is merged or closed is over."""
    return not row["pull_request"] or look(campaign, ledger, row).state == OPEN


def update(
    campaign: Campaign,
    found: Outdated,
    run: Callable[[Callable[[Row], str], list[str]], object],
    push: Callable[[list[str]], int],
    say: Say,
) -> int:
    """Redo the branches that :func:`outdated` has found and push them; return how many could not be.

    ``run`` does the campaign's stages, ``push`` publishes; both for the repositories that they are given by name.
    """
    slugs = list(found.reasons)
    run(found.again, slugs)
    ready, failures = [], 0
    with opened(campaign) as ledger:
        for row in (ledger.repository(number) for number in chosen(ledger, slugs)):
            if row["state"] == "unchanged":
                # Somebody has mended it, or a rule has learned better: nothing is pushed over what was proposed.
                say(f"{row['slug']}: nothing is left to change: its request can go: codemod batch close --obsolete")
            elif row["state"] == "published" and row["pushed"] == row["head"]:
                say(f"{row['slug']}: comes out as it was")
            elif row["state"] in ("failed", "refused"):
                failures += 1
                say(f"{row['slug']}: {row['state']}, its branch stays as it was: {row['reason']}")
            else:
                ready.append(row["slug"])
            tell_deed(ledger, row, "update", row["state"], found.reasons[row["slug"]])
    return failures + (push(ready) if ready else 0)
