"""The options of commands that run scripts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from codemods.cli._terminal import UserError, complain
from codemods.source.secrets import Secrets

if TYPE_CHECKING:
    from verify.isolation.workspace import Mode
    from verify.running.settings import Settings

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
DEVICES = ("auto", "cpu", "cuda")
ISOLATIONS = ("auto", "overlay", "copy")


class RunOptions:
    """The options, as typer reads them."""

    steps = Annotated[
        int | None,
        typer.Option("--steps", min=1, metavar="N", help="End a run after this many optimizer steps; 20 by default."),
    ]
    batches = Annotated[
        int | None,
        typer.Option(
            "--batches",
            min=0,
            metavar="N",
            help="End each DataLoader after this many batches, to reach validation; by default a quarter of the steps, "
            "0 for no end.",
        ),
    ]
    timeout = Annotated[
        float | None,
        typer.Option(
            "--timeout", min=1.0, metavar="SECONDS", help="End a run after this many seconds; 120 by default."
        ),
    ]
    device = Annotated[str | None, typer.Option("--device", metavar="auto|cpu|cuda", help="Run on this device.")]
    python = Annotated[
        str | None,
        typer.Option("--python", metavar="FILE", help="Run with this Python, which has torch; by default ours."),
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
        bool, typer.Option("--no-data", help="Do not replace missing torchvision data sets by stand-ins.")
    ]
    memory = Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Limit the memory of a run, such as 8G; by default half of the machine's."
        ),
    ]
    memory_limit = Annotated[
        str | None,
        typer.Option(
            "--memory-limit", metavar="SIZE", help="Limit the GPU memory of a run, so that a leak soon meets it."
        ),
    ]
    disk = Annotated[str | None, typer.Option("--disk", metavar="SIZE", help="Limit what a run writes; 2G by default.")]
    network = Annotated[bool, typer.Option("--network", help="Let the script reach the network.")]
    seed = Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, metavar="N", help="Seed all random generators with this.")
    ]
    tolerance = Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            min=0.0,
            metavar="X",
            help="Take relative differences up to this for rounding; 1e-3 by default.",
        ),
    ]
    env = Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME[=VALUE]",
            help="Pass this environment variable to the script; by default it gets none that could be a secret.",
        ),
    ]
    expose = Annotated[
        list[str] | None,
        typer.Option(
            "--expose", metavar="PATH", help="Let the script read this file or folder of your home; repeatable."
        ),
    ]
    reach = Annotated[
        float | None,
        typer.Option(
            "--reach",
            min=0.0,
            metavar="SECONDS",
            help="Spend this many seconds on reaching lines that the runs missed; 4 timeouts by default, 0 for none.",
        ),
    ]
    shapes_only = Annotated[
        bool,
        typer.Option(
            "--shapes-only",
            help="Run two steps by shapes, without memory: errors of shape and graph, and an estimate of memory.",
        ),
    ]
    isolation = Annotated[
        str | None,
        typer.Option("--isolation", metavar="auto|overlay|copy", help="Protect your files this way."),
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
    reach: float | None = None,
    isolation: str | None = None,
    env: Sequence[str] | None = None,
    expose: Sequence[str] | None = None,
    shapes: bool = False,
) -> Settings:
    """Return the settings that the options come to; raises :class:`UserError` for one that makes no sense."""
    from verify.errors import VerifyError
    from verify.running import settings as defaults
    from verify.running.standins import parse

    try:
        executable = defaults.interpreter(python, Path.cwd()) if python else sys.executable
    except VerifyError as error:
        raise UserError(f"--python {error}") from None
    try:
        variables = defaults.variables(env or (), os.environ)
        exposed = defaults.exposed(expose or (), Path.cwd())
    except VerifyError as error:
        raise UserError(str(error)) from None
    try:
        stand_ins = tuple(parse(text) for text in stand_in or ())
    except ValueError as error:
        raise UserError(f"--stand-in: {error}") from None
    return defaults.Settings(
        steps=steps or (defaults.STEPS_BY_SHAPES if shapes else defaults.STEPS),
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
        reach=reach,
        isolation=cast("Mode", _choice("--isolation", isolation, ISOLATIONS)),
        environment=variables,
        expose=exposed,
        shapes=shapes,
    )


def masked_words(words: Sequence[str], env: Sequence[str] | None = None) -> list[str]:
    """Return the words of a command line without values of variables that look secret, those of ``--env`` too."""
    secrets = Secrets((os.environ, dict(text.split("=", 1) for text in env or () if "=" in text)))
    return list(map(secrets.mask, words))


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
