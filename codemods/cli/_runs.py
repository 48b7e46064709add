"""The options of commands that run scripts."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from codemods.cli import _help as h
from codemods.cli._groups import OptionGroup
from codemods.cli._ours import kind_of
from codemods.cli._places import require_place
from codemods.cli._terminal import complain, is_watched, require_choice
from codemods.source.keys import size
from codemods.source.options import DEVICES, ISOLATIONS
from codemods.source.secrets import Secrets
from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from verify.isolation.workspace import Mode
    from verify.measured.results import Verification
    from verify.running.settings import Command, Settings


Steps = Annotated[
    int | None, h.run("--steps", min=1, metavar="N", help="End a run after this many optimizer steps; 20 by default.")
]
Batches = Annotated[
    int | None,
    h.run(
        "--batches",
        min=0,
        metavar="N",
        help="End each DataLoader after this many batches, to reach validation; by default a quarter of the steps, "
        "0 for no end.",
    ),
]
Timeout = Annotated[
    float | None,
    h.run("--timeout", min=1.0, metavar="SECONDS", help="End a run after this many seconds; 120 by default."),
]
Device = Annotated[str | None, h.run("--device", metavar="|".join(DEVICES), help="Run on this device.")]
Python = Annotated[
    str | None,
    h.run(
        "--python", metavar="FILE", help="Run with this Python, which has torch; by default the one that runs codemod."
    ),
]
StandIn = Annotated[
    list[str] | None,
    h.run(
        "--stand-in",
        metavar="PATH=TYPE:SHAPE",
        help="Make up a missing file, such as data/x.npy=float32:1000,3,32,32 or y.npy=int64:1000<10; repeatable.",
    ),
]
NoData = Annotated[bool, h.run("--no-data", help="Do not replace missing torchvision data sets by stand-ins.")]
Memory = Annotated[
    str | None,
    h.limits(
        "--memory", metavar="SIZE", help="Limit the memory of a run, such as 8G; by default half of the machine's."
    ),
]
MemoryLimit = Annotated[
    str | None,
    h.limits("--memory-limit", metavar="SIZE", help="Limit the GPU memory of a run, so that a leak soon meets it."),
]
Disk = Annotated[str | None, h.limits("--disk", metavar="SIZE", help="Limit what a run writes; 2G by default.")]
Network = Annotated[bool, h.limits("--network", help="Let the script reach the network.")]
Seed = Annotated[int, h.run("--seed", min=0, max=2**32 - 1, metavar="N", help="Seed all random generators with this.")]
Tolerance = Annotated[
    float | None,
    h.proof(
        "--tolerance", min=0.0, metavar="X", help="Treat relative differences up to this as rounding; 1e-3 by default."
    ),
]
Env = Annotated[
    list[str] | None,
    h.run(
        "--env",
        metavar="NAME[=VALUE]",
        help="Pass this environment variable to the script; by default it gets none that could be a secret.",
    ),
]
Expose = Annotated[
    list[str] | None,
    h.limits("--expose", metavar="PATH", help="Let the script read this file or folder of your home; repeatable."),
]
Reach = Annotated[
    float | None,
    h.run(
        "--reach",
        min=0.0,
        metavar="SECONDS",
        help="Spend this many seconds on reaching lines that the runs missed; 4 timeouts by default, 0 for none.",
    ),
]
Within = Annotated[
    float | None,
    h.run(
        "--within",
        min=1.0,
        metavar="SECONDS",
        help="Begin no more runs after this many seconds, and judge by those made; no limit by default.",
    ),
]
ShapesOnly = Annotated[
    bool,
    h.run(
        "--shapes-only",
        help="Run two steps by shapes, without memory: errors of shape and graph, and an estimate of memory.",
    ),
]
Isolation = Annotated[
    str | None, h.limits("--isolation", metavar="|".join(ISOLATIONS), help="Protect your files this way.")
]


Image = Annotated[
    str | None,
    h.run("--image", metavar="IMAGE", help="Run in containers of this image, by docker or podman."),
]


@dataclass(frozen=True)
class TrialOptions(OptionGroup):
    """The options of ``apply --verify``."""

    steps: Steps = None
    batches: Batches = None
    timeout: Timeout = None
    device: Device = None
    python: Python = None
    image: Image = None
    stand_in: StandIn = None
    env: Env = None
    expose: Expose = None


@dataclass(frozen=True)
class RunOptions(TrialOptions):
    """The options of every command that runs programs of the user's."""

    no_data: NoData = False
    memory: Memory = None
    memory_limit: MemoryLimit = None
    disk: Disk = None
    network: Network = False
    seed: Seed = 0
    isolation: Isolation = None


@dataclass(frozen=True)
class ProgramOptions(OptionGroup):
    """The program to run and its tree."""

    script: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [-- ARGS]",
            help="The script to run, or a launcher such as pytest, and its arguments.",
            show_default=False,
        ),
    ] = None
    module: Annotated[str | None, h.run("-m", metavar="MODULE", help="Run a module instead of a script.")] = None
    tree: Annotated[
        Path | None,
        h.run("--tree", metavar="FOLDER", help="The root of the tree; by default the project of the script."),
    ] = None

    @property
    def files(self) -> list[Path]:
        """The files that the program's words name: the script, and what it may read or write itself."""
        return [path for path in map(Path, self.script or ()) if os.path.isfile(path)]

    def commands(self, entries: Sequence[str], python: str) -> list[Command]:
        """Return what is to be run, ``entries`` last; raises :class:`UserError` for nothing."""
        from verify.running.settings import entry_command, script_command, starts_a_program

        words = list(self.script or ())
        found = [entry_command(text, python, Path.cwd()) for text in entries]
        if self.module is not None:
            found.insert(0, script_command(self.module, words, python, module=True))
        elif words and starts_a_program(words[0], python):
            found.insert(0, entry_command(shlex.join(words), python, Path.cwd()))
        elif words:
            found.insert(0, script_command(words[0], words[1:], python))
        if not found:
            raise UserError("name a script to run, or give --entry")
        return found

    def command(self, entry: str | None, python: str) -> Command:
        """Return the one program that is to be run."""
        found = self.commands([] if entry is None else [entry], python)
        if len(found) > 1 or (entry is not None and (self.script or self.module)):
            raise UserError("name a script, -m or --entry, not two of them")
        return found[0]


Entry = Annotated[
    str | None, h.run("--entry", metavar="COMMAND", help="Run this whole command, such as 'torchrun train.py'.")
]


def report_format(format: str | None, output: Path | None, known: Sequence[str]) -> str:
    """Return the format to report in: the one asked for, else that of the file's name, else the first of ``known``."""
    suffix = output.suffix.lstrip(".").lower() if output is not None else ""
    suffix = {"md": "markdown", "htm": "html"}.get(suffix, suffix)
    chosen = format or (suffix if suffix in known else known[0])
    require_choice("--format", chosen, known)
    require_place(output, kind_of(chosen))
    return chosen


def settings_of(
    options: RunOptions,
    *,
    tolerance: float | None = None,
    reach: float | None = None,
    within: float | None = None,
    shapes: bool = False,
) -> Settings:
    """Return the settings that the options come to; raises :class:`UserError` for one that makes no sense."""
    from verify.errors import VerifyError
    from verify.running import settings as defaults
    from verify.running.standins import parse

    try:
        executable = _interpreter(options)
    except VerifyError as error:
        raise UserError(f"--python {error}") from None
    variables = defaults.variables(options.env or (), os.environ)
    exposed = defaults.exposed(options.expose or (), Path.cwd())
    try:
        stand_ins = tuple(parse(text) for text in options.stand_in or ())
    except ValueError as error:
        raise UserError(f"--stand-in: {error}") from None
    return defaults.Settings(
        steps=options.steps or (defaults.STEPS_BY_SHAPES if shapes else defaults.STEPS),
        batches=options.batches,
        timeout=options.timeout or defaults.TIMEOUT,
        seed=options.seed,
        device=require_choice("--device", options.device or "auto", DEVICES),
        python=executable,
        image=options.image or "",
        memory=_size("--memory", options.memory),
        memory_limit=_size("--memory-limit", options.memory_limit),
        disk=_size("--disk", options.disk) or defaults.DISK,
        network=options.network,
        data=not options.no_data,
        stand_ins=stand_ins,
        tolerance=defaults.TOLERANCE if tolerance is None else tolerance,
        reach=reach,
        within=within,
        isolation=cast("Mode", require_choice("--isolation", options.isolation or "auto", ISOLATIONS)),
        environment=variables,
        expose=exposed,
        shapes=shapes,
    )


def _interpreter(options: RunOptions) -> str:
    """What runs the user's program; raises :class:`verify.errors.VerifyError` for a file that is not there."""
    from verify.running.settings import PYTHON_OF_IMAGES, interpreter

    if options.image:
        return options.python or PYTHON_OF_IMAGES
    return interpreter(options.python, Path.cwd()) if options.python else sys.executable


def masked_words(words: Sequence[str], env: Sequence[str] | None = None) -> list[str]:
    """Return the words of a command line without values of variables that look secret, those of ``--env`` too."""
    secrets = Secrets((os.environ, dict(text.split("=", 1) for text in env or () if "=" in text)))
    return list(map(secrets.mask, words))


def teller(quiet: bool) -> Callable[[str], None]:
    """Return what tells a person who waits what is being run; it says nothing where nobody watches."""
    watched = not quiet and is_watched(sys.stderr)

    def tell(text: str) -> None:
        if watched:
            complain(text)

    return tell


def _size(option: str, given: str | None) -> int | None:
    try:
        return None if given is None else size(given)
    except ValueError:
        raise UserError(f"{option} {given}: must be a size such as 500M or 8G") from None


def require_plottable(plot: Path | None) -> None:
    """Raise :class:`UserError` where ``plot`` could not be drawn, before anything is run."""
    from verify.reports import plots

    if plot is not None:
        plots.check(plot)


def draw(verification: Verification, plot: Path | None) -> bool:
    """Draw to ``plot``, if it is given; return whether there is something to see."""
    from verify.reports import plots

    try:
        if plot is not None:
            plots.save(verification, plot)
    except plots.NothingToDraw as error:
        # What was asked for was done, and the report says why there is nothing to see.
        complain(f"{plot}: {error}")
        return False
    return plot is not None
