"""What ``--help`` shows: the options in groups, and no types of Python."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from codemods.cli._terminal import emit

_ORDER = (
    "Where to look",
    "What to look for",
    "How to rewrite",
    "How to review",
    "How to prove",
    "How to run",
    "What a run may do",
    "What to leave alone",
    "How to report",
)
# An option of each group: `Annotated[str, where("--exclude", metavar="GLOB", help="...")]`.
where, what, how, review, proof, run, limits, leave, report = (
    partial(typer.Option, rich_help_panel=title) for title in _ORDER
)
_TYPE = re.compile(r" <[^<>]*>$")
_RANGE = re.compile(r"  \[[\d.]*[<=]*x[<>=\d.]*\]|; [\d.]*[<=]*x[<>=\d.]*(?=\])")
_LONG = 60


def _show(ctx: Any, param: Any, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        emit(f"{ctx.get_help()}\n", None)
        ctx.exit()


class _Helped:
    """Help is written as any output is, so that a full disk is told alike."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.callback = _show
        return option


class Group(_Helped, TyperGroup):
    """Commands in the order of their use."""


class Commands(Group):
    """The commands in alphabetical order."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names."""
        return sorted(self.commands)


class Command(_Helped, TyperCommand):
    """A command whose options stand in groups, by the panel that each names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then each group of options."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *_ORDER, "Others")}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, told = record
            if len(name) > _LONG:
                # A list of that length leaves no room for what the option is about.
                name, _, choices = name.rpartition(" ")
                name, told = f"{name} NAME", f"{told.removesuffix('.')}: {', '.join(choices.split('|'))}."
            told = _RANGE.sub("", told.replace("  [required]", ""))
            argument = param.param_type_name == "argument"
            group = "Arguments" if argument else getattr(param, "rich_help_panel", None) or "Others"
            groups[group].append((_TYPE.sub("", name), told))
        alone = [name for name, rows in groups.items() if rows and name != "Arguments"] == ["Others"]
        for name, rows in groups.items():
            if rows:
                with formatter.section("Options" if alone and name == "Others" else name):
                    formatter.write_dl(rows)
