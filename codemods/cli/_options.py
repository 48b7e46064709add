"""The options that commands share, and what they come to together with the configuration file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from codemods.cli import _help as h
from codemods.cli._choices import CHOICES, FORMAT, settle_choices
from codemods.cli._groups import OptionGroup
from codemods.cli._ours import DIFF, kind_of
from codemods.cli._places import further_place, require_apart, require_place
from codemods.cli._terminal import ProgressBar, complain, emit, read_stdin, wants_colour
from codemods.reports import Detail, Report, renderer
from codemods.source.logs import quoted
from codemods.source.options import Options
from codemods.source.targets import Targets, read_targets, text_target
from codemods.terms.errors import UserError

#: What people read, in the encoding of their terminal; the rest is bytes for programs.
FOR_PEOPLE = frozenset({"text", "concise", "full", "grouped"})
#: Forms that a server reads as commands, which quote what stands in them.
COMMANDS = frozenset({"github", "azure"})

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="Files, folders, or - for standard input; by default the current folder.",
        show_default=False,
    ),
]
Select = Annotated[list[str] | None, h.what("--select", metavar="RULE,...", help="Only run these rules.")]
Ignore = Annotated[list[str] | None, h.what("--ignore", metavar="RULE,...", help="Skip these rules.")]
Unsafe = Annotated[
    bool | None, h.how("--unsafe/--no-unsafe", help="Also apply rewrites that change what the model learns.")
]
HiddenState = Annotated[
    str | None, h.how("--hidden-state", metavar="|".join(CHOICES["hidden_state"]), help="Cut carried state this way.")
]
TotalStyle = Annotated[
    str | None, h.how("--total-style", metavar="|".join(CHOICES["total_style"]), help="Detach totals this way.")
]
NoGradStyle = Annotated[
    str | None,
    h.how("--no-grad-style", metavar="|".join(CHOICES["no_grad_style"]), help="Switch gradients off this way."),
]
TargetTorch = Annotated[
    str | None,
    h.how("--target-torch", metavar="VERSION", help="Only make rewrites that this PyTorch version understands."),
]
Python2 = Annotated[bool | None, h.how("--python2/--no-python2", help="Translate Python 2 first, as separate changes.")]
Exclude = Annotated[
    list[str] | None,
    h.where("--exclude", metavar="GLOB", help="Skip paths matching this .gitignore pattern; repeatable."),
]
Config = Annotated[
    Path | None, h.where("--config", metavar="FILE", help="Read [tool.codemod] from here, not from pyproject.toml.")
]
Jobs = Annotated[int | None, h.where("--jobs", "-j", min=1, metavar="N", help="Use this many worker processes.")]
Format = Annotated[str | None, h.report(*FORMAT, metavar="|".join(CHOICES["format"]), help="Report in this format.")]
Output = Annotated[
    Path | None, h.report("--output", "-o", metavar="FILE", help="Write to this file instead of standard output.")
]
ExitZero = Annotated[bool | None, h.report("--exit-zero", help="Exit with 0 whatever is found, or cannot be checked.")]
Also = Annotated[
    list[str] | None,
    h.report("--also", metavar="FORMAT=FILE", help="Write the same in this format to this file too; repeatable."),
]
Color = Annotated[str | None, h.report("--color", metavar="|".join(CHOICES["color"]), help="Colour the output.")]
Quiet = Annotated[bool | None, h.report("--quiet", "-q", help="Print neither summary nor progress.")]
Verbose = Annotated[bool | None, h.report("--verbose", "-v", help="Also show traces, remedies and internal failures.")]
NoCache = Annotated[
    bool | None, h.where("--no-cache", help="Neither use results of earlier runs nor keep those of this one.")
]
StdinFilename = Annotated[str, h.where("--stdin-filename", metavar="PATH", help="Treat standard input as this file.")]


@dataclass(frozen=True)
class RuleOptions(OptionGroup):
    """What to look for, where, and how to rewrite it."""

    select: Select = None
    ignore: Ignore = None
    unsafe: Unsafe = None
    hidden_state: HiddenState = None
    total_style: TotalStyle = None
    no_grad_style: NoGradStyle = None
    target_torch: TargetTorch = None
    python2: Python2 = None
    exclude: Exclude = None
    config: Config = None
    jobs: Jobs = None


@dataclass(frozen=True)
class ScreenOptions(OptionGroup):
    """How much is told, and what standard input and earlier runs stand for."""

    color: Color = None
    quiet: Quiet = None
    verbose: Verbose = None
    no_cache: NoCache = None
    stdin_filename: StdinFilename = "<stdin>"


@dataclass(frozen=True)
class Job:
    """A command's work, its options settled: what to look at, for what, and how to tell."""

    targets: Targets
    options: Options
    jobs: int | None
    format: str
    output: Path | None
    detail: Detail
    color: str
    exit_code: bool
    max_hunks: int | None
    stdin: bytes | None
    further: tuple[tuple[str, Path], ...] = ()
    """Formats to write as well, and to which files."""
    settled: Mapping[str, Any] = field(default_factory=dict)
    """All that was chosen, by name."""

    def render(self, report: Report, *, colour: bool, watched: bool = False) -> str | bytes:
        """Return the report in the form that was asked for: text, or for programs the bytes.

        On standard output these hold no command that a server would find, unless the form is made of commands.

        Plain text, where it is ``watched`` by a person and more than the least is asked for, is the full one.
        """
        fuller = self.format == "text" and watched and self.detail is not Detail.QUIET
        text = renderer("full" if fuller else self.format)(report, self.detail, colour=colour)
        if self.format in FOR_PEOPLE:
            return text
        shown = quoted(text) if self.output is None and self.format not in COMMANDS else text
        return shown.encode("utf-8", "backslashreplace")

    def also(self, report: Report) -> None:
        """Write the report to the further files that were asked for."""
        for name, file in self.further:
            emit(renderer(name)(report, self.detail), file)

    def colour(self, *, to_stderr: bool = False) -> bool:
        """Tell whether what goes to the output, or to standard error, is to be coloured."""
        if self.output is not None and not to_stderr:
            return self.color == "always"
        return wants_colour(sys.stderr if to_stderr else sys.stdout, self.color)

    @property
    def progress(self) -> ProgressBar:
        """A new progress bar."""
        return ProgressBar(quiet=self.detail is Detail.QUIET)


def settle(
    paths: Sequence[str],
    *,
    also: Sequence[str] | None = None,
    beside: Mapping[str, Path | None] | None = None,
    diff: bool = False,
    config: Path | None,
    stdin_filename: str,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    exclude: Sequence[str] | None,
    **given: object,
) -> Job:
    """Return the job that the command line describes, its files found and read.

    What is None or empty was not given, and comes from the configuration file nearest to the first path. ``beside`` are
    further files that will be written, by their options; ``diff`` says that of plain text the diff goes to the output.
    Raises :class:`UserError` for options that make no sense.
    """
    if "-" in paths and len(paths) > 1:
        raise UserError("- (standard input) cannot be combined with other paths")
    start = stdin_filename if paths[0] == "-" else paths[0]
    choices = settle_choices(start, config=config, select=select, ignore=ignore, exclude=exclude, **given)
    # Before anything changes: the report on it must not be lost.
    chosen = choices.settled
    output = Path(chosen["output"]) if "output" in given and chosen.get("output") else None
    require_place(output, DIFF if diff and chosen["format"] == "text" else kind_of(chosen["format"]))
    further = tuple(map(further_place, also or ()))
    stdin = read_stdin() if paths[0] == "-" else None
    targets = (
        read_targets(paths, exclude=choices.exclude, exclude_root=choices.exclude_root)
        if stdin is None
        else text_target(stdin, stdin_filename)
    )
    if not targets.sources and not targets.skipped and choices.detail is not Detail.QUIET:
        complain(f"no Python file or notebook in {', '.join(paths)}")
    written = {"--output": output, **{f"--also {name}={file}": file for name, file in further}, **(beside or {})}
    read = [*(source.absolute for source in targets.sources), *(Path(entry.path) for entry in targets.skipped)]
    require_apart(written, read if stdin is None else ())
    return Job(
        targets=targets,
        options=choices.options,
        jobs=choices.jobs,
        format=chosen["format"],
        output=output,
        detail=choices.detail,
        color=chosen["color"],
        exit_code=bool(chosen.get("exit_code")),
        # 0 in a configuration file takes a limit away that one further up might set.
        max_hunks=chosen.get("max_hunks") or None,
        stdin=stdin,
        further=further,
        settled=chosen,
    )
