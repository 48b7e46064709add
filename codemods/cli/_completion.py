"""Shell completion: the script that a shell loads, and the answers that it asks for.

The script runs ``codemod`` with the words of the command line up to the cursor, and the name of the shell in the
environment variable ``_CODEMOD_COMPLETE``. The answer is a candidate a line, for zsh and fish with a tab and a word of
help behind it; without an answer the shell completes files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codemods.cli._shells import VARIABLE


class Candidate(NamedTuple):
    """What may stand at the cursor, and a word of help."""

    value: str
    help: str = ""


def answer(words: Sequence[str]) -> int:
    """Print the candidates for the last of ``words``, in the form of the shell that asks; return the exit status."""
    shell = os.environ[VARIABLE]
    for candidate in candidates(words or [""]):
        told = " ".join(candidate.help.split()).replace(":", " -")
        print(candidate.value if shell == "bash" or not told else f"{candidate.value}\t{told}")
    sys.stdout.flush()
    return 0


def candidates(words: Sequence[str]) -> list[Candidate]:
    """What may stand in the place of the last of ``words``, which follow the name of the program."""
    import typer

    from codemods.cli._app import build, command_names

    *before, current = words
    if current == "=":
        # bash takes `--option=value` for three words.
        before, current = [*before, current], ""
    before = [word for word in before if word != "="]
    name = next((word for word in before if not word.startswith("-")), None)
    names = command_names()
    if name is not None and name not in names:
        return []
    root: Any = typer.main.get_command(build(names if name is None else (name,)))
    command = root if name is None else root.commands[name]
    given = before if name is None else before[before.index(name) + 1 :]
    option, _, value = current.partition("=")
    if option.startswith("--") and "=" in current:
        found = _values(_option(command, option), value)
        return [Candidate(f"{option}={one.value}", one.help) for one in found]
    if given and _takes_value(_option(command, given[-1])):
        return list(_values(_option(command, given[-1]), current))
    if current.startswith("-"):
        return sorted(_options(command, current))
    if name is None:
        return [Candidate(n, _summary(c)) for n, c in sorted(root.commands.items()) if n.startswith(current)]
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    return list(_values(arguments[0], current)) if arguments else []


def _options(command: Any, current: str) -> Iterator[Candidate]:
    for param in command.params:
        if param.param_type_name == "option":
            for text in (*param.opts, *param.secondary_opts):
                if text.startswith(current) and (text.startswith("--") or current == "-"):
                    yield Candidate(text, getattr(param, "help", "") or "")


def _option(command: Any, text: str) -> Any:
    return next((p for p in command.params if text.startswith("-") and text in (*p.opts, *p.secondary_opts)), None)


def _takes_value(param: Any) -> bool:
    return param is not None and not param.is_flag


def _values(param: Any, current: str) -> Iterator[Candidate]:
    """The values that ``param`` takes, as its name in the help says: rules, or one of a few words."""
    metavar = (param.metavar or "") if param is not None else ""
    if metavar.startswith("RULE"):
        from codemods.rules import rule_names

        listed, comma, part = current.rpartition(",") if "," in metavar else ("", "", current)
        for name in rule_names():
            if name.startswith(part) and name not in listed.split(","):
                yield Candidate(f"{listed}{comma}{name}")
    elif "|" in metavar:
        for word in metavar.split("|"):
            if word.startswith(current):
                yield Candidate(word)


def _summary(command: Any) -> str:
    return str(command.get_short_help_str(80))
