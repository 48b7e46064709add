"""How a notebook's file writes the sources of its cells, so that a new one is written as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from codemods.source.jsontext import Cursor, Spelling

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class _String(NamedTuple):
    """A string as it stands in the file, and from where to where."""

    raw: str
    start: int
    end: int


class SourceStyle:
    """The style of ``content``, the JSON of a notebook, learnt from the sources that begin at ``starts``."""

    def __init__(self, content: str, starts: Sequence[int]) -> None:
        self._content = content
        self._strings = {start: _strings(content, start) for start in starts}
        lists = self._strings.values()
        self._spelling = Spelling((string.raw[1:-1] for strings in lists for string in strings), content)
        self._between = next((content[one[0].end : one[1].start] for one in lists if len(one) > 1), None)

    def spell(self, start: int, end: int, old: str, new: str) -> str:
        """``new`` as the JSON of the source that stands from ``start`` to ``end`` and is ``old``."""
        written, strings = self._content[start:end], self._strings[start]
        if not written.startswith("["):
            return self._spelling.string(new, written)
        values = [json.loads(string.raw, strict=False) for string in strings]
        known = dict(zip(values, (string.raw for string in strings), strict=True))
        lines = [known.get(line) or self._spelling.string(line) for line in _cut(values, old, new)]
        if not lines:
            return "[]"
        opening = written[1 : strings[0].start - start] if strings else ""
        closing = written[strings[-1].end - start : -1] if strings else ""
        if len(strings) > 1:
            between = self._content[strings[0].end : strings[1].start]
        else:
            between = self._between or ("," + opening if opening else ", ")
        return f"[{opening}{between.join(lines)}{closing}]"


def _strings(content: str, start: int) -> list[_String]:
    """The strings of a source: one, or those of a list."""
    cursor = Cursor(content, start)
    found: list[_String] = []
    for _ in cursor.items() if cursor.is_at("[") else [None]:
        at = cursor.at
        cursor.value()
        found.append(_String(content[at : cursor.at], at, cursor.at))
    return [string for string in found if string.raw.startswith('"')]


def _cut(values: list[str], old: str, new: str) -> list[str]:
    """``new`` in a list as ``values`` are one of ``old``: lines, or where they are something else, as few new entries
    as there can be."""
    if values == old.splitlines(keepends=True):
        return new.splitlines(keepends=True)
    if values == _LINE.findall(old):
        return _LINE.findall(new)
    head = tail = 0
    left = new
    while head < len(values) and values[head] and left.startswith(values[head]):
        left = left[len(values[head]) :]
        head += 1
    while tail < len(values) - head and values[-1 - tail] and left.endswith(values[-1 - tail]):
        left = left[: -len(values[-1 - tail])]
        tail += 1
    return [*values[:head], *([left] if left else []), *values[len(values) - tail :]]
