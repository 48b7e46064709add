"""The commands that plan and run a campaign and say where it stands."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codemods.cli._terminal import FINE, FOUND, emit, require_choice
from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from codemods.batch.campaign.settings import Campaign
    from codemods.batch.executors import Executor
    from codemods.batch.ledger.ledger import Row
    from codemods.batch.places import Places
from codemods.cli.batch._options import CampaignCommand, File, Format, Jobs, Only, Quiet, Scheduler, app, say
from codemods.terms.counting import plain_count_text


@app.command("init", cls=CampaignCommand)
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
    from codemods.batch.campaign.template import write

    count = write(file, named or (), force=force, say=say)
    what = f"with {plain_count_text(count, 'repository')}; now" if count else "name your repositories in it, then"
    emit(f"{file} is written{':' if not count else ''} {what}: codemod batch plan {shlex.quote(str(file))}\n", None)
    return FINE


@app.command("plan", cls=CampaignCommand)
def plan(
    file: File,
    format: Format = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every repository.")] = False,
) -> int:
    """Show what would be done, what can be verified and what cannot, and do nothing."""
    from codemods.batch import planning
    from codemods.batch.campaign.settings import read

    require_choice("--format", format, ("text", "json"))
    campaign = read(file)
    plans = planning.plan(campaign)
    text = planning.plan_text(campaign, plans, verbose=verbose)
    emit(json.dumps(plans, indent=1) + "\n" if format == "json" else text, None)
    return FINE


@app.command("run", cls=CampaignCommand)
def run(
    file: File,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    only: Only = None,
    clone_only: Annotated[bool, typer.Option("--clone-only", help="Only clone.")] = False,
    quiet: Quiet = False,
) -> int:
    """Clone, rewrite and verify every repository. Run it again to go on where it stopped.

    Exit status: 0, or 1 where a repository failed or was refused, in this run or before.
    """
    from codemods.batch.campaign.settings import read

    stages = ("clone",) if clone_only else ("clone", "rewrite", "verify")
    return run_stages(read(file), jobs, scheduler, only, quiet, lambda _: "", stages)


@app.command("retry", cls=CampaignCommand)
def retry(
    file: File,
    failed: Annotated[bool, typer.Option("--failed", help="Take what failed.")] = False,
    refused: Annotated[bool, typer.Option("--refused", help="Include refused repositories.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Include repositories done with other settings.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Include all that is not published.")] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    only: Only = None,
    quiet: Quiet = False,
) -> int:
    """Do repositories again from the start, and whatever else is left to do."""
    if not (failed or refused or changed or everything):
        raise UserError("say what to do again: --failed, --refused, --changed or --all")
    from codemods.batch.campaign.settings import read
    from codemods.batch.pending import OTHER_TOOL, by_other_tool

    campaign = read(file)
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

    return run_stages(campaign, jobs, scheduler, only, quiet, again)


def run_stages(
    campaign: Campaign,
    jobs: int | None,
    scheduler: str | None,
    only: list[str] | None,
    quiet: bool,
    again: Callable[[Row], str],
    stages: Sequence[str] = ("clone", "rewrite", "verify"),
) -> int:
    """Run the stages of a campaign and print what was done; return the exit status."""
    from codemods.batch.executors.processes import executors_for
    from codemods.batch.progress import Progress
    from codemods.batch.running import run as run_campaign
    from codemods.batch.stages.verifying import require_for_runs

    if scheduler is None and "verify" in stages:
        require_for_runs(campaign)

    def executors(places: Places, todo: int) -> tuple[Executor, Executor]:
        return executors_for(campaign, places, todo, jobs=jobs, scheduler=scheduler)

    with Progress(quiet=quiet) as progress:
        try:
            summary = run_campaign(campaign, executors, progress, only=only or (), stages=stages, again=again)
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


@app.command("status", cls=CampaignCommand)
def status(
    file: File,
    upstream: Annotated[bool, typer.Option("--upstream", help="Ask the remotes whether they moved.")] = False,
    format: Format = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every repository.")] = False,
) -> int:
    """Show where the campaign stands; works while it runs."""
    from codemods.batch import overview
    from codemods.batch.campaign.settings import read

    require_choice("--format", format, ("text", "json"))
    told = overview.status(read(file), upstream=upstream)
    emit(json.dumps(told, indent=1) + "\n" if format == "json" else overview.status_text(told, verbose=verbose), None)
    return FINE


@app.command("report", cls=CampaignCommand)
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
    from codemods.batch.campaign.settings import read
    from codemods.batch.fleet import FORMS, write_reports

    for name in format or ():
        require_choice("--format", name, FORMS)
    written = write_reports(read(file), output, format or ())
    emit("".join(f"{os.path.relpath(path)}\n" for path in written), None)
    return FINE
