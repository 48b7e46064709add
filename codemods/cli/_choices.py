"""What options come to together with the configuration file."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from codemods.cli._terminal import BadValue
from codemods.reports import Detail, formats
from codemods.rules import UnknownRule, require_known
from codemods.source import options
from codemods.source.config import find_config, is_version, load_config
from codemods.source.home import needs
from codemods.source.options import Options, PerFileIgnores
from codemods.terms.errors import UserError

#: What an option may be, its default first.
CHOICES = {"format": ("text", *(name for name in formats() if name != "text")), **options.CHOICES}

#: The names of the option, the second of which is ruff's.
FORMAT = ("--format", "--output-format")


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
    settings = load_config(start, config)
    file = config or find_config(start)
    root = None if chosen["exclude"] else file
    if file is not None:
        settings |= _beside(file.parent.absolute(), settings)
    for name, value in settings.items():
        if chosen.get(name) in (None, ()):
            chosen[name] = value
    for name, choices in CHOICES.items():
        chosen[name] = chosen.get(name) or choices[0]
        if chosen[name] not in choices:
            spellings = FORMAT if name == "format" else (f"--{name.replace('_', '-')}",)
            raise BadValue(spellings, chosen[name], f"must be one of {', '.join(choices)}")
    if chosen.get("quiet") and chosen.get("verbose"):
        raise UserError("--quiet and --verbose exclude each other")
    _require_known_rules(file, settings, chosen)
    target = chosen["target_torch"] = chosen.get("target_torch") or "current"
    if not is_version(target):
        raise UserError(f"--target-torch {target}: must be a version of PyTorch, as 0.4 or 1.13.1, or current")
    if chosen.get("python2") and importlib.util.find_spec("fissix") is None:
        raise UserError(needs("--python2", "fissix", "python2"))
    return Choices(chosen, root.parent if root else None)


def _beside(folder: Path, settings: Mapping[str, object]) -> dict[str, object]:
    """Those of ``settings`` that name files, which are meant from ``folder`` on."""
    beside: dict[str, object] = {}
    if "per_file_ignores" in settings:
        beside["per_file_ignores"] = PerFileIgnores(str(folder), cast("Any", settings["per_file_ignores"]))
    if "baseline" in settings:
        beside["baseline"] = str(folder / str(settings["baseline"]))
    return beside


def _require_known_rules(file: Path | None, settings: Mapping[str, Any], chosen: Mapping[str, Any]) -> None:
    """Raise :class:`UserError` for a rule that there is not, with the ``file`` and the key where it is named."""
    per_file = settings.get("per_file_ignores") or PerFileIgnores()
    written = {"select": settings.get("select", ()), "ignore": settings.get("ignore", ())}
    written["per-file-ignores"] = tuple(rule for _, rules in per_file.entries for rule in rules)
    for key, names in written.items():
        try:
            require_known(names)
        except UnknownRule as error:
            raise UserError(f"{file}: {key}: {error}") from None
    require_known((*chosen["select"], *chosen["ignore"]))


def _names(values: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for value in values or () for name in value.split(",") if name.strip()))
