"""What inside a changed statement may stay out of a run although its line runs: the sides of conditions, bodies of
comprehensions and lambdas, the second statement of a line; and of conditions that changed, both of their outcomes."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from codemods.source.errors import SourceError
from codemods.source.syntax import parse

#: Longest text of a part that is told whole.
_MOST = 40
_SUITES = ("body", "orelse", "finalbody", "handlers", "cases")
_CLAUSES = (ast.ExceptHandler, ast.match_case)
#: Of what torch bounds nothing shows whether the bound was met.
_BOUNDS = ("clamp", "clamp_", "clamp_max", "clamp_min", "clip", "clip_", "hardtanh", "maximum", "minimum", "threshold")
_THRESHOLDS = frozenset((*_BOUNDS, "renorm", "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"))
#: Statements of which nothing is left to run, or which Python may have joined with their neighbours.
IDLE = (ast.Pass, ast.Continue, ast.Break, ast.Global, ast.Nonlocal)


class Part(NamedTuple):
    """A place within a line: ``ran`` if any of it runs, ``both`` if a condition was met and was not, ``loop`` if a loop
    turned and came to its end, ``value`` for a choice that no run shows. Columns count the bytes of UTF-8, from 0;
    ``text`` is for people."""

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
        if self.kind == "value":
            return f"line {self.line} (which way `{self.text}` came out cannot be seen)"
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
    found = _Finder(text, path)
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


def missing(here: list[Piece], there: list[Piece], *, whole: bool) -> list[Part]:
    """Return the parts of ``here`` that have no equal among ``there``: what has to run for a change to have run.

    ``whole``: the change was made by hand, so that nothing is known of how conditions come out.
    """
    known = Counter((piece.role, piece.dump) for piece in there)
    parts: dict[tuple[object, ...], Part] = {}
    for role, dump, part, trivial in here:
        known[role, dump] -= 1
        if known[role, dump] < 0 and (whole or (part.kind == "ran" and not trivial)):
            parts.setdefault(part.place, part)
    return list(parts.values())


def changed_constants(old: str, new: str, path: str, before: Collection[int], after: Collection[int]) -> str:
    """Say which constants (numbers, texts, names such as ``SUM``) differ, if the statements at the lines ``before`` of
    ``old`` and ``after`` of ``new`` differ in nothing else; empty if they do."""
    was, became = (_headers(text, path, lines) for text, lines in ((old, before), (new, after)))
    if not was or len(was) != len(became):
        return ""
    told: list[str] = []
    for one, other in zip(was, became, strict=True):
        first, second = _constants(one), _constants(other)
        if ast.dump(_blank(one)) != ast.dump(_blank(other)) or len(first) != len(second):
            return ""
        told += [f"{a!r} became {b!r}" for a, b in zip(first, second, strict=True) if a != b]
    return ", ".join(dict.fromkeys(told))


def header(node: ast.stmt) -> range:
    """The lines of a statement without those inside it."""
    suites = [getattr(node, name, None) for name in _SUITES]
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
        for name in _SUITES:
            suite = getattr(node, name, None)
            if isinstance(suite, list) and suite:
                yield node, suite


def header_end(node: ast.AST) -> int:
    """The line on which the header of a compound statement or a clause ends; 0 where it has none."""
    inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, *_CLAUSES))]
    ends = [getattr(each, "end_lineno", None) or 0 for child in inner for each in ast.walk(child)]
    return max([getattr(node, "lineno", 0), *ends])


def clause(node: ast.AST) -> range:
    """The lines of an ``except`` or a ``case`` without those inside it."""
    first = node.lineno if isinstance(node, ast.ExceptHandler) else node.pattern.lineno  # type: ignore[attr-defined]
    return range(first, max(first, header_end(node)) + 1)


class _Finder:
    """Collects the pieces of one text."""

    def __init__(self, text: str, path: str) -> None:
        self._lines = [line.encode() for line in text.splitlines()]
        self._path = path
        self.pieces: list[Piece] = []
        self._tests: set[ast.expr] = set()

    def add(self, role: str, node: ast.AST, dumped: ast.AST, kind: str = "ran", end: ast.AST | None = None) -> None:
        end_line, end_column = _end(node if end is None else end)
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        shown = ast.unparse(dumped).strip().splitlines()[0]
        text = shown if len(shown) <= _MOST else f"{shown[:_MOST]}..."
        part = Part(self._path, line, column, end_line, end_column, kind, text)
        trivial = isinstance(dumped, ast.Name | ast.Constant)
        self.pieces.append(Piece(f"{kind} {role}", ast.dump(dumped), part, trivial))

    def of_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If(test=test) | ast.While(test=test):
                self._test("if", test)
            case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated):
                self.add("for", node, iterated, "loop", iterated)
            case ast.Assert(msg=ast.expr() as message):
                self.add("message", message, message)
            case _:
                pass
        for child in _expressions(node):
            self._walk(child)

    def of_clause(self, node: ast.AST) -> None:
        guard = getattr(node, "guard", None)
        if guard is not None:
            self.add("guard", guard, guard)
            self._test("guard", guard)
            self._walk(guard)

    def _walk(self, node: ast.AST) -> None:
        match node:
            case ast.IfExp():
                self._test("ifexp", node.test)
                self.add("body", node.body, node.body)
                self.add("orelse", node.orelse, node.orelse)
            case ast.BoolOp():
                self._operands("", node, last=False)
            case ast.Compare(comparators=[_, *others]):
                for other in others:
                    self.add("chain", other, other)
                if node not in self._tests and any(_is_number(each) for each in (node.left, *node.comparators)):
                    self.add("bound", node, node, "value")
            case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_]):
                self.add("choice", node, node, "value")
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _THRESHOLDS:
                self.add("choice", node, node, "value")
            case ast.Lambda(body=body):
                self.add("lambda", body, body)
            case ast.comprehension():
                for test in node.ifs:
                    self._test("comprehension", test)
            case ast.DictComp():
                self.add("elements", node.key, ast.Tuple([node.key, node.value], ast.Load()), end=node.value)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self.add("elements", node.elt, node.elt)
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            self._walk(child)

    def _test(self, role: str, node: ast.expr) -> None:
        """The outcomes of a condition, operand by operand."""
        match node:
            case ast.BoolOp():
                self._operands(role, node, last=True)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._test(f"{role} not", operand)
            case ast.Constant():
                pass
            case _:
                self._tests.add(node)
                self.add(role, node, node, "both")

    def _operands(self, role: str, node: ast.BoolOp, *, last: bool) -> None:
        for index, value in enumerate(node.values):
            own = f"{role} {type(node.op).__name__} {index}"
            if index:
                self.add(own, value, value)
            if last or index < len(node.values) - 1:
                self._test(own, value)


def _expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """The children of a statement that are no statements themselves."""
    for name, value in ast.iter_fields(node):
        if name in _SUITES and isinstance(node, ast.stmt) and isinstance(value, list):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield each


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def _headers(text: str, path: str, lines: Collection[int]) -> list[ast.AST]:
    """The statements at ``lines``, of compound ones the headers."""
    try:
        tree = parse(text, path)
    except SourceError:
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and set(header(node)).intersection(lines)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return [_Folded().visit(_bare(node)) for node in nodes]


def _bare(node: ast.stmt) -> ast.AST:
    fields = {
        name: ([] if name in _SUITES and isinstance(value, list) else value) for name, value in ast.iter_fields(node)
    }
    return type(node)(**fields)


def _constants(node: ast.AST) -> list[object]:
    """The numbers, texts and names of constants in ``node``."""
    found: list[object] = []
    for each in ast.walk(node):
        if _is_number(each) or _is_text(each):
            found.append(each.value)  # type: ignore[attr-defined]
        elif _is_named(each):
            found.append(each.attr)  # type: ignore[attr-defined]
    return found


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_named(node: ast.AST) -> bool:
    """Whether ``node`` is a constant by its name, as members of an enumeration are."""
    return isinstance(node, ast.Attribute) and node.attr.isupper() and len(node.attr) > 1


def _is_number(node: ast.AST) -> bool:
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


class _Folded(ast.NodeTransformer):
    """Numbers that are computed of numbers alone become one."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        of_numbers = _is_number(node.left) and _is_number(node.right)
        if not of_numbers or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv):
            return node
        try:
            return ast.Constant(eval(compile(ast.Expression(ast.fix_missing_locations(node)), "", "eval")))
        except ArithmeticError:
            return node


class _Blank(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if _is_text(node):
            return ast.Constant("")
        return ast.Constant(0) if _is_number(node) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return ast.Attribute(node.value, "_", node.ctx) if _is_named(node) else node


def _blank(node: ast.AST) -> ast.AST:
    blank: ast.AST = _Blank().visit(copy.deepcopy(node))
    return blank
