"""Which lines run only if a rewrite matters: what ``verify`` watches, before the rewrite and after it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from codemods.rewriting.constants import (
    changed_constants,
    changed_operands,
    dropped_calls,
    dropped_settings,
    fixed_values,
    unread_settings,
)
from codemods.rewriting.moves import moved
from codemods.rewriting.parts import (
    IDLE,
    Part,
    Piece,
    clause,
    header,
    header_end,
    missing,
    pieces,
    suites,
)
from codemods.rewriting.walks import later_walks
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
    line looks as before, because it is a hunk that somebody made by hand. ``meant``: and yet what it means is known,
    because it has one of the forms of ``codemod fix``.
    """

    changed: frozenset[Line]
    beside: frozenset[Line]
    whole: bool = False
    meant: bool = False

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
            if self.whole:
                # A new header over a line that only moved to the right stands for no line of before; one that only
                # changed places with such a line is not new.
                taken = {origin for number in range(1, len(lines.new) + 1) for origin in lines.origins(number)}
                gone = {line for number, line in enumerate(lines.old, 1) if number not in taken}
                for number in (*range(1, len(lines.new) + 1), *range(len(lines.new), 0, -1)):
                    near = {(path, number - 1), (path, number + 1)}
                    added = not lines.origins(number) and lines.new[number - 1] not in gone
                    if added and not watched.isdisjoint(near):
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
        return statements(self._written(old, new), new)

    def _written(self, old: Mapping[str, str], new: Mapping[str, str]) -> set[Line]:
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
            if own or not origins if self.whole and self.changed else written:
                found.add((path, number))
        return found

    def replaced(
        self, old: Mapping[str, str], new: Mapping[str, str], texts: Mapping[str, str]
    ) -> list[frozenset[Line]]:
        """The lines of each statement that a hunk takes away, in a tree in which it was not done; ``texts`` are those
        of files that are the same in ``old`` and ``new``."""
        return statements(self.still(old, new), {**texts, **new}) if self.whole and self.changed else []

    def parts(self, old: Mapping[str, str], new: Mapping[str, str], texts: Mapping[str, str]) -> list[Part]:
        """What within the statements that this writes has to run, too; ``texts`` as for :meth:`replaced`."""
        there = _pieces(self.changed, {**texts, **old})
        written = self._written(old, new)
        found = [*missing(_pieces(written, new), there, whole=self.whole), *self._walks(old, new, written)]
        return self._with_moved(found, new, old, written, self.changed) if self.whole else found

    @staticmethod
    def _with_moved(
        found: list[Part],
        here: Mapping[str, str],
        there: Mapping[str, str],
        lines: Iterable[Line],
        gone: Iterable[Line],
    ) -> list[Part]:
        """``found``, and what has to be seen of the blocks in ``here`` around statements at ``lines``, or at the lines
        ``gone`` of ``there``, that stand in others there."""
        parts = {part.place: part for part in found}
        mine, theirs = _by_path(lines), _by_path(gone)
        for path in (mine.keys() | theirs.keys()) & here.keys() & there.keys():
            for piece in moved(here[path], there[path], path, mine.get(path, ()), theirs.get(path, ())):
                parts.setdefault(piece.part.place, piece.part)
        return list(parts.values())

    def _walks(self, old: Mapping[str, str], new: Mapping[str, str], written: set[Line]) -> Iterator[Part]:
        before, after = _by_path(self.changed if self.whole else ()), _by_path(written)
        for path in before.keys() & new.keys():
            yield from later_walks(old[path], new[path], path, before[path], after.get(path, ()))

    def replaced_parts(
        self,
        old: Mapping[str, str],
        new: Mapping[str, str],
        texts: Mapping[str, str],
        final: Mapping[str, str],
    ) -> list[Part]:
        """The same of what a hunk takes away, in a tree in which it was not done; ``final`` are the texts by path in
        which all is done."""
        if not (self.whole and self.changed):
            return []
        without, still = {**texts, **new}, self.still(old, new)
        written = self._written(texts, final)
        here = missing(_pieces(still, without), _pieces(written, final), whole=True)
        return self._with_moved(here, without, final, still, written)

    def unproved(self, old: Mapping[str, str], new: Mapping[str, str]) -> str:
        """Say what a change by hand does of which no difference in a run is no proof: it alters constants and nothing
        else, adds or drops operands of conditions, or no longer sets something to a constant or calls something for its
        effect. Empty if it does something else.
        """
        if not self.whole:
            return ""
        before, after = _by_path(self.changed), _by_path(self._written(old, new))
        texts = [(old[path], new[path], path, before[path], after.get(path, ())) for path in before if path in new]
        told = [changed_constants(*each) for each in texts]
        if told and all(told):
            return f"a constant ({', '.join(told)})"
        operands = ", ".join(filter(None, (changed_operands(*each) for each in texts)))
        if operands:
            return f"part of a condition ({operands})"
        fixed = ", ".join(filter(None, (fixed_values(*each) for each in texts)))
        if fixed:
            return f"a value ({fixed})"
        unread = ", ".join(filter(None, (unread_settings(*each[:4]) for each in texts)))
        if unread:
            return f"that nothing reads {unread} any more"
        settings = ", ".join(filter(None, (dropped_settings(*each) for each in texts)))
        if settings:
            return f"a constant ({settings})"
        dropped = ", ".join(filter(None, (dropped_calls(*each) for each in texts)))
        return f"that {dropped} is gone" if dropped else ""

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


def statements(lines: Iterable[Line], texts: Mapping[str, str]) -> list[frozenset[Line]]:
    """Return the lines of each statement that one of ``lines`` belongs to, of compound ones those of the header alone.

    Statements that do nothing when they run are left out, and so are files that cannot be read.
    """
    found: list[frozenset[Line]] = []
    for path, numbers in sorted(_by_path(lines).items()):
        try:
            tree = parse(texts[path], path)
        except (KeyError, SourceError):
            continue
        for own, telling in _apart(tree):
            if numbers.intersection(own):
                found.append(frozenset((path, number) for number in telling))
    return found


def _pieces(lines: Iterable[Line], texts: Mapping[str, str]) -> list[Piece]:
    by_path = _by_path(lines)
    return [each for path in sorted(by_path) for each in pieces(texts.get(path, ""), path, by_path[path])]


def _by_path(lines: Iterable[Line]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for path, number in lines:
        found.setdefault(path, set()).add(number)
    return found


def _apart(tree: ast.AST) -> Iterator[tuple[range, range]]:
    """The lines of each statement and clause that show that it ran, and these lines."""
    for parent, suite in suites(tree):
        shared: int | None = header_end(parent)
        for node in suite:
            if not isinstance(node, ast.stmt):
                yield clause(node), clause(node)
                continue
            # What begins where something else ends does not run whenever the line does: it is a part, see parts.py.
            if not isinstance(node, IDLE) and not _says_nothing(node) and node.lineno != shared:
                yield header(node), header(node)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.body[-1].lineno > header_end(node):
                # What a signature says is seen by whoever calls.
                yield header(node), range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            shared = node.end_lineno


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


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
