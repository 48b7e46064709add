"""What shells complete: typer answers them, and asks here for the values of options and arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple


class Candidate(NamedTuple):
    """What may stand at the cursor, as click takes it."""

    value: str
    help: str | None = None
    type: str = "plain"


def script(shell: str) -> str:
    """Return what ``shell`` loads to complete ``codemod``."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    return get_completion_script(prog_name="codemod", complete_var="_CODEMOD_COMPLETE", shell=shell) + "\n"


def prepare(command: Any) -> None:
    """Let typer complete ``command``, and let those below it offer the values that the help names by a metavar."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
    _offer_values(command)
    # bash takes `--option=value` for three words
    words = re.split(r"\s", os.environ.get("COMP_WORDS", ""))
    at = int(os.environ.get("COMP_CWORD") or 0)
    if "=" in words[:at]:
        os.environ["COMP_WORDS"] = " ".join([*(word for word in words[:at] if word != "="), *words[at:]])
        os.environ["COMP_CWORD"] = str(at - words[:at].count("="))


def _offer_values(command: Any) -> None:
    for inner in getattr(command, "commands", {}).values():
        _offer_values(inner)
    for param in command.params:
        if "|" in (param.metavar or "") or (param.metavar or "").startswith("RULE"):
            param.shell_complete = lambda _, current, metavar=param.metavar: list(_values(metavar, current))


def _values(metavar: str, current: str) -> Iterator[Candidate]:
    """The values that begin with ``current``: rules, or one of a few words."""
    if metavar.startswith("RULE"):
        from codemods.rules import rule_names

        listed, comma, part = current.rpartition(",") if "," in metavar else ("", "", current)
        for name in rule_names():
            if name.startswith(part) and name not in listed.split(","):
                yield Candidate(f"{listed}{comma}{name}")
    else:
        yield from (Candidate(word) for word in metavar.split("|") if word.startswith(current))
