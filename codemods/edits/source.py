"""A text parsed twice, by :mod:`ast` and by libcst, and the way from a span to both nodes."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from codemods.edits.positions import span_of, split_lines
from codemods.edits.whitespace import Statement
from codemods.source.syntax import FAILURES
from codemods.terms.edits import EditError
from codemods.terms.spans import Span

StatementNode = cst.BaseSmallStatement | cst.BaseCompoundStatement
_Node = TypeVar("_Node", ast.expr, ast.stmt)

# libcst's parser is native and recursive: what is nested deeper than this might take the process down with it.
_DEPTH_LIMIT = 1000


class Source:
    """The text of one file, without a byte order mark.

    Raises EditError if it is not Python, or nothing that libcst gives back byte for byte.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = split_lines(text)
        try:
            self.tree = ast.parse(text)
        except FAILURES as error:
            raise EditError(f"not Python: {error}") from error
        self.ast_parents = _ast_parents(self.tree)
        self._nodes_by_line: dict[int, list[ast.AST]] = {}
        for located in self.ast_parents:
            if isinstance(located, (ast.expr, ast.stmt)):
                self._nodes_by_line.setdefault(located.lineno, []).append(located)
        self.module = self._parse()
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._expressions: dict[Span, cst.BaseExpression] = {}
        self._statements: dict[tuple[int, int], StatementNode] = {}
        self._lines_at_top: dict[ast.AST, tuple[cst.CSTNode, cst.CSTNode]] = dict(
            zip(self.tree.body, _with_lines(self.module), strict=True)
        )

    def _locate(self, node: ast.AST) -> None:
        """Note where libcst's nodes are in the line or compound statement at the top level that ``node`` is in."""
        while node not in self._lines_at_top:
            node = self.ast_parents[node]
        top, first = self._lines_at_top[node]
        if top in self.parents:
            return
        _add_parents(self.parents, top, self.module)
        # Positions take libcst far longer than all else, so it gets to see no more than is needed.
        part = cst.Module(
            [top],  # type: ignore[list-item]
            default_indent=self.module.default_indent,
            default_newline=self.module.default_newline,
        )
        positions = MetadataWrapper(part, unsafe_skip_copy=True).resolve(PositionProvider)
        leader = next(other for other in self.tree.body if self._lines_at_top[other][0] is top)
        offset = leader.lineno - positions[first].start.line
        nodes = [top]
        for current in nodes:
            nodes += _children(current)
            if isinstance(current, cst.BaseExpression):
                span = _span_as_in_ast(current, positions, self.parents)
                span = span._replace(line=span.line + offset, end_line=span.end_line + offset)
                # Of nodes with the same span the outermost is met first.
                self._expressions.setdefault(span, current)
            elif isinstance(current, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                start = positions[current].start
                self._statements[start.line + offset, start.column] = current

    def _parse(self) -> cst.Module:
        try:
            module = cst.parse_module(self.text)
        except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
            told = error.message if isinstance(error, cst.ParserSyntaxError) else str(error)
            raise EditError(_unreadable(self.lines, f"libcst cannot parse it: {' '.join(told.split())}")) from error
        if module.code == self.text:
            return module
        if self.text.endswith("\r"):
            module = module.with_changes(has_trailing_newline=True)
        if "\f" in self.text:
            module = self._with_form_feeds(module)
        if module.code != self.text:
            raise EditError(_unreadable(self.lines, "libcst does not give the text back byte for byte"))
        return module

    def _with_form_feeds(self, module: cst.Module) -> cst.Module:
        """``module`` with the form feeds at the starts of lines of code, which libcst drops, above the statements."""
        fed = {number for number, line in enumerate(self.lines, 1) if line.startswith("\f")}
        positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
        restored = module.visit(_FormFeeds(fed, positions))
        assert isinstance(restored, cst.Module)
        return restored

    def ast_expression(self, span: Span) -> ast.expr:
        """The expression at ``span``; raises EditError if there is none."""
        return self._at(span, ast.expr, "expression")

    def ast_statement(self, span: Span) -> ast.stmt:
        """The statement at ``span``; raises EditError if there is none."""
        return self._at(span, ast.stmt, "statement")

    def _at(self, span: Span, kind: type[_Node], name: str) -> _Node:
        for node in self._nodes_by_line.get(span.line, ()):
            if isinstance(node, kind) and span_of(node, self.lines) == span:
                return node
        raise EditError(f"no {name} at {describe(span)}")

    def expression(self, span: Span) -> cst.BaseExpression:
        """libcst's node for the expression at ``span``; raises EditError if there is none."""
        wanted = self.ast_expression(span)
        if isinstance(wanted, ast.Starred):
            raise EditError(f"a starred item, not an expression, at {describe(span)}")
        self._locate(wanted)
        node = self._expressions.get(span)
        if node is None or not _means(self.module.code_for_node(node), wanted):
            raise EditError(f"libcst has no {type(wanted).__name__} of its own at {describe(span)}")
        return node

    def statement(self, span: Span) -> StatementNode:
        """libcst's node for the statement at ``span``, without its line; raises EditError if there is none."""
        return self.statement_of(self.ast_statement(span))

    def statement_of(self, wanted: ast.stmt) -> StatementNode:
        """libcst's node for the statement ``wanted`` of ``tree``; raises EditError if there is none."""
        self._locate(wanted)
        span = span_of(wanted, self.lines)
        node = self._statements.get((span.line, span.column))
        if node is None:
            raise EditError(f"libcst has no {type(wanted).__name__} at {describe(span)}")
        return node

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The parent of ``node``, its parent, and so on to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def suite_of(self, statement: StatementNode) -> cst.CSTNode:
        """The module, block or one-line suite that has ``statement`` in its body; raises EditError for an ``elif``."""
        parent = self.parents[statement]
        if isinstance(parent, cst.SimpleStatementLine):
            parent = self.parents[parent]
        if not isinstance(parent, (cst.Module, cst.BaseSuite)):
            raise EditError("an elif is no statement of its own")
        return parent

    def line_of(self, statement: StatementNode) -> Statement | cst.SimpleStatementSuite:
        """What ends where the line of ``statement`` does: its line, itself, or the one-line suite it is in."""
        parent = self.parents[statement]
        if isinstance(parent, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            return parent
        assert isinstance(statement, cst.BaseCompoundStatement)
        return statement


@functools.lru_cache(maxsize=4)
def parsed_source(text: str) -> Source:
    """The ``Source`` of ``text``; the last few are kept, because edits of one text are tried in several company."""
    return Source(text)


def describe(span: Span) -> str:
    """``span`` as people count: lines and columns from 1."""
    return f"line {span.line}, column {span.column + 1} (to line {span.end_line}, column {span.end_column + 1})"


class _FormFeeds(cst.CSTTransformer):
    def __init__(self, lines: set[int], positions: Mapping[cst.CSTNode, CodeRange]) -> None:
        super().__init__()
        self.lines = lines
        self.positions = positions

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if not isinstance(original_node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            return updated_node
        first: cst.CSTNode = original_node
        if isinstance(original_node, (cst.FunctionDef, cst.ClassDef)) and original_node.decorators:
            first = original_node.decorators[0].decorator
        if self.positions[first].start.line not in self.lines:
            return updated_node
        # A blank line without a line end is just the form feed.
        feed = cst.EmptyLine(indent=False, whitespace=cst.SimpleWhitespace("\f"), newline=cst.Newline(""))
        return updated_node.with_changes(leading_lines=(*updated_node.leading_lines, feed))  # type: ignore[attr-defined]


def _means(code: str, wanted: ast.expr) -> bool:
    try:
        parsed = ast.parse(f"({code}\n)", mode="eval").body
    except SyntaxError:
        return False
    return _dump_as_load(parsed) == _dump_as_load(wanted)


def _dump_as_load(node: ast.expr) -> str:
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")


def _ast_parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """Every node of ``tree`` with its parent, outer ones first; raises EditError if they are nested too deeply."""
    parents: dict[ast.AST, ast.AST] = {}
    level: list[ast.AST] = [tree]
    for _ in range(_DEPTH_LIMIT):
        below: list[ast.AST] = []
        for node in level:
            for child in ast.iter_child_nodes(node):
                # Operators and contexts are shared between nodes.
                if isinstance(child, (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)):
                    continue
                parents[child] = node
                below.append(child)
        if not below:
            return parents
        level = below
    raise EditError("nested too deeply")


def _with_lines(module: cst.Module) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """For every statement at the top level of ``module`` the line that it is on, and the first statement of that."""
    for top in module.body:
        small = top.body if isinstance(top, cst.SimpleStatementLine) else [top]
        yield from ((top, small[0]) for _ in small)


_FIELDS: dict[type[cst.CSTNode], list[str]] = {}
_NOT_CODE = (
    cst.BaseParenthesizableWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.LeftParen,
    cst.RightParen,
    cst.Comma,
    cst.Semicolon,
)


def _children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes directly in ``node`` but for whitespace and punctuation."""
    kind = type(node)
    if kind not in _FIELDS:
        names = [field.name for field in dataclasses.fields(kind)]
        _FIELDS[kind] = [name for name in names if "whitespace" not in name and name not in ("lpar", "rpar")]
    for name in _FIELDS[kind]:
        value = getattr(node, name)
        for child in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(child, cst.CSTNode) and not isinstance(child, _NOT_CODE):
                yield child


def _add_parents(parents: dict[cst.CSTNode, cst.CSTNode], node: cst.CSTNode, parent: cst.CSTNode) -> None:
    """Add the parents of ``node``, which is ``parent``, and of all nodes in it to ``parents``."""
    parents[node] = parent
    stack = [node]
    while stack:
        node = stack.pop()
        for child in _children(node):
            parents[child] = node
            stack.append(child)


def _unreadable(lines: Sequence[str], why: str) -> str:
    """Say in a line why libcst does not read a file that Python takes; ``why`` is all that is known."""
    for number, line in enumerate(lines, 1):
        indentation = line[: len(line) - len(line.lstrip())]
        if "\f" in indentation and indentation != line:
            return f"a form feed stands in the indentation of line {number}, where libcst cannot read it"
    return why


def _span_as_in_ast(
    node: cst.BaseExpression, at: Mapping[cst.CSTNode, CodeRange], parents: Mapping[cst.CSTNode, cst.CSTNode]
) -> Span:
    """The span that ast has for ``node``: tuples and generators have their parentheses, other nodes do not."""
    start, end = at[node].start, at[node].end
    if isinstance(node, (cst.Tuple, cst.GeneratorExp)):
        if node.lpar:
            start, end = at[node.lpar[-1]].start, at[node.rpar[0]].end
        elif isinstance(node, cst.GeneratorExp):
            # The only argument of a call borrows the parentheses of the call.
            call = parents[parents[node]]
            if isinstance(call, cst.Call):
                start, end = at[call.whitespace_after_func].end, at[call].end
    return Span(start.line, start.column, end.line, end.column)
