"""The options of commands that run scripts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from codemods.cli._terminal import UserError, complain

if TYPE_CHECKING:
    from verify.isolation.workspace import Mode
    from verify.settings import Settings

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
DEVICES = ("auto", "cpu", "cuda")
ISOLATIONS = ("auto", "overlay", "copy")


class RunOptions:
    """The options, as typer reads them."""

    steps = Annotated[
        int | None, typer.Option("--steps", min=1, metavar="N", help="Optimizer steps of a run; 20 by default.")
    ]
    batches = Annotated[
        int | None,
        typer.Option(
            "--batches",
            min=0,
            metavar="N",
            help="Where every DataLoader stops, so that validation is reached; a quarter of the steps, 0 for nowhere.",
        ),
    ]
    timeout = Annotated[
        float | None,
        typer.Option("--timeout", min=1.0, metavar="SECONDS", help="How long one run may take; 120 by default."),
    ]
    device = Annotated[str | None, typer.Option("--device", metavar="auto|cpu|cuda", help="Where to run.")]
    python = Annotated[
        str | None, typer.Option("--python", metavar="FILE", help="The interpreter that has torch; by default ours.")
    ]
    stand_in = Annotated[
        list[str] | None,
        typer.Option(
            "--stand-in",
            metavar="PATH=TYPE:SHAPE",
            help="Make up a missing file, such as data/x.npy=float32:1000,3,32,32 or y.npy=int64:1000<10; repeatable.",
        ),
    ]
    no_data = Annotated[
        bool, typer.Option("--no-data", help="No stand-ins for torchvision's data sets where their files are missing.")
    ]
    memory = Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="How much memory a run may take, such as 8G; half of the machine's."
        ),
    ]
    memory_limit = Annotated[
        str | None,
        typer.Option(
            "--memory-limit", metavar="SIZE", help="How much of the GPU's memory, so that a leak soon meets it."
        ),
    ]
    disk = Annotated[
        str | None, typer.Option("--disk", metavar="SIZE", help="How much a run may write; 2G by default.")
    ]
    network = Annotated[bool, typer.Option("--network", help="Let the script reach the network.")]
    seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, metavar="N", help="Seed of all generators.")]
    tolerance = Annotated[
        float | None,
        typer.Option("--tolerance", min=0.0, metavar="X", help="What counts as rounding, relatively; 1e-3 by default."),
    ]
    isolation = Annotated[
        str | None,
        typer.Option("--isolation", metavar="auto|overlay|copy", help="How the user's files are kept from harm."),
    ]


def settings_of(
    *,
    steps: int | None = None,
    batches: int | None = None,
    timeout: float | None = None,
    device: str | None = None,
    python: str | None = None,
    stand_in: Sequence[str] | None = None,
    no_data: bool = False,
    memory: str | None = None,
    memory_limit: str | None = None,
    disk: str | None = None,
    network: bool = False,
    seed: int = 0,
    tolerance: float | None = None,
    isolation: str | None = None,
) -> Settings:
    """Return the settings that the options come to; raises :class:`UserError` for one that makes no sense."""
    from verify import settings as defaults
    from verify.errors import VerifyError
    from verify.standins import parse

    try:
        executable = defaults.interpreter(python, Path.cwd()) if python else sys.executable
    except VerifyError as error:
        raise UserError(f"--python {error}") from None
    try:
        stand_ins = tuple(parse(text) for text in stand_in or ())
    except ValueError as error:
        raise UserError(f"--stand-in: {error}") from None
    return defaults.Settings(
        steps=steps or defaults.STEPS,
        batches=batches,
        timeout=timeout or defaults.TIMEOUT,
        seed=seed,
        device=_choice("--device", device, DEVICES),
        python=executable,
        memory=_size("--memory", memory),
        memory_limit=_size("--memory-limit", memory_limit),
        disk=_size("--disk", disk) or defaults.DISK,
        network=network,
        data=not no_data,
        stand_ins=stand_ins,
        tolerance=defaults.TOLERANCE if tolerance is None else tolerance,
        isolation=cast("Mode", _choice("--isolation", isolation, ISOLATIONS)),
    )


def teller(quiet: bool) -> Callable[[str], None]:
    """Return what tells a person who waits what is being run; it says nothing where nobody watches."""
    watched = not quiet and sys.stderr.isatty()

    def tell(text: str) -> None:
        if watched:
            complain(text)

    return tell


def _choice(option: str, given: str | None, known: Sequence[str]) -> str:
    if given is not None and given not in known:
        raise UserError(f"{option} {given}: must be one of {', '.join(known)}")
    return given or known[0]


def _size(option: str, given: str | None) -> int | None:
    """Return the bytes that ``given`` stands for: a number with or without k, M, G or T (powers of 1024)."""
    if given is None:
        return None
    match = _SIZE.fullmatch(given.strip())
    if match is None or float(match[1]) <= 0:
        raise UserError(f"{option} {given}: must be a size such as 500M or 8G")
    return int(float(match[1]) * (1 << _UNITS[match[2].lower()]))
