"""Which lines run only if a rewrite matters: what ``verify`` watches, before the rewrite and after it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codemods.source.errors import SourceError
from codemods.source.line_map import LineMap
from codemods.source.syntax import parse
from codemods.terms.edits import (
    AddDecorator,
    AddHelper,
    Edit,
    InsertStatements,
    MoveStatement,
    RemoveIdentity,
    RemoveStatement,
    WrapBlock,
)
from codemods.terms.spans import Span

Line = tuple[str, int]


@dataclass(frozen=True)
class Touched:
    """Lines of the original: those that an edit changes or whose meaning it changes, and those it adds lines next to.

    A line is a path and a number from 1. A decorator's own line runs when the function is defined, whoever calls it
    afterwards; what counts there is the function's body. ``whole``: all of ``changed`` was written anew, also where a
    line looks as before, because it is a hunk that somebody made by hand.
    """

    changed: frozenset[Line]
    beside: frozenset[Line]
    whole: bool = False

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
        return frozenset(watched) or self._gaps(old, new)

    def _gaps(self, old: Mapping[str, str], new: Mapping[str, str]) -> frozenset[Line]:
        """The lines that follow where lines were taken out and nothing took their place."""
        found: set[Line] = set()
        for path in {path for path, _ in self.changed if path in new}:
            lines = LineMap(old[path], new[path])
            last = max(line for place, line in self.changed if place == path)
            after = (number for number in range(1, len(lines.new) + 1) if lines.origin(number) > last)
            found.update((path, number) for number in after if lines.new[number - 1])
        return frozenset(sorted(found)[:1])

    def statements(self, old: Mapping[str, str], new: Mapping[str, str]) -> list[frozenset[Line]]:
        """The lines of each statement that this writes or changes in the rewritten tree.

        What is only moved to the right, or stands under a new decorator, is not among them.
        """
        maps: dict[str, LineMap] = {}
        found: set[Line] = set()
        for path, number in self.after(old, new):
            if path not in new or new[path] == old[path]:
                continue
            if path not in maps:
                maps[path] = LineMap(old[path], new[path])
            lines = maps[path]
            origins = lines.origins(number)
            written = lines.new[number - 1] not in [lines.old[origin - 1] for origin in origins]
            own = any((path, origin) in self.changed for origin in origins)
            if own if self.whole and self.changed else written:
                found.add((path, number))
        return statements(found, new)

    def replaced(
        self, old: Mapping[str, str], new: Mapping[str, str], texts: Mapping[str, str]
    ) -> list[frozenset[Line]]:
        """The lines of each statement that a hunk takes away, in a tree in which it was not done; ``texts`` are those
        of files that are the same in ``old`` and ``new``."""
        return statements(self.still(old, new), {**texts, **new}) if self.whole and self.changed else []

    def still(self, old: Mapping[str, str], new: Mapping[str, str]) -> frozenset[Line]:
        """The lines to watch in a tree in which this was not done, but other things: where :meth:`before` has gone."""
        return standing(self.before(), old, new)


def standing(lines: Iterable[Line], old: Mapping[str, str], new: Mapping[str, str]) -> frozenset[Line]:
    """Return the lines that stand for ``lines`` of ``old`` in ``new``, both texts by path."""
    wanted = frozenset(lines)
    found: set[Line] = set()
    for path in {path for path, _ in wanted}:
        if path not in new or new[path] == old[path]:
            found.update(line for line in wanted if line[0] == path)
            continue
        mapped = LineMap(old[path], new[path])
        for number in range(1, len(mapped.new) + 1):
            if any((path, origin) in wanted for origin in mapped.origins(number)):
                found.add((path, number))
    return frozenset(found)


#: Statements of which nothing is left to run, or which Python may have joined with their neighbours.
_IDLE = (ast.Pass, ast.Continue, ast.Break, ast.Global, ast.Nonlocal)


def statements(lines: Iterable[Line], texts: Mapping[str, str]) -> list[frozenset[Line]]:
    """Return the lines of each statement that one of ``lines`` belongs to, of compound ones those of the header alone.

    Statements that do nothing when they run are left out, and so are files that cannot be read.
    """
    wanted: dict[str, set[int]] = {}
    for path, number in lines:
        wanted.setdefault(path, set()).add(number)
    found: list[frozenset[Line]] = []
    for path, numbers in sorted(wanted.items()):
        try:
            tree = parse(texts[path], path)
        except (KeyError, SourceError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.stmt) or isinstance(node, _IDLE) or _says_nothing(node):
                continue
            own = _own(node)
            if numbers.intersection(own):
                found.append(frozenset((path, number) for number in own))
    return found


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _own(node: ast.stmt) -> range:
    """The lines of a statement without those inside it."""
    suites = [getattr(node, name, None) for name in ("body", "orelse", "finalbody", "handlers", "cases")]
    inner = [suite[0] for suite in suites if isinstance(suite, list) and suite]
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    if not inner:
        return range(first, (node.end_lineno or node.lineno) + 1)
    starts = [each.lineno for each in inner if hasattr(each, "lineno")]
    starts += [case.pattern.lineno for case in getattr(node, "cases", ())]
    # On one line with its body, the header is that line.
    return range(first, max(first + 1, min(starts)))


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
