"""Arguments that a program asks for and nobody gave: their own defaults, else something of their type.

A text that the program compares with others is one of these: a made-up one would lead into no branch.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping
from typing import Any

from ..guarding.guard import Write

_MADE: dict[Any, Any] = {int: 2, float: 0.5, bool: False}


def install(compared: Mapping[str, str], write: Write) -> None:
    """Let parsers do without what they require; ``compared`` are texts by what the program calls the argument.

    Writes ``standin`` events.
    """
    original = argparse.ArgumentParser.parse_known_args
    told: set[str] = set()

    @functools.wraps(original)
    def parse_known_args(self: Any, args: Any = None, namespace: Any = None) -> Any:
        asked = [action for action in self._actions if _required(action)]
        for action in asked:
            action.required, action.nargs = False, "*" if action.nargs == "+" else action.nargs
            if not action.option_strings and action.nargs is None:
                action.nargs = "?"
        groups = [group for group in self._mutually_exclusive_groups if group.required]
        for group in groups:
            group.required = False
        found = original(self, args, namespace)
        for action in asked:
            if getattr(found[0], action.dest, None) in (None, []) and action.dest is not argparse.SUPPRESS:
                setattr(found[0], action.dest, _made(action, compared))
                if action.dest not in told:
                    told.add(action.dest)
                    why = "asked for, and not given; made up"
                    write({"event": "standin", "what": f"the argument {action.dest}", "why": why, "shape": None})
        return found

    argparse.ArgumentParser.parse_known_args = parse_known_args  # type: ignore[method-assign]


def _required(action: Any) -> bool:
    if isinstance(action, argparse._SubParsersAction):
        return False
    return bool(action.required) and action.nargs not in (argparse.REMAINDER, "?", "*")


def _made(action: Any, compared: Mapping[str, str]) -> Any:
    if action.default is not None:
        return action.default
    text = compared.get(action.dest, "made-up") if action.type in (None, str) else "made-up"
    one = next(iter(action.choices)) if action.choices else _MADE.get(action.type, text)
    count = action.nargs if isinstance(action.nargs, int) else 1
    return [one] * count if isinstance(action.nargs, int) or action.nargs == "*" else one
