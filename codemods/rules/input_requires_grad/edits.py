"""What takes the wish for gradients away."""

from __future__ import annotations

import ast

from codemods.graph.model.program import ParsedFile
from codemods.proofs.observations import Site
from codemods.terms.edits import DropArgument, Edit, RemoveStatement, ReplaceExpression
from codemods.terms.spans import Span


def statement_of(file: ParsedFile, site: Site) -> Span:
    """The span of the statement around a site."""
    node = file.find(site.span, ast.expr)
    while node is not None and not isinstance(node, ast.stmt):
        node = file.parent(node)
    return site.span if node is None else file.span(node)


def edit_for(file: ParsedFile, site: Site) -> Edit | None:
    """What takes the wish for gradients away, None where it does not stand there as a literal."""
    node = file.find(site.span, ast.Call, ast.Attribute)
    if isinstance(node, ast.Attribute):
        statement = file.parent(node)
        if isinstance(statement, ast.Assign) and statement.targets == [node] and _true(statement.value):
            return RemoveStatement(file.span(statement))
        return None
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        return _without_call(file, node, node.func.value)
    given = [k for k in node.keywords if k.arg == "requires_grad"]
    if len(given) == 1 and _true(given[0].value):
        return DropArgument(site.span, "requires_grad")
    return None


def _without_call(file: ParsedFile, call: ast.Call, receiver: ast.expr) -> Edit | None:
    given = [*call.args, *(k.value for k in call.keywords)]
    if not all(_true(value) for value in given):
        return None
    statement = file.parent(call)
    if isinstance(statement, ast.Expr) and isinstance(receiver, (ast.Name, ast.Attribute)):
        return RemoveStatement(file.span(statement))
    text = ast.get_source_segment(file.text, receiver)
    if text is None:
        return None
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        text = f"({text})"
    return ReplaceExpression(file.span(call), text)


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
