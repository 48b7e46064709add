"""What inside a changed statement may stay out of a run although its line runs: the sides of conditions, bodies of
comprehensions and lambdas, the second statement of a line; of conditions that changed, both of their outcomes; and
choices of which no run shows how they came out."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from codemods.proofs.syntax import defaults
from codemods.rewriting.choices import (
    CATCHING,
    WAITING,
    catching,
    fallbacks,
    fixed,
    is_choice,
    is_coarse,
    is_number,
    leaving,
    name_of,
    placing,
    sized,
)
from codemods.source.errors import SourceError
from codemods.source.syntax import parse

#: Longest text of a part that is told whole.
_MOST = 40
SUITES = ("body", "orelse", "finalbody", "handlers", "cases")
CLAUSES = (ast.ExceptHandler, ast.match_case)
#: ``except*`` is not known before Python 3.11.
TRIES: tuple[type[ast.Try], ...] = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))
#: Statements that leave nothing to run, or that Python may have joined with their neighbours.
IDLE = (ast.Pass, ast.Continue, ast.Break, ast.Global, ast.Nonlocal)


#: Which way a comparison goes; of two with the same way equal sides tell one from the other.
_ORDERS: dict[type[ast.cmpop], str] = {ast.Lt: "less", ast.LtE: "less", ast.Gt: "more", ast.GtE: "more"}
#: Comparisons that come out as one truth value, not as many.
_TELLING = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
#: What no run shows, by the kind of the part, and how people are told.
UNSEEN = {
    "value": "the outcome of `{}` cannot be observed",
    "fallback": "whether `{}` was ever needed cannot be seen",
    "size": "whether `{}` fits a batch of another size, such as the last one, cannot be seen",
    "error": "no error occurred that `{}` could catch",
    "ended": "what becomes of an error at `{}` was not seen",
    "order": "in this run nothing shows who waits at `{}`",
    "others": "whether errors come that only one of `except {}` and what stood there catches cannot be seen",
    "tie": "what becomes of equal sides of `{}` cannot be seen",
    "device": "on one device nothing shows what `{}` does",
}
DEFAULT = "default "


class Part(NamedTuple):
    """A place within a line, and what has to be seen there.

    ``kind``: ``ran`` if any of it runs, ``both`` if a condition was met and was not, ``loop`` if a loop turned and came
    to its end, ``default NAME`` if a call left that parameter to its default (the place begins with the function, then,
    as Python counts its lines); of those of :data:`UNSEEN` nothing can be seen. Columns count the bytes of UTF-8, from
    0; ``text`` is for people.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    kind: str
    text: str

    @property
    def place(self) -> tuple[str, int, int, int, int, str]:
        """What tells it from others."""
        return self[:6]

    def __str__(self) -> str:
        if self.kind == "both":
            return f"line {self.line} (`{self.text}` never came out the other way)"
        if self.kind == "loop":
            return f"line {self.line} (the loop over `{self.text}` never came to its end)"
        if self.kind in UNSEEN:
            return f"line {self.line} ({UNSEEN[self.kind].format(self.text)})"
        if self.kind.startswith(DEFAULT):
            return f"line {self.line} (no call left `{self.kind[len(DEFAULT) :]}` to its default `{self.text}`)"
        return f"line {self.line} from column {self.column + 1} (`{self.text}`)"


class Piece(NamedTuple):
    """A part with what it is: equal pieces of two texts do the same."""

    role: str
    dump: str
    part: Part
    trivial: bool


def pieces(text: str, path: str, lines: Collection[int]) -> list[Piece]:
    """Return the pieces of the statements of ``text`` that one of ``lines`` belongs to, of compound ones those of the
    header; none where the text cannot be read."""
    try:
        tree = parse(text, path)
    except SourceError:
        return []
    found = _Finder(text, path, catching(tree), sized(tree), leaving(tree))
    for parent, suite in suites(tree):
        shared: int | None = header_end(parent)
        for node in suite:
            if not isinstance(node, ast.stmt):
                if set(clause(node)).intersection(lines):
                    found.of_clause(node)
                continue
            if set(header(node)).intersection(lines):
                if node.lineno == shared and not isinstance(node, IDLE):
                    found.add("statement", node, node)
                found.of_statement(node)
            shared = node.end_lineno
    return found.pieces


def of_header(node: ast.AST, text: str, path: str) -> list[Piece]:
    """Return what has to be seen of the compound statement ``node`` of ``text`` where others enter it or leave it: that
    its condition came out both ways, that its loop turned and ended; of what ends errors nothing can be seen."""
    found = _Finder(text, path, (), (), ())
    match node:
        case ast.If(test=test) | ast.While(test=test):
            found.test("if", test)
        case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated):
            found.add("for", node, iterated, "loop", iterated)
        case _ if isinstance(node, TRIES):
            found.add("try", node.body[0], ast.Name("try"), "ended", start=(node.lineno, 0))
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                found.add("with", item.context_expr, item.context_expr, "ended")
    return found.pieces


def missing(here: list[Piece], there: list[Piece], *, whole: bool) -> list[Part]:
    """Return the parts of ``here`` that have no equal among ``there``: what has to run for a change to have run.

    ``whole``: the change was made by hand, so that nothing is known of how conditions come out.
    """
    known = Counter((piece.role, piece.dump) for piece in there)
    gone = known - Counter((piece.role, piece.dump) for piece in here)
    parts: dict[tuple[object, ...], Part] = {}
    for role, dump, part, trivial in here:
        known[role, dump] -= 1
        if part.kind == "tie" and role not in {each for each, _ in gone}:
            # Equal sides came out the same before: the outcomes are asked for.
            continue
        if known[role, dump] < 0 and (whole or (part.kind == "ran" and not trivial)):
            parts.setdefault(part.place, part)
    return list(parts.values())


def header(node: ast.stmt) -> range:
    """The lines of a statement without those inside it."""
    suites = [getattr(node, name, None) for name in SUITES]
    inner = [suite[0] for suite in suites if isinstance(suite, list) and suite]
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    if not inner:
        return range(first, (node.end_lineno or node.lineno) + 1)
    starts = [each.lineno for each in inner if hasattr(each, "lineno")]
    starts += [case.pattern.lineno for case in getattr(node, "cases", ())]
    # On one line with its body, the header is that line.
    return range(first, max(first + 1, min(starts)))


def suites(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """The lists of statements and of clauses (``except``, ``case``) in ``tree``, each with whose they are."""
    for node in ast.walk(tree):
        for name in SUITES:
            suite = getattr(node, name, None)
            if isinstance(suite, list) and suite:
                yield node, suite


def header_end(node: ast.AST) -> int:
    """The line on which the header of a compound statement or a clause ends; 0 where it has none."""
    inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, *CLAUSES))]
    ends = [getattr(each, "end_lineno", None) or 0 for child in inner for each in ast.walk(child)]
    return max([getattr(node, "lineno", 0), *ends])


def clause(node: ast.AST) -> range:
    """The lines of an ``except`` or a ``case`` without those inside it."""
    first = node.lineno if isinstance(node, ast.ExceptHandler) else node.pattern.lineno  # type: ignore[attr-defined]
    return range(first, max(first, header_end(node)) + 1)


class _Finder:
    """Collects the pieces of one text."""

    def __init__(
        self, text: str, path: str, catching: Collection[str], sizes: Collection[str], leaving: Collection[ast.AST]
    ) -> None:
        self._lines = [line.encode() for line in text.splitlines()]
        self._path = path
        self._catching = catching
        self._sizes = sizes
        self._leaving = leaving
        self.pieces: list[Piece] = []
        self._tests: set[ast.AST] = set()

    def add(
        self,
        role: str,
        node: ast.AST,
        dumped: ast.AST,
        kind: str = "ran",
        end: ast.AST | None = None,
        *,
        shown: ast.AST | None = None,
        start: tuple[int, int] | None = None,
    ) -> None:
        """Note a piece at ``node``; pieces with the same ``role`` and ``dumped`` do the same."""
        end_line, end_column = _end(node if end is None else end)
        line, column = start or (node.lineno, node.col_offset)  # type: ignore[attr-defined]
        words = ast.unparse(dumped if shown is None else shown).strip().splitlines()[0]
        text = words if len(words) <= _MOST else f"{words[:_MOST]}..."
        part = Part(self._path, line, column, end_line, end_column, kind, text)
        trivial = isinstance(dumped, ast.Name | ast.Constant)
        self.pieces.append(Piece(f"{kind} {role}", ast.dump(dumped), part, trivial))

    def of_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If(test=test) | ast.While(test=test):
                self.test("if", test)
            case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated):
                self.add("for", node, iterated, "loop", iterated)
            case ast.Assert(msg=ast.expr() as message):
                self.add("message", message, message)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._defaults(node.args, header(node)[0])
            case ast.Return(value=ast.expr() as value) if value in self._leaving:
                self.add("exit", value, value, "error")
        for each in (*getattr(node, "decorator_list", ()), *(item.context_expr for item in getattr(node, "items", ()))):
            self._ends_errors(each)
        for child in _expressions(node):
            self._walk(child)

    def of_clause(self, node: ast.AST) -> None:
        if isinstance(node, ast.ExceptHandler):
            caught = node.type or ast.Name("BaseException", ast.Load())
            self.add("except", node.type or node, caught, "others")
        guard = getattr(node, "guard", None)
        if guard is not None:
            self.add("guard", guard, guard)
            self.test("guard", guard)
            self._walk(guard)

    def _walk(self, node: ast.AST) -> None:
        match node:
            case ast.IfExp():
                self.test("ifexp", node.test)
                self.add("body", node.body, node.body)
                self.add("orelse", node.orelse, node.orelse)
            case ast.BoolOp():
                self._operands("", node, last=False)
            case ast.Compare():
                self._compare(node)
            case ast.BinOp() if is_coarse(node) and node not in self._tests:
                self.add("choice", node, node, "value")
            case ast.Slice(upper=ast.expr() as upper):
                self.add("slice", upper, upper, "value")
            case ast.Call():
                self._call(node)
            case ast.Lambda(body=body):
                self._defaults(node.args, node.lineno)
                self.add("lambda", body, body)
            case ast.comprehension():
                for test in node.ifs:
                    self.test("comprehension", test)
            case ast.DictComp():
                self.add("elements", node.key, ast.Tuple([node.key, node.value], ast.Load()), end=node.value)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self.add("elements", node.elt, node.elt)
        for child in ast.iter_child_nodes(node):
            self._walk(child)

    def _compare(self, node: ast.Compare) -> None:
        for other in node.comparators[1:]:
            self.add("chain", other, other)
        for order in node.ops:
            if type(order) in _ORDERS:
                self.add(_ORDERS[type(order)], node, ast.Name(type(order).__name__), "tie", shown=node)
        told = isinstance(node.ops[0], _TELLING) or any(is_number(each) for each in (node.left, *node.comparators))
        if node not in self._tests and told:
            self.add("bound", node, node, "value")

    def _call(self, node: ast.Call) -> None:
        if is_choice(node) and node not in self._tests:
            self.add("choice", node, node, "value")
        size = fixed(node, self._sizes)
        if size is not None:
            self.add("size", node, size, "size", shown=node)
        for default in fallbacks(node):
            self.add("fallback", default, default, "fallback", shown=node)
        if name_of(node) in WAITING:
            self.add("waiting", node, node, "order")
        moved = placing(node)
        if moved is not None:
            self.add("device", node, moved, "device", shown=node)
        self._ends_errors(node)

    def _ends_errors(self, node: ast.AST) -> None:
        name = name_of(node)
        if name in self._catching or name in CATCHING:
            self.add("error", node, ast.Name(name), "error")

    def _defaults(self, args: ast.arguments, line: int) -> None:
        for arg, default in defaults(args):
            self.add(f"default {arg}", default, default, f"{DEFAULT}{arg}", start=(line, 0))

    def test(self, role: str, node: ast.expr) -> None:
        """The outcomes of a condition, operand by operand."""
        match node:
            case ast.BoolOp():
                self._operands(role, node, last=True)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.test(f"{role} not", operand)
            case ast.Constant():
                pass
            case _:
                # What a condition is computed of its outcomes show.
                self._tests.update(ast.walk(node))
                self.add(role, node, node, "both")

    def _operands(self, role: str, node: ast.BoolOp, *, last: bool) -> None:
        for index, value in enumerate(node.values):
            own = f"{role} {type(node.op).__name__} {index}"
            if index:
                self.add(own, value, value)
            if last or index < len(node.values) - 1:
                self.test(own, value)


def _expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """The children of a statement that are no statements themselves."""
    for name, value in ast.iter_fields(node):
        if name in SUITES and isinstance(node, ast.stmt) and isinstance(value, list):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield each


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
