"""Requests closed and merged in bulk: which, asked of the forge at that moment, and done one after the other."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from codemods.batch.campaign.settings import Campaign
from codemods.batch.errors import CampaignError, Exhausted, Failed, Refused
from codemods.batch.git import Git
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.requests import pull_request
from codemods.batch.requests.following import Say, look, opened, requested
from codemods.batch.requests.publishing import target_of
from codemods.batch.requests.secrecy import require_nothing_secret
from codemods.batch.requests.standing import CHANGES, CLOSED, MERGED, OPEN, Standing
from codemods.batch.requests.told import tell_deed
from codemods.batch.requests.upstream import our_branch, require_ours
from codemods.terms.counting import plain_count_text

Choice = Callable[[Row, Standing], str]


@dataclass(frozen=True)
class Manner:
    """How it is done: ``confirm`` is asked once with the whole in a sentence; nothing is done unless it says yes."""

    confirm: Callable[[str], bool]
    dry_run: bool = False
    most: int | None = None
    sleep: Callable[[float], None] = time.sleep


class _Chosen(NamedTuple):
    row: Row
    standing: Standing


def close(
    campaign: Campaign,
    say: Say,
    manner: Manner,
    *,
    only: Collection[str] = (),
    obsolete: bool = False,
    red: bool = False,
    comment: str = "",
    delete_branches: bool = False,
) -> int:
    """Close requests that are open, those that are ``obsolete`` or have ``red`` checks where one is asked for.

    Obsolete are those of repositories in which nothing is left to change, that are left out by now, or that the
    campaign does not name any more. With ``delete_branches`` their branches are removed, if nobody else has pushed to
    them. Return how many could not be closed, each of which was said. Raises :class:`CampaignError` where ``comment``
    holds a secret.
    """
    names = {one.source.key for one in campaign.repositories if not one.skip}
    try:
        require_nothing_secret({"the comment": comment}, campaign.runs, (one.source for one in campaign.repositories))
    except Refused as error:
        raise CampaignError(str(error)) from None

    def why_not(row: Row, standing: Standing) -> str:
        gone = row["state"] in ("unchanged", "skipped") or row["key"] not in names
        if (obsolete or red) and not (obsolete and gone) and not (red and standing.checks == "red"):
            return "it is not one of those"
        return ""

    def do(ledger: Ledger, one: _Chosen) -> None:
        place = pull_request.locate(campaign.publishing.client, one.row["pull_request"])
        pull_request.close(place, comment, campaign.work)
        _tell(campaign, ledger, one, "close", CLOSED, say)
        if delete_branches:
            _delete_branch(campaign, ledger, one.row, say)

    with opened(campaign) as ledger:
        rows = _rows(ledger, only, unlisted=obsolete)
        return _in_bulk(campaign, ledger, rows, why_not, do, "close", say, manner)


def merge(
    campaign: Campaign,
    say: Say,
    manner: Manner,
    *,
    only: Collection[str] = (),
    method: str = "merge",
    approved: bool = False,
    drafts: bool = False,
) -> int:
    """Merge requests that are open and ready, at the commit that we pushed and no other.

    Ready are those with green checks (or none), without changes requested or conflicts, ``approved`` where that is
    asked for, and drafts only with ``drafts``. What the forge refuses is not forced. Return how many could not be
    merged, each of which was said.
    """

    def why_not(row: Row, standing: Standing) -> str:
        return _not_ready(row, standing, approved=approved, drafts=drafts)

    def do(ledger: Ledger, one: _Chosen) -> None:
        place = pull_request.locate(campaign.publishing.client, one.row["pull_request"])
        if one.standing.draft:
            pull_request.make_ready(place, campaign.work)
        pull_request.merge(place, method, one.row["pushed"], campaign.work)
        _tell(campaign, ledger, one, "merge", MERGED, say)

    with opened(campaign) as ledger:
        return _in_bulk(campaign, ledger, _rows(ledger, only), why_not, do, "merge", say, manner)


def _not_ready(row: Row, standing: Standing, *, approved: bool, drafts: bool) -> str:
    """Why a request is not to be merged; empty if it is."""
    if row["state"] != "published":
        return f"what was published of it is out of date: it is {row['state']}"
    if standing.head and standing.head != row["pushed"]:
        return f"somebody has pushed to it ({standing.head[:10]}, ours is {row['pushed'][:10]})"
    if standing.draft and not drafts:
        return "it is a draft; --drafts takes these too"
    if standing.checks in ("red", "waiting"):
        return f"its checks are {standing.checks}"
    if standing.review == CHANGES or standing.conflict:
        return CHANGES if standing.review == CHANGES else "it is in conflict; codemod batch update redoes it"
    return "nobody has approved it" if approved and standing.review != "approved" else ""


def _rows(ledger: Ledger, only: Collection[str], *, unlisted: bool = False) -> list[Row]:
    rows = requested(ledger, only)
    if unlisted and not only:
        rows += ledger.query("SELECT * FROM repositories WHERE NOT listed AND pull_request <> '' ORDER BY id")
    return rows


def _in_bulk(
    campaign: Campaign,
    ledger: Ledger,
    rows: Sequence[Row],
    why_not: Choice,
    do: Callable[[Ledger, _Chosen], None],
    verb: str,
    say: Say,
    manner: Manner,
) -> int:
    """Ask where all of ``rows`` stand, say which are taken, have that confirmed, and do it; return the failures."""
    taken: list[_Chosen] = []
    failures = 0
    for row in rows:
        try:
            standing = look(campaign, ledger, row)
        except Failed as error:
            failures += 1
            say(f"{row['slug']}: {error}")
            continue
        why = "" if standing.state == OPEN else f"it is {standing.state}"
        why = why or why_not(row, standing)
        if not why:
            taken.append(_Chosen(row, standing))
            say(f"{row['slug']}: to {verb}: {standing.text()}: {row['pull_request']}")
        elif verb == "merge" and standing.state == OPEN:
            say(f"{row['slug']}: left: {why}")
        if manner.most is not None and len(taken) == manner.most:
            break
    if not taken:
        say(f"nothing to {verb}")
        return failures
    many = plain_count_text(len(taken), "pull request")
    if manner.dry_run or not manner.confirm(f"{verb} {many}?"):
        say(f"{many} to {verb}; nothing was done")
        return failures
    for number, one in enumerate(taken):
        if number:
            manner.sleep(campaign.publishing.throttle)
        try:
            do(ledger, one)
        except (Failed, Refused, Exhausted) as error:
            failures += 1
            tell_deed(ledger, one.row, verb, "refused", str(error))
            say(f"{one.row['slug']}: {error}")
    return failures


def _tell(campaign: Campaign, ledger: Ledger, one: _Chosen, verb: str, wanted: str, say: Say) -> None:
    """Tell the ledger what was done, and of the request what the forge says of it now."""
    tell_deed(ledger, one.row, verb, wanted)
    now = look(campaign, ledger, ledger.repository(one.row["id"]))
    said = "" if now.state == wanted else f"the forge took it, and says: {now.text()}"
    say(f"{one.row['slug']}: {said or now.state}: {one.row['pull_request']}")


def _delete_branch(campaign: Campaign, ledger: Ledger, row: Row, say: Say) -> None:
    """Remove the branch of a request at its remote. Raises :class:`Refused` where somebody else has pushed to it."""
    branch = campaign.commits.branch
    ref = f"refs/heads/{branch}"
    repository = campaign.by_key.get(row["key"])
    if repository is None:
        say(f"{row['slug']}: the campaign does not name it any more: its branch {branch} stays")
        return
    remote = target_of(campaign, row, repository, ledger).remote
    there, pushed = our_branch(ledger, row, remote, branch)
    if not there:
        return
    require_ours(branch, pushed, there)
    git = Git(remote)
    # git pushes only from a repository; that of this one may be removed.
    with tempfile.TemporaryDirectory(dir=campaign.work) as empty:
        git.run("init", "--quiet", "--bare", "--template=", empty, cwd=campaign.work)
        words = ["push", "--quiet", "--no-verify", *git.far("receive-pack"), f"--force-with-lease={ref}:{there}"]
        git.run(*words, "--", remote.address, f":{ref}", cwd=Path(empty))
    say(f"{row['slug']}: {branch} is removed")
