"""How a verification is made again: the command line and the settings that differ from the defaults."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from codemods.terms.counting import bytes_text
from verify.measured.results import Verification
from verify.running.settings import Settings

#: Settings that no option of the command line stands for.
_WITHOUT_OPTION = frozenset({"threads"})
#: What the command line recorded of itself.
_CALL = ("command_line", "folder", "shell")
_SIZES = frozenset({"memory", "memory_limit", "disk"})


def folder(verification: Verification) -> str:
    """Return the folder in which :func:`command_line` is to be given: where it was given, else the root."""
    return str(verification.settings.get("folder", verification.root))


def command_line(verification: Verification) -> str:
    """Return the command that makes ``verification`` again, to be given in :func:`folder`; empty if nothing was run.

    It is ``settings["shell"]`` (a text) or ``settings["command_line"]`` (a sequence of words) where one was recorded,
    else made of the entries and of the settings that are not the default.
    """
    if verification.settings.get("shell"):
        return str(verification.settings["shell"])
    recorded = verification.settings.get("command_line")
    if isinstance(recorded, (list, tuple)):
        return shlex.join(str(word) for word in recorded)
    if not verification.entries:
        return ""
    words = ["codemod", "verify", *options(verification.settings)]
    commands = [entry.command for entry in verification.entries]
    if len(commands) == 1 and _is_python(commands[0]):
        return shlex.join([*words, *_script(commands[0][1:])])
    for command in commands:
        shown = command[1:] if _is_python(command) else (os.path.basename(command[0]), *command[1:])
        words += ["--entry", shlex.join(shown)]
    return shlex.join(words)


def settings_shown(verification: Verification) -> list[tuple[str, str]]:
    """Return the settings for people, by name."""
    rows = []
    for name, value in verification.settings.items():
        if name in _CALL or value is None or value in ({}, [], ()):
            continue
        if name in _REPEATED and isinstance(value, (list, tuple)):
            rows.append((name, ", ".join(map(_REPEATED[name][1], value))))
        elif name in _SIZES and isinstance(value, int):
            rows.append((name, bytes_text(value)))
        elif isinstance(value, bool):
            rows.append((name, "yes" if value else "no"))
        else:
            rows.append((name, f"{value:g}" if isinstance(value, float) else str(value)))
    return rows


def _is_python(command: Sequence[str]) -> bool:
    return len(command) > 1 and os.path.basename(command[0]).startswith("python")


def _script(words: Sequence[str]) -> list[str]:
    named = 2 if words[0] == "-m" else 1
    arguments = list(words[named:])
    return [*words[:named], *(["--", *arguments] if arguments else [])]


def options(settings: Mapping[str, object]) -> Iterator[str]:
    """The words of the options for ``settings`` that are not the default and mean the same on any machine."""
    defaults = Settings().told()
    for name, value in settings.items():
        if name in _WITHOUT_OPTION or name not in defaults or value == defaults[name]:
            continue
        if name == "data":
            yield "--no-data"
        elif name in _REPEATED and isinstance(value, (list, tuple)):
            option, text = _REPEATED[name]
            for each in value:
                yield from (option, text(each))
        elif value is True:
            yield f"--{name.replace('_', '-')}"
        elif value is not None:
            yield from (f"--{name.replace('_', '-')}", str(value))


def _stand_in(value: Any) -> str:
    """Return the declaration that :func:`verify.running.standins.parse` reads as ``value``."""
    if not isinstance(value, Mapping):
        return str(value)
    key = f"[{value['key']}]" if value.get("key") else ""
    below = "" if value.get("below") is None else f"<{value['below']}"
    return f"{value['path']}{key}={value['dtype']}:{','.join(map(str, value['shape']))}{below}"


#: Settings that are lists: the option that is repeated for them, and how an entry is written.
_REPEATED: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "stand_ins": ("--stand-in", _stand_in),
    "environment": ("--env", str),
    "expose": ("--expose", str),
}
