"""What both sides know of trees: suites, and code that edits bring along."""

from __future__ import annotations

import ast

from codemods.edits.bindings import MODULE
from codemods.terms.edits import EditError

TORCH_MARK = "codemods_name_of_torch_"
SUITES = ("body", "orelse", "finalbody")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Emptied(ast.stmt):
    """Stands where a suite lost all that it had."""


def statements_of(code: str) -> list[ast.stmt]:
    """Parse the statements of an edit; raises EditError where they do not parse."""
    try:
        return ast.parse(_marked(code)).body
    except SyntaxError as error:
        raise EditError(f"{code!r} does not parse: {error}") from error


def expression_of(code: str) -> ast.expr:
    """Parse the expression of an edit; raises EditError where it is none."""
    try:
        return ast.parse(f"({_marked(code)}\n)", mode="eval").body
    except SyntaxError as error:
        raise EditError(f"{code!r} is not an expression") from error


def _marked(code: str) -> str:
    return code.replace(f"{{{MODULE}}}", TORCH_MARK)


def suite_of(node: ast.AST, name: str) -> list[ast.stmt]:
    """The statements in the field ``name``; none where it holds something else."""
    suite = getattr(node, name, None)
    return suite if isinstance(suite, list) and all(isinstance(one, ast.stmt) for one in suite) else []
