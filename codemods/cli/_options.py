"""The options that commands share, and what they come to together with the configuration file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from codemods.cli._terminal import ProgressBar, UserError, require_place, wants_colour
from codemods.reports import Detail, Report, formats, renderer
from codemods.rules import UnknownRule, require_known
from codemods.source.config import ConfigError, find_config, is_version, load_config
from codemods.source.errors import MissingPath
from codemods.source.options import Options
from codemods.source.perfile import PerFileIgnores
from codemods.source.targets import Targets, read_targets, text_target

# What an option may be, its default first.
CHOICES = {
    "format": ("text", *(name for name in formats() if name != "text")),
    "color": ("auto", "always", "never"),
    "hidden_state": ("auto", "reinit", "detach"),
    "total_style": ("auto", "float", "item", "detach"),
    "no_grad_style": ("auto", "decorator", "with"),
}

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Files, folders, or - for standard input.", show_default=False)
]
Select = Annotated[list[str] | None, typer.Option("--select", metavar="RULE,...", help="Only run these rules.")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", metavar="RULE,...", help="Skip these rules.")]
Unsafe = Annotated[
    bool | None, typer.Option("--unsafe/--no-unsafe", help="Also apply rewrites that change what the model learns.")
]
HiddenState = Annotated[
    str | None, typer.Option("--hidden-state", metavar="auto|reinit|detach", help="Cut carried state this way.")
]
TotalStyle = Annotated[
    str | None, typer.Option("--total-style", metavar="auto|float|item|detach", help="Detach totals this way.")
]
NoGradStyle = Annotated[
    str | None, typer.Option("--no-grad-style", metavar="auto|decorator|with", help="Switch gradients off this way.")
]
TargetTorch = Annotated[
    str | None,
    typer.Option("--target-torch", metavar="VERSION", help="Only make rewrites that this PyTorch version understands."),
]
Python2 = Annotated[
    bool | None, typer.Option("--python2/--no-python2", help="Translate Python 2 first, as separate changes.")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="GLOB", help="Skip paths matching this .gitignore pattern; repeatable."),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Read [tool.codemod] from here, not from pyproject.toml."),
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Use this many worker processes.")]
Format = Annotated[
    str | None, typer.Option("--format", metavar="|".join(CHOICES["format"]), help="Report in this format.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of standard output.")
]
Color = Annotated[str | None, typer.Option("--color", metavar="|".join(CHOICES["color"]), help="Color the output.")]
Quiet = Annotated[bool | None, typer.Option("--quiet", "-q", help="Print neither summary nor progress.")]
Verbose = Annotated[
    bool | None, typer.Option("--verbose", "-v", help="Also show traces, remedies and internal failures.")
]
NoCache = Annotated[
    bool | None, typer.Option("--no-cache", help="Neither use results of earlier runs nor keep those of this one.")
]
StdinFilename = Annotated[
    str, typer.Option("--stdin-filename", metavar="PATH", help="Treat standard input as this file.")
]


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
    settled: Mapping[str, Any] = field(default_factory=dict)
    """All that was chosen, by name."""

    def render(self, report: Report, *, colour: bool) -> str | bytes:
        """Return the report in the form that was asked for: text, or for programs the bytes."""
        text = renderer(self.format)(report, self.detail, colour=colour)
        return text if self.format == "text" else text.encode("utf-8", "backslashreplace")

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
    config: Path | None,
    stdin_filename: str,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    exclude: Sequence[str] | None,
    **given: object,
) -> Job:
    """Return the job that the command line describes, its files found and read.

    What is None or empty was not given, and comes from the configuration file nearest to the first path. Raises
    :class:`UserError` for options that make no sense.
    """
    if "-" in paths and len(paths) > 1:
        raise UserError("- (standard input) cannot be combined with other paths")
    start = stdin_filename if paths[0] == "-" else paths[0]
    choices = settle_choices(start, config=config, select=select, ignore=ignore, exclude=exclude, **given)
    # Before anything is changed of which the report would then be lost.
    require_place(Path(choices.settled["output"]) if choices.settled.get("output") else None)
    stdin = sys.stdin.buffer.read() if paths[0] == "-" else None
    try:
        targets = (
            read_targets(paths, exclude=choices.exclude, exclude_root=choices.exclude_root)
            if stdin is None
            else text_target(stdin, stdin_filename)
        )
    except MissingPath as error:
        raise UserError(str(error)) from None
    chosen = choices.settled
    return Job(
        targets=targets,
        options=choices.options,
        jobs=choices.jobs,
        format=chosen["format"],
        output=Path(chosen["output"]) if chosen.get("output") else None,
        detail=choices.detail,
        color=chosen["color"],
        exit_code=bool(chosen.get("exit_code")),
        # 0 in a configuration file takes a limit away that one further up might set.
        max_hunks=chosen.get("max_hunks") or None,
        stdin=stdin,
        settled=chosen,
    )


@dataclass(frozen=True)
class Choices:
    """What was chosen on the command line and in the configuration file, without any file read for it.

    ``settled`` holds all of it by name; ``exclude_root`` is what the patterns of ``exclude`` are relative to.
    """

    settled: dict[str, Any]
    exclude_root: Path | None

    @property
    def options(self) -> Options:
        """What rules and edits are told."""
        chosen = self.settled
        return Options(
            select=chosen["select"],
            ignore=chosen["ignore"],
            unsafe=bool(chosen.get("unsafe")),
            hidden_state=chosen["hidden_state"],
            total_style=chosen["total_style"],
            no_grad_style=chosen["no_grad_style"],
            target_torch=chosen["target_torch"],
            python2=bool(chosen.get("python2")),
            per_file_ignores=chosen.get("per_file_ignores") or PerFileIgnores(),
            # commands without the option keep nothing
            cache="no_cache" in chosen and not chosen["no_cache"],
        )

    @property
    def exclude(self) -> tuple[str, ...]:
        """What is left out of the tree."""
        return tuple(self.settled["exclude"])

    @property
    def jobs(self) -> int | None:
        """How many worker processes, None for as many as there are cores."""
        return self.settled.get("jobs") or None

    @property
    def detail(self) -> Detail:
        """How much to tell people."""
        quiet, verbose = self.settled.get("quiet"), self.settled.get("verbose")
        return Detail.QUIET if quiet else Detail.VERBOSE if verbose else Detail.NORMAL


def settle_choices(
    start: str,
    *,
    config: Path | None,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    exclude: Sequence[str] | None,
    **given: object,
) -> Choices:
    """Return what the command line and the configuration file nearest to ``start`` come to.

    What is None or empty was not given. Raises :class:`UserError` for options that make no sense.
    """
    chosen: dict[str, Any] = {
        "select": _names(select),
        "ignore": _names(ignore),
        "exclude": tuple(exclude or ()),
        **given,
    }
    try:
        settings = load_config(start, config)
        file = config or find_config(start)
        root = None if chosen["exclude"] else file
    except ConfigError as error:
        raise UserError(str(error)) from None
    if file is not None:
        settings |= _beside(file.parent.absolute(), settings)
    for name, value in settings.items():
        if chosen.get(name) in (None, ()):
            chosen[name] = value
    for name, choices in CHOICES.items():
        chosen[name] = chosen.get(name) or choices[0]
        if chosen[name] not in choices:
            raise UserError(f"--{name.replace('_', '-')} {chosen[name]}: must be one of {', '.join(choices)}")
    if chosen.get("quiet") and chosen.get("verbose"):
        raise UserError("--quiet and --verbose exclude each other")
    try:
        require_known((*chosen["select"], *chosen["ignore"], *_per_file(chosen)))
    except UnknownRule as error:
        raise UserError(str(error)) from None
    target = chosen["target_torch"] = chosen.get("target_torch") or "current"
    if not is_version(target):
        raise UserError(f"--target-torch {target}: must be a version of PyTorch, as 0.4 or 1.13.1, or current")
    if chosen.get("python2") and importlib.util.find_spec("fissix") is None:
        raise UserError("--python2 needs fissix: pip install 'torch-codemod[python2]'")
    return Choices(chosen, root.parent if root else None)


def _beside(folder: Path, settings: Mapping[str, object]) -> dict[str, object]:
    """Those of ``settings`` that name files, which are meant from ``folder`` on."""
    beside: dict[str, object] = {}
    if "per_file_ignores" in settings:
        beside["per_file_ignores"] = PerFileIgnores(str(folder), cast("Any", settings["per_file_ignores"]))
    if "baseline" in settings:
        beside["baseline"] = str(folder / str(settings["baseline"]))
    return beside


def _per_file(chosen: Mapping[str, Any]) -> Iterable[str]:
    given = chosen.get("per_file_ignores") or PerFileIgnores()
    return (rule for _, rules in given.entries for rule in rules)


def _names(values: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for value in values or () for name in value.split(",") if name.strip()))
