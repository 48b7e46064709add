"""Constants that a change by hand alters: where it alters nothing else, no difference in a run says nothing of it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection

from codemods.rewriting.choices import is_number
from codemods.rewriting.parts import SUITES, header
from codemods.source.errors import SourceError
from codemods.source.syntax import parse


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
        name: ([] if name in SUITES and isinstance(value, list) else value) for name, value in ast.iter_fields(node)
    }
    return type(node)(**fields)


def _constants(node: ast.AST) -> list[object]:
    """The numbers, texts and names of constants in ``node``."""
    found: list[object] = []
    for each in ast.walk(node):
        if is_number(each) or _is_text(each):
            found.append(each.value)  # type: ignore[attr-defined]
        elif _is_named(each):
            found.append(each.attr)  # type: ignore[attr-defined]
    return found


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_named(node: ast.AST) -> bool:
    """Whether ``node`` is a constant by its name, as members of an enumeration are."""
    return isinstance(node, ast.Attribute) and node.attr.isupper() and len(node.attr) > 1


class _Folded(ast.NodeTransformer):
    """Numbers that are computed of numbers alone become one."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        of_numbers = is_number(node.left) and is_number(node.right)
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
        return ast.Constant(0) if is_number(node) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return ast.Attribute(node.value, "_", node.ctx) if _is_named(node) else node


def _blank(node: ast.AST) -> ast.AST:
    blank: ast.AST = _Blank().visit(copy.deepcopy(node))
    return blank
