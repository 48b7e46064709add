"""Which lines run only if a rewrite matters: what ``verify`` watches, before the rewrite and after it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codemods.edits.model import (
    AddDecorator,
    AddHelper,
    Edit,
    InsertStatements,
    MoveStatement,
    RemoveIdentity,
    RemoveStatement,
    WrapBlock,
)
from codemods.findings import Span
from codemods.source.syntax import parse
from codemods.tracking import LineMap

Line = tuple[str, int]


@dataclass(frozen=True)
class Touched:
    """Lines of the original: those that an edit changes or whose meaning it changes, and those it adds lines next to.

    A line is a path and a number from 1. A decorator's own line runs when the function is defined, whoever calls it
    afterwards; what counts there is the function's body.
    """

    changed: frozenset[Line]
    beside: frozenset[Line]

    def before(self) -> frozenset[Line]:
        """The lines to watch in the original."""
        return self.changed | self.beside

    def after(self, old: Mapping[str, str], new: Mapping[str, str]) -> frozenset[Line]:
        """The lines to watch in the rewritten tree, given the texts by path before and after."""
        watched: set[Line] = set()
        for path in {path for path, _ in self.before()}:
            if path not in new or new[path] == old[path]:
                watched.update(line for line in self.before() if line[0] == path)
                continue
            lines = LineMap(old[path], new[path])
            for number in range(1, len(lines.new) + 1):
                origins = lines.origins(number)
                # What is added may share a line with its neighbour.
                added = not origins or all(lines.old[origin - 1] != lines.new[number - 1] for origin in origins)
                if any((path, origin) in self.changed for origin in origins) or (
                    added and (path, lines.origin(number)) in self.beside
                ):
                    watched.add((path, number))
        return frozenset(watched)


def touched_by(edits: Mapping[str, Iterable[Edit]], texts: Mapping[str, str]) -> Touched:
    """Return what ``edits`` (by path) touch in ``texts`` (by path)."""
    changed: set[Line] = set()
    beside: set[Line] = set()
    for path, made in edits.items():
        for edit in made:
            lines, near = _lines(edit, texts[path], path)
            changed.update((path, line) for line in lines)
            beside.update((path, line) for line in near)
    return Touched(frozenset(changed), frozenset(beside))


def _lines(edit: Edit, text: str, path: str) -> tuple[Iterable[int], Iterable[int]]:
    match edit:
        case AddDecorator(function=span):
            return _body(text, span, path), ()
        case WrapBlock(first=first, last=last):
            return range(first.line, last.end_line + 1), ()
        case InsertStatements(anchor=anchor, where=where):
            return _place(text, anchor, where, path)
        case MoveStatement(target=span, anchor=anchor, where=where):
            lines, near = _place(text, anchor, where, path)
            return (*range(span.line, span.end_line + 1), *lines), near
        case RemoveStatement(target=span) | RemoveIdentity(target=span):
            return (*range(span.line, span.end_line + 1), *_followers(text, span, path)), ()
        case AddHelper():
            return (), ()
        case _:
            span = getattr(edit, "target", None) or edit.call  # type: ignore[union-attr]
            return range(span.line, span.end_line + 1), ()


def _followers(text: str, span: Span, path: str) -> Iterable[int]:
    """Return the first lines of the statements around the one at ``span`` in its suite: of those behind it, which run
    only after it, or if there are none of those before it. Of what is removed no line is left to be watched."""
    for node in ast.walk(parse(text, path)):
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(node, name, None)
            lines = [statement.lineno for statement in suite] if isinstance(suite, list) else []
            if span.line in lines:
                place = len(lines) - 1 - lines[::-1].index(span.line)
                return lines[place + 1 :] or lines[:place]
    return ()


def _place(text: str, anchor: Span, where: str, path: str) -> tuple[Iterable[int], Iterable[int]]:
    if where == "before":
        return (anchor.line,), ()
    if where == "after":
        # That the anchor began to run does not say that what follows it did: only the added lines themselves do.
        return (), (anchor.end_line, anchor.end_line + 1)
    return _body(text, anchor, path), ()


def _body(text: str, span: Span, path: str) -> Iterable[int]:
    """Return the lines of the suite of the statement at ``span``, without its header and docstring."""
    for node in ast.walk(parse(text, path)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and getattr(node, "lineno", None) == span.line and body:
            first = body[0]
            if len(body) > 1 and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                first = body[1]
            return range(first.lineno, (body[-1].end_lineno or first.lineno) + 1)
    return range(span.line, span.end_line + 1)
