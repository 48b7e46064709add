"""The commands that publish branches and look after their pull requests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from codemods.cli._terminal import FINE, FOUND, require_choice
from codemods.cli.batch._options import (
    DryRun,
    File,
    Jobs,
    Most,
    Now,
    Only,
    Quiet,
    RequestCommand,
    Scheduler,
    Yes,
    app,
    say,
)
from codemods.cli.batch.campaigns import run_stages
from codemods.terms.counting import plain_count_text
from codemods.terms.errors import UserError


@app.command("publish", cls=RequestCommand)
def publish(
    file: File,
    dry_run: DryRun = False,
    only: Only = None,
    most: Most = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep clones whose branch is published.")] = False,
    at_once: Now = False,
) -> int:
    """Push branches and open draft pull requests, one repository at a time.

    Exit status: 0, or 1 where one could not be published.
    """
    from codemods.batch.campaign.settings import read
    from codemods.batch.requests.publishing import publish as publish_campaign

    failures = publish_campaign(
        read(file), say, dry_run=dry_run, only=only or (), most=most, keep=keep, at_once=at_once
    )
    return FOUND if failures else FINE


@app.command("follow", cls=RequestCommand)
def follow(
    file: File,
    only: Only = None,
    comments: Annotated[bool, typer.Option("--comments", help="Print what people wrote, too.")] = False,
) -> int:
    """Ask the forges what became of the pull requests: merged, open, closed, their checks, reviews and comments.

    Exit status: 0, or 1 where one could not be asked for.
    """
    from codemods.batch.campaign.settings import read
    from codemods.batch.requests.following import follow as follow_campaign

    failures = follow_campaign(read(file), say, only=only or (), comments=comments)
    return FOUND if failures else FINE


@app.command("update", cls=RequestCommand)
def update(
    file: File,
    only: Only = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    at_once: Now = False,
    quiet: Quiet = False,
) -> int:
    """Redo published branches whose upstream has moved, or whose rules or settings changed, and push them again.

    Exit status: 0, or 1 where one could not be updated, or is left because somebody else has pushed to it.
    """
    from codemods.batch.campaign.settings import read
    from codemods.batch.requests.publishing import publish as publish_campaign
    from codemods.batch.requests.updating import outdated
    from codemods.batch.requests.updating import update as update_campaign

    campaign = read(file)
    found = outdated(campaign, say, only=only or ())
    many = plain_count_text(len(found.reasons), "branch")
    if not found.reasons:
        say("nothing to update")
    elif dry_run or not _confirm(yes)(f"redo {many} and push over what this campaign has pushed?"):
        say(f"{many} to update; nothing was done")
    else:
        failures = update_campaign(
            campaign,
            found,
            lambda again, slugs: run_stages(campaign, jobs, scheduler, slugs, quiet, again),
            lambda slugs: publish_campaign(campaign, say, only=slugs, at_once=at_once),
            say,
        )
        return FOUND if failures or found.failures else FINE
    return FOUND if found.failures else FINE


@app.command("close", cls=RequestCommand)
def close(
    file: File,
    only: Only = None,
    obsolete: Annotated[
        bool,
        typer.Option(
            "--obsolete", help="Take those where nothing is left to change, and those that the campaign skips."
        ),
    ] = False,
    red: Annotated[bool, typer.Option("--red", help="Take those with red checks.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Take every one that is open.")] = False,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="Write this on each.")] = "",
    delete_branches: Annotated[
        bool, typer.Option("--delete-branches", help="Remove their branches where nobody else has pushed to them.")
    ] = False,
    most: Most = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Close pull requests in bulk.

    Exit status: 0, or 1 where one could not be closed.
    """
    from codemods.batch.campaign.settings import read
    from codemods.batch.requests.bulk import Manner
    from codemods.batch.requests.bulk import close as close_requests

    if not (only or obsolete or red or everything):
        raise UserError("say which to close: --only NAME, --obsolete, --red or --all")
    failures = close_requests(
        read(file),
        say,
        Manner(_confirm(yes), dry_run, most),
        only=only or (),
        obsolete=obsolete,
        red=red,
        comment=comment,
        delete_branches=delete_branches,
    )
    return FOUND if failures else FINE


@app.command("merge", cls=RequestCommand)
def merge(
    file: File,
    only: Only = None,
    method: Annotated[
        str, typer.Option("--method", metavar="merge|squash|rebase", help="Merge in this way.")
    ] = "merge",
    approved: Annotated[bool, typer.Option("--approved", help="Take only those that somebody approved.")] = False,
    drafts: Annotated[bool, typer.Option("--drafts", help="Take drafts too, and make them ready.")] = False,
    most: Most = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Merge pull requests in bulk: those with green checks to which nobody else has pushed.

    Exit status: 0, or 1 where one could not be merged.
    """
    from codemods.batch.campaign.settings import read
    from codemods.batch.requests.bulk import Manner
    from codemods.batch.requests.bulk import merge as merge_requests
    from codemods.batch.requests.pull_request import METHODS

    require_choice("--method", method, METHODS)
    manner = Manner(_confirm(yes), dry_run, most)
    failures = merge_requests(read(file), say, manner, only=only or (), method=method, approved=approved, drafts=drafts)
    return FOUND if failures else FINE


def _confirm(yes: bool) -> Callable[[str], bool]:
    """Ask on a terminal, unless ``yes``. Raises :class:`UserError` where there is nobody to ask."""

    def confirm(question: str) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise UserError(f"{question} nobody is there to answer; pass --yes")
        return typer.confirm(question)

    return confirm
