"""Edits of a text within its lines: every line keeps its number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

_NEWLINE = re.compile(rb"\r\n|\r|\n")


class Edit(NamedTuple):
    """``new`` takes the place of the bytes from ``begin`` to ``end``; of several that begin at one place the one with
    the smaller ``order`` stands first."""

    begin: int
    end: int
    new: bytes
    order: int = -1


class Text:
    """A text in which expressions are found by their places in the syntax tree."""

    def __init__(self, text: str) -> None:
        self._data = text.encode("utf-8")
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(self._data))]

    def span(self, node: ast.expr) -> tuple[int, int]:
        """The bytes of ``node``."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset

    def lines(self, node: ast.expr, kept: ast.expr | None = None) -> bytes:
        """As many ends of lines as there are in ``node``, behind ``kept``."""
        first = node.lineno if kept is None else kept.end_lineno or kept.lineno
        return b"\n" * ((node.end_lineno or node.lineno) - first)

    def edited(self, edits: Iterable[Edit]) -> str:
        """The text with all ``edits``, which do not overlap."""
        data = self._data
        for edit in sorted(edits, key=lambda edit: (edit.begin, edit.order, edit.new), reverse=True):
            data = data[: edit.begin] + edit.new + data[edit.end :]
        return data.decode("utf-8")
