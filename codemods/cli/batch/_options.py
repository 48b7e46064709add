"""What the commands of ``codemod batch`` share: options, the campaign file, what a person has to put right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from codemods.cli._help import Command, Group
from codemods.cli._terminal import emit
from codemods.source.diffs import printable
from codemods.terms.errors import UserError

app = typer.Typer(
    cls=Group,
    help="Rewrite, prove and publish many repositories.\n\ndocs/batch.md says how.",
    no_args_is_help=False,
)

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
Now = Annotated[bool, typer.Option("--now", help="Ignore the campaign's hours and its daily limit.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done and do nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]


class CampaignCommand(Command):
    """A command on a campaign: where the machine runs out of something, it says that the work can go on."""

    def invoke(self, ctx: Any) -> Any:
        """Do what the command does."""
        from codemods.batch.errors import Exhausted

        try:
            return super().invoke(ctx)
        except Exhausted as error:
            raise UserError(f"{error}; finished work is kept; run the same command to continue") from None


class RequestCommand(CampaignCommand):
    """A command that does something to one request after the other: interrupted, it says that it can go on."""

    def invoke(self, ctx: Any) -> Any:
        """Do what the command does."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted: finished work is in the ledger; run the same command to continue", file=sys.stderr)
            raise


def say(line: str) -> None:
    """Print a line."""
    emit(printable(line) + "\n", None)
