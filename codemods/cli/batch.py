"""``codemod batch``: many repositories, planned, rewritten, proven, reported on and published."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from codemods.cli._terminal import FINE, FOUND, UserError, emit
from codemods.source.diffs import printable

if TYPE_CHECKING:
    from codemods.batch.campaign import Campaign
    from codemods.batch.executors import Executor
    from codemods.batch.ledger import Row
    from codemods.batch.places import Places

app = typer.Typer(help="Rewrite, prove and publish many repositories; docs/batch.md says how.", no_args_is_help=False)

File = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="The campaign file.")]
Format = Annotated[str, typer.Option("--format", metavar="text|json", help="Answer in this format.")]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="NAME", help="Only take this repository, by name; repeatable.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Work on this many repositories at a time; by default one per core."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Rewrite and verify on this Dask cluster, tcp://HOST:PORT."),
]
Most = Annotated[int | None, typer.Option("--most", min=1, metavar="N", help="Take at most this many repositories.")]
Now = Annotated[bool, typer.Option("--now", help="Outside of the campaign's hours and beyond its number a day, too.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done and do nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
_T = TypeVar("_T")


def _told(work: Callable[[], _T]) -> _T:
    """Return what ``work`` returns; what a person has to put right becomes a sentence."""
    from codemods.batch.errors import CampaignError, Exhausted

    try:
        return work()
    except CampaignError as error:
        raise UserError(str(error)) from None
    except Exhausted as error:
        raise UserError(f"{error}; what was done stands, and the same command goes on") from None


def _read(file: Path) -> Campaign:
    from codemods.batch.campaign import read

    return _told(lambda: read(file))


def _known(format: str, forms: Sequence[str] = ("text", "json")) -> None:
    if format not in forms:
        raise UserError(f"--format {format}: must be one of {', '.join(forms)}")


@app.command("init")
def init(
    file: Annotated[Path, typer.Argument(metavar="[CAMPAIGN]", help="The file to write.")] = Path("campaign.toml"),
    named: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="Take this repository (path or URL), those in this folder, of this owner (https://HOST/OWNER), "
            "of topic:NAME or search:WORDS; repeatable.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> int:
    """Write a campaign file to begin with."""
    from codemods.batch.template import write

    count = _told(lambda: write(file, named or (), force=force))
    many = f"{count} {'repository' if count == 1 else 'repositories'}"
    what = f"with {many}; now" if count else "name your repositories in it, then"
    emit(f"{file} is written{':' if not count else ''} {what}: codemod batch plan {shlex.quote(str(file))}\n", None)
    return FINE


@app.command("plan")
def plan(
    file: File,
    format: Format = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Take every repository.")] = False,
) -> int:
    """Show what would be done, what can be verified and what cannot, and do nothing."""
    from codemods.batch import planning

    _known(format)
    campaign = _read(file)
    plans = _told(lambda: planning.plan(campaign))
    text = planning.plan_text(campaign, plans, verbose=verbose)
    emit(json.dumps(plans, indent=1) + "\n" if format == "json" else text, None)
    return FINE


@app.command("run")
def run(
    file: File,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    only: Only = None,
    clone_only: Annotated[bool, typer.Option("--clone-only", help="Only clone.")] = False,
    quiet: Quiet = False,
) -> int:
    """Bring every repository as far as it can be brought; stopped or killed, the same command goes on.

    Exit status: 0, or 1 where a repository failed or was refused, in this run or before.
    """
    stages = ("clone",) if clone_only else ("clone", "rewrite", "verify")
    return _run(_read(file), jobs, scheduler, only, quiet, lambda _: "", stages)


@app.command("retry")
def retry(
    file: File,
    failed: Annotated[bool, typer.Option("--failed", help="Take what failed.")] = False,
    refused: Annotated[bool, typer.Option("--refused", help="Take what was refused.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Take what was done with other settings.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Take everything that is not published.")] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    only: Only = None,
    quiet: Quiet = False,
) -> int:
    """Do repositories again from the start, and whatever else is left to do."""
    if not (failed or refused or changed or everything):
        raise UserError("say what to do again: --failed, --refused, --changed or --all")
    from codemods.batch.running import OTHER_TOOL, by_other_tool

    campaign = _read(file)
    fingerprints = {one.source.key: campaign.fingerprint(one) for one in campaign.repositories}

    def again(row: Row) -> str:
        if (failed and row["state"] == "failed") or (refused and row["state"] == "refused"):
            return "tried again"
        if row["state"] == "published":
            return ""
        if changed and row["fingerprint"] and row["fingerprint"] != fingerprints.get(row["key"]):
            return "the campaign's settings changed"
        if changed and by_other_tool(row):
            return OTHER_TOOL
        return "done again" if everything else ""

    return _run(campaign, jobs, scheduler, only, quiet, again)


def _run(
    campaign: Campaign,
    jobs: int | None,
    scheduler: str | None,
    only: list[str] | None,
    quiet: bool,
    again: Callable[[Row], str],
    stages: Sequence[str] = ("clone", "rewrite", "verify"),
) -> int:
    from codemods.batch.executors.choosing import executors_for
    from codemods.batch.progress import Progress
    from codemods.batch.running import run as run_campaign
    from codemods.batch.verifying import require_for_runs

    if scheduler is None and "verify" in stages:
        _told(lambda: require_for_runs(campaign))

    def executors(places: Places, todo: int) -> tuple[Executor, Executor]:
        return executors_for(campaign, places, todo, jobs=jobs, scheduler=scheduler)

    with Progress(quiet=quiet) as progress:
        try:
            summary = _told(
                lambda: run_campaign(campaign, executors, progress, only=only or (), stages=stages, again=again)
            )
        except KeyboardInterrupt:
            progress.interrupted(shlex.quote(os.path.relpath(campaign.file)))
            raise
    counts = (
        ", ".join(f"{count} {state}" for state, count in sorted(summary.settled.items())) or "nothing was left to do"
    )
    notes = [f"{summary.moved} had moved upstream and were done again"] if summary.moved else []
    for state, count in sorted(summary.standing.items()):
        notes.append(f"{count} {state} earlier: codemod batch status says why, retry --{state} does it again")
    if not quiet:
        emit(f"{campaign.name}: {'; '.join([counts, *notes])}\n", None)
    return FOUND if (summary.settled.keys() | summary.standing) & {"failed", "refused"} else FINE


@app.command("status")
def status(
    file: File,
    upstream: Annotated[bool, typer.Option("--upstream", help="Ask the remotes whether they moved.")] = False,
    format: Format = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Take every repository.")] = False,
) -> int:
    """Show where the campaign stands; works while it runs."""
    from codemods.batch import planning

    _known(format)
    campaign = _read(file)
    told = _told(lambda: planning.status(campaign, upstream=upstream))
    emit(json.dumps(told, indent=1) + "\n" if format == "json" else planning.status_text(told, verbose=verbose), None)
    return FINE


@app.command("report")
def report(
    file: File,
    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format", metavar="html|markdown|csv|parquet", help="Write this format; repeatable, by default all."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Write to this folder; by default report/ in the work folder."
        ),
    ] = None,
) -> int:
    """Write what came out of the campaign: one page, a text, and tables."""
    from codemods.batch.fleet import FORMS, write_reports

    for name in format or ():
        _known(name, FORMS)
    campaign = _read(file)
    written = _told(lambda: write_reports(campaign, output, format or ()))
    emit("".join(f"{os.path.relpath(path)}\n" for path in written), None)
    return FINE


@app.command("publish")
def publish(
    file: File,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done and do nothing.")] = False,
    only: Only = None,
    most: Most = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep clones whose branch is published.")] = False,
    at_once: Now = False,
) -> int:
    """Push branches and open draft pull requests, one repository at a time.

    Exit status: 0, or 1 where one could not be published.
    """
    from codemods.batch.publishing import publish as publish_campaign

    campaign = _read(file)
    failures = _told(
        lambda: publish_campaign(
            campaign, _say, dry_run=dry_run, only=only or (), most=most, keep=keep, at_once=at_once
        )
    )
    return FOUND if failures else FINE


@app.command("follow")
def follow(
    file: File,
    only: Only = None,
    comments: Annotated[bool, typer.Option("--comments", help="Print what people wrote, too.")] = False,
) -> int:
    """Ask the forges what became of the pull requests: merged, open, closed, their checks, reviews and comments.

    Exit status: 0, or 1 where one could not be asked for.
    """
    from codemods.batch.following import follow as follow_campaign

    campaign = _read(file)
    failures = _told(lambda: follow_campaign(campaign, _say, only=only or (), comments=comments))
    return FOUND if failures else FINE


@app.command("update")
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
    from codemods.batch.publishing import publish as publish_campaign
    from codemods.batch.updating import outdated
    from codemods.batch.updating import update as update_campaign

    campaign = _read(file)
    found = _told(lambda: outdated(campaign, _say, only=only or ()))
    many = f"{len(found.reasons)} branch{'es' * (len(found.reasons) != 1)}"
    if not found.reasons:
        _say("nothing to update")
    elif dry_run or not _confirm(yes)(f"redo {many} and push over what this campaign has pushed?"):
        _say(f"{many} to update; nothing was done")
    else:
        failures = _told(
            lambda: update_campaign(
                campaign,
                found,
                lambda again, slugs: _ignore(_run(campaign, jobs, scheduler, slugs, quiet, again)),
                lambda slugs: publish_campaign(campaign, _say, only=slugs, at_once=at_once),
                _say,
            )
        )
        return FOUND if failures or found.failures else FINE
    return FOUND if found.failures else FINE


@app.command("close")
def close(
    file: File,
    only: Only = None,
    obsolete: Annotated[
        bool,
        typer.Option("--obsolete", help="Take those where nothing is left to change, or that are left out by now."),
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
    from codemods.batch.deeds import Manner
    from codemods.batch.deeds import close as close_requests

    if not (only or obsolete or red or everything):
        raise UserError("say which to close: --only NAME, --obsolete, --red or --all")
    campaign = _read(file)
    manner = Manner(_confirm(yes), dry_run, most)
    failures = _told(
        lambda: close_requests(
            campaign,
            _say,
            manner,
            only=only or (),
            obsolete=obsolete,
            red=red,
            comment=comment,
            delete_branches=delete_branches,
        )
    )
    return FOUND if failures else FINE


@app.command("merge")
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
    from codemods.batch.deeds import Manner
    from codemods.batch.deeds import merge as merge_requests
    from codemods.batch.requests import METHODS

    if method not in METHODS:
        raise UserError(f"--method {method}: must be one of {', '.join(METHODS)}")
    campaign = _read(file)
    manner = Manner(_confirm(yes), dry_run, most)
    failures = _told(
        lambda: merge_requests(campaign, _say, manner, only=only or (), method=method, approved=approved, drafts=drafts)
    )
    return FOUND if failures else FINE


def _say(line: str) -> None:
    emit(printable(line) + "\n", None)


def _ignore(status: int) -> None:
    """Of an update it is told one by one what became of it."""


def _confirm(yes: bool) -> Callable[[str], bool]:
    """Ask on a terminal, unless ``yes``. Raises :class:`UserError` where there is nobody to ask."""

    def confirm(question: str) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise UserError(f"{question} there is nobody to ask: --yes says so")
        return typer.confirm(question)

    return confirm
