"""What ``--help`` shows: the options in groups, and no types of Python."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

WHAT = "What to look for"
WHERE = "Where to look"
HOW = "How to rewrite"
REVIEW = "How to review"
REPORT = "How to report"
LEAVE = "What to leave alone"
PROOF = "How to prove"

_ORDER = (WHERE, WHAT, HOW, REVIEW, PROOF, LEAVE, REPORT)
_TYPE = re.compile(r" <[^<>]*>$")


class Command(TyperCommand):
    """A command whose options stand in groups, by the panel that each names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then each group of options."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *_ORDER, "Others")}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, told = record
            argument = param.param_type_name == "argument"
            group = "Arguments" if argument else getattr(param, "rich_help_panel", None) or "Others"
            groups[group].append((_TYPE.sub("", name), told.replace("  [required]", "")))
        alone = [name for name, rows in groups.items() if rows and name != "Arguments"] == ["Others"]
        for name, rows in groups.items():
            if rows:
                with formatter.section("Options" if alone and name == "Others" else name):
                    formatter.write_dl(rows)
