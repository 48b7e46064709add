"""Walks through the graph that may need what a change by hand no longer keeps for them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator

from codemods.rewriting.choices import name_of
from codemods.rewriting.parts import Part, header
from codemods.source.errors import SourceError
from codemods.source.syntax import parse

_WALKS = frozenset(("backward", "grad", "manual_backward"))
_KEEPS = frozenset(("retain_graph", "create_graph"))
_MOST = 40


def later_walks(old: str, new: str, path: str, before: Collection[int], after: Collection[int]) -> list[Part]:
    """Where the statements at the lines ``after`` of ``new`` keep less of a graph than those at ``before`` of ``old``:
    the other calls of ``new`` that walk one, each of which has to run before it is known that none needs it."""
    flags = _flags(new, path, after)
    less = _flags(old, path, before) - flags
    if all(f"{flag.partition('=')[0]}=True" in flags for flag in less):
        return []
    found = []
    for node in _calls(new, path):
        if name_of(node) in _WALKS and node.lineno not in after:
            text = ast.unparse(node).splitlines()[0]
            end = node.end_lineno or node.lineno, node.end_col_offset or 0
            shown = text if len(text) <= _MOST else f"{text[:_MOST]}..."
            found.append(Part(path, node.lineno, node.col_offset, *end, "ran", shown))
    return found


def _flags(text: str, path: str, lines: Collection[int]) -> Counter[str]:
    """The flags that keep a graph in the statements at ``lines``, with what they are set to."""
    return Counter(
        ast.unparse(keyword)
        for node in _calls(text, path, lines)
        for keyword in node.keywords
        if keyword.arg in _KEEPS and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
    )


def _calls(text: str, path: str, lines: Collection[int] | None = None) -> Iterator[ast.Call]:
    """The calls of ``text``, of the statements at ``lines`` if they are given."""
    try:
        tree = parse(text, path)
    except SourceError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and lines is not None and not set(header(node)).isdisjoint(lines):
            yield from (each for each in ast.walk(node) if isinstance(each, ast.Call) and each.lineno in header(node))
        elif isinstance(node, ast.Call) and lines is None:
            yield node
