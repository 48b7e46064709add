"""Where the values of a JSON text stand in it, and how its strings are spelled, so that one can be replaced alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from codemods.source.diffs import shared_ends

_SPACE = re.compile(r"[ \t\n\r]*")
_SCAN: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_BEYOND_ASCII = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")


class Cursor:
    """A place in a JSON text that moves over its values; all of it raises json.JSONDecodeError for what is no JSON.

    Who walks through an object or a list moves the cursor over each value before asking for the next one.
    """

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at
        self._space()

    def value(self) -> Any:
        """The value here; the cursor moves past it."""
        try:
            found, self.at = _SCAN(self.text, self.at)
        except StopIteration as error:
            raise self._error("expecting a value", error.value) from None
        return found

    def members(self) -> Iterator[str]:
        """The keys of the object here, the cursor each time at the value."""
        self._enter("{")
        if self._leave("}"):
            return
        while True:
            if self.text[self.at : self.at + 1] != '"':
                raise self._error("expecting a name in double quotes")
            key, self.at = scanstring(self.text, self.at + 1, True)
            self._space()
            self._enter(":")
            yield key
            self._space()
            if self._leave("}"):
                return
            self._enter(",")

    def items(self) -> Iterator[None]:
        """The values of the list here, the cursor each time at one."""
        self._enter("[")
        if self._leave("]"):
            return
        while True:
            yield None
            self._space()
            if self._leave("]"):
                return
            self._enter(",")

    def require_end(self) -> None:
        """Raise an error if more than white space follows."""
        self._space()
        if self.at < len(self.text):
            raise self._error("more text after the end")

    def is_at(self, opening: str) -> bool:
        """Whether the value here begins so."""
        return self.text.startswith(opening, self.at)

    def _enter(self, opening: str) -> None:
        if not self.is_at(opening):
            raise self._error(f"expecting {opening!r}")
        self.at += 1
        self._space()

    def _leave(self, closing: str) -> bool:
        if self.is_at(closing):
            self.at += 1
            return True
        return False

    def _space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def _error(self, message: str, at: int | None = None) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self.text, self.at if at is None else at)


class Spelling:
    """How a file spells the characters of its strings, learnt from ``samples``, strings as they stand in ``text``."""

    def __init__(self, samples: Iterable[str], text: str) -> None:
        plain: set[str] = set()
        escaped: set[str] = set()
        self._upper = False
        for sample in samples:
            plain.update(_ESCAPE.sub("", sample))
            for code, letter in _ESCAPE.findall(sample):
                if code:
                    escaped.add(chr(int(code, 16)))
                    self._upper |= code != code.lower()
                elif letter == "/":
                    escaped.add("/")
        self._escaped = frozenset(escaped - plain - _SHORT.keys())
        beyond = {character for character in escaped if character > "\x7f"}
        if any(character > "\x7f" for character in plain):
            self._ascii = False
        else:
            self._ascii = bool(beyond) or (text.isascii() and _BEYOND_ASCII.search(text) is not None)

    def string(self, value: str, like: str = '""') -> str:
        """``value`` as a string in quotes; what it begins and ends with as in ``like`` is spelled as there."""
        units = _UNIT.findall(like[1:-1])
        known = [json.loads(f'"{unit}"', strict=False) for unit in units]
        if "".join(known) == value:
            return like
        head, tail = shared_ends(known, value) if all(len(character) == 1 for character in known) else (0, 0)
        middle = "".join(map(self._unit, value[head : len(value) - tail]))
        return f'"{"".join(units[:head])}{middle}{"".join(units[len(units) - tail :])}"'

    def _unit(self, character: str) -> str:
        if character in _SHORT:
            return _SHORT[character]
        if character == "/" and character in self._escaped:
            return "\\/"
        surrogate = "\ud800" <= character <= "\udfff"
        beyond = character > "\x7f" and (surrogate or self._ascii)
        if character >= " " and not beyond and character not in self._escaped:
            return character
        units = character.encode("utf-16-be", "surrogatepass").hex()
        codes = [units[at : at + 4] for at in range(0, len(units), 4)]
        return "".join(f"\\u{code.upper() if self._upper else code}" for code in codes)
