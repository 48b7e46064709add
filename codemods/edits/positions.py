"""Where a node of :mod:`ast` stands, in characters.

:mod:`ast` counts columns in UTF-8 bytes, and splits lines only at ``\\n``, ``\\r\\n`` and ``\\r``: not at form feeds or
others where :meth:`str.splitlines` does.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.terms.spans import Span

BOM = "\ufeff"


def split_lines(text: str) -> list[str]:
    """The lines of ``text`` as :mod:`ast` counts them, without their ends and without a byte order mark."""
    return text.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n").split("\n")


def column_of(line: str, byte_column: int) -> int:
    """The column in characters of what stands ``byte_column`` UTF-8 bytes into ``line``."""
    if line.isascii():
        return byte_column
    return len(line.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "surrogatepass"))


def span_of(node: ast.AST, lines: Sequence[str]) -> Span:
    """The span of ``node``, a node with a position, in the text that :func:`split_lines` made ``lines`` of.

    Raises AttributeError for nodes without a position, such as operators.
    """
    line: int = node.lineno  # type: ignore[attr-defined]
    end_line: int = node.end_lineno  # type: ignore[attr-defined]
    return Span(
        line,
        column_of(lines[line - 1], node.col_offset),  # type: ignore[attr-defined]
        end_line,
        column_of(lines[end_line - 1], node.end_col_offset),  # type: ignore[attr-defined]
    )
