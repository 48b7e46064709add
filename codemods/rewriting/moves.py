"""Statements that a change by hand moves into another block, or out of one: what their old and their new blocks do to
them has to be seen, although no text of it changed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from codemods.rewriting.choices import CATCHING, catching, name_of
from codemods.rewriting.parts import CLAUSES, IDLE, SUITES, Piece, header, of_header
from codemods.source.errors import SourceError
from codemods.source.syntax import parse

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _Block(NamedTuple):
    """A suite of ``owner``; those of the same ``text`` do the same."""

    owner: ast.AST
    text: str


def moved(here: str, there: str, path: str, lines: Collection[int], gone: Collection[int] = ()) -> list[Piece]:
    """The pieces of the blocks in ``here`` around statements that ``there`` has in other blocks of the same function.

    Of those at ``lines``, and of those that stand at the lines ``gone`` there; empty where a text cannot be read.
    """
    try:
        mine, theirs = parse(here, path), parse(there, path)
    except SourceError:
        return []
    ours, others = list(_placed(mine)), list(_placed(theirs))
    left = Counter(map(_key, others)) - Counter(map(_key, ours))
    new = Counter(map(_key, ours)) - Counter(map(_key, others))
    known = {_key(each) for each in others if not set(header(each[0])).isdisjoint(gone)}
    catches = catching(mine)
    found: list[Piece] = []
    for each in ours:
        node, text, scope, blocks = each
        before = [key for key in left if key[:2] == (text, scope)]
        if isinstance(node, IDLE) or not new[_key(each)] or not before:
            continue
        if known.isdisjoint(before) and set(header(node)).isdisjoint(lines):
            continue
        for block in blocks:
            if block.text not in before[0][2] and _does_something(block.owner, catches):
                found += of_header(block.owner, here, path)
    return found


_Placed = tuple[ast.stmt, str, str, tuple[_Block, ...]]


def _key(each: _Placed) -> tuple[str, str, tuple[str, ...]]:
    _, text, scope, blocks = each
    return text, scope, tuple(block.text for block in blocks)


def _placed(node: ast.AST, scope: str = "", blocks: tuple[_Block, ...] = ()) -> Iterator[_Placed]:
    """The statements below ``node``, each as a text, with the function that it stands in and the blocks there."""
    if isinstance(node, _SCOPES):
        scope, blocks = f"{scope}.{node.name}", ()
    for name in SUITES:
        for child in getattr(node, name, None) or ():
            if isinstance(child, CLAUSES):
                yield from _placed(child, scope, (*blocks, _Block(child, f"{_headed(child)} {name}")))
                continue
            inside = blocks
            if not isinstance(node, (ast.Module, *_SCOPES, *CLAUSES)):
                inside = (*blocks, _Block(node, f"{_headed(node)} {name}"))
            yield child, ast.dump(child), scope, inside
            yield from _placed(child, scope, inside)


def _headed(node: ast.AST) -> str:
    """The text of the header of ``node``."""
    return " ".join(
        ast.dump(child)
        for child in ast.iter_child_nodes(node)
        if not isinstance(child, (ast.stmt, *CLAUSES)) or isinstance(child, ast.ExceptHandler)
    )


def _does_something(owner: ast.AST, catches: Collection[str]) -> bool:
    """Whether a block may leave out what stands in it, do it again, or end an error."""
    if isinstance(owner, ast.With | ast.AsyncWith):
        return any(name_of(item.context_expr) in {*catches, *CATCHING} for item in owner.items)
    return True
