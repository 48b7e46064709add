"""Keys of settings files: the values that each takes, and the message for a wrong one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


class Key(NamedTuple):
    """The values of a key: ``wanted`` names them in messages, ``read`` raises TypeError or ValueError for others."""

    wanted: str
    read: Callable[[Any], Any]


class KeyProblem(Exception):
    """A key is unknown, stands twice, or has a value that does not fit; the text says which and what would be right."""


def flag(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise TypeError
    return value


def natural(value: Any) -> int:
    """Read a whole number that is not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def text(value: Any) -> str:
    """Read a text that is not empty, without the space around it."""
    if not isinstance(value, str) or not value.strip():
        raise TypeError
    return value.strip()


def texts(value: Any) -> tuple[str, ...]:
    """Read a list of such texts."""
    if not isinstance(value, list):
        raise TypeError
    return tuple(map(text, value))


def size(value: Any) -> int:
    """Read a number of bytes: a text such as ``500M``, with or without k, M, G or T (powers of 1024)."""
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or float(match[1]) <= 0:
        raise ValueError
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def one_of(*choices: str) -> Key:
    """The key that is one of a few words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return Key("one of " + ", ".join(f'"{choice}"' for choice in choices), read)


FLAG = Key("true or false", flag)
NATURAL = Key("a whole number that is not negative", natural)


def read_table(
    where: str, table: Mapping[str, Any], keys: Mapping[str, Key], shown: Callable[[Any], str] = repr
) -> dict[str, Any]:
    """Return the values of ``table`` by their keys, spelled with underscores.

    ``where`` names the table to people, ``shown`` a value. Raises :class:`KeyProblem` for the first that is wrong.
    """
    found: dict[str, Any] = {}
    for written, value in table.items():
        name = written.replace("_", "-")
        key = keys.get(name)
        if key is None:
            raise KeyProblem(f"unknown key {written!r} in {where}{nearest(name, keys)}")
        if name.replace("-", "_") in found:
            raise KeyProblem(f"{name!r} is set twice in {where}, with - and with _")
        try:
            found[name.replace("-", "_")] = key.read(value)
        except (TypeError, ValueError) as error:
            # a sentence of the reader's own, as for a stand-in
            more = f": {error}" if str(error) else ""
            raise KeyProblem(f"{written!r} in {where} must be {key.wanted}, not {shown(value)}{more}") from None
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """What a message says after a name that is not ``known``: the one that is near, or all."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else "; known are " + ", ".join(known)
