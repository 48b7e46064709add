"""What became of pull requests: their forge is asked by its own client, and the ledger told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator

from codemods.batch.campaign.settings import Campaign
from codemods.batch.errors import Failed
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.ledger.lock import owned
from codemods.batch.pending import chosen
from codemods.batch.requests import pull_request
from codemods.batch.requests.standing import MERGED, Standing, standing_of, summary
from codemods.batch.requests.told import said_of, tell_standing

Say = Callable[[str], None]
#: So much of a comment is said; the rest stands in the ledger, and at the forge.
_SHOWN = 200


def follow(campaign: Campaign, say: Say, *, only: Collection[str] = (), comments: bool = False) -> int:
    """Ask where each request of the campaign stands, tell the ledger and say what changed; return how many failed.

    What is merged is not asked for again. With ``comments`` what people wrote of those that are open is said. Raises
    :class:`CampaignError` where nothing was run, or it is at work.
    """
    with opened(campaign) as ledger:
        failures = 0
        for row in requested(ledger, only):
            before = standing_of(row)
            if before is not None and before.state == MERGED:
                continue
            try:
                now = look(campaign, ledger, row)
            except Failed as error:
                failures += 1
                say(f"{row['slug']}: {error}")
                continue
            if now != before:
                say(f"{row['slug']}: {now.text()}: {row['pull_request']}")
            if comments:
                _say_comments(ledger, row, say)
        told = summary(ledger.repositories())
    say(told or "no pull request was opened yet")
    return failures


@contextlib.contextmanager
def opened(campaign: Campaign) -> Iterator[Ledger]:
    """Own a campaign that was run, with its ledger. Raises :class:`CampaignError` where none was, or it is at work."""
    with Ledger.begun(campaign.work, campaign.file):
        pass
    with owned(campaign.work), Ledger.open(campaign.work) as ledger:
        yield ledger


def requested(ledger: Ledger, only: Collection[str] = ()) -> list[Row]:
    """The rows of the repositories named ``only`` (empty: of all) that have a request."""
    wanted = set(chosen(ledger, only))
    return [row for row in ledger.repositories() if row["id"] in wanted and row["pull_request"]]


def look(campaign: Campaign, ledger: Ledger, row: Row) -> Standing:
    """Ask where the request of a repository stands, and tell the ledger. Raises :class:`Failed`."""
    place = pull_request.locate(campaign.publishing.client, row["pull_request"])
    answer = pull_request.ask(place, campaign.work)
    tell_standing(ledger, row, answer)
    return answer.standing


def _say_comments(ledger: Ledger, row: Row, say: Say) -> None:
    for one in said_of(ledger, row["id"]):
        where = f" on {one.path}{f':{one.line}' if one.line else ''}" if one.path else ""
        say(f"    {one.author or 'somebody'}{where}: {' '.join(one.text.split())[:_SHOWN]}")
