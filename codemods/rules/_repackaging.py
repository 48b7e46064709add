"""Helpers that cut hidden state by asking for a type that no tensor has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from codemods.edits.model import Edit, ReplaceExpression
from codemods.findings import Span
from codemods.graph.program import ParsedFile, walk
from codemods.graph.trace import Trace
from codemods.rules._syntax import DEFINITIONS, called
from codemods.rules.base import Observation

RULE = "carried-hidden-state"
"""The rule whose lines these are."""


def broken_helpers(trace: Trace) -> Iterator[Observation]:
    """What one run shows of such helpers: one observation each, with the edits that mend it."""
    done: set[int] = set()
    for frame in trace.frames:
        definition = frame.definition
        if isinstance(definition, DEFINITIONS) and id(definition) not in done:
            done.add(id(definition))
            yield from _helper(frame.file, definition)


def repackaging_helpers(file: ParsedFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Span]:
    """Where a function repackages hidden state by asking for a type that no tensor has: lines of this rule."""
    return [observation.span for observation in _helper(file, function)]


def _helper(file: ParsedFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Observation]:
    """``if type(h) == Variable: return Variable(h.data)`` in a function that calls itself on the parts of ``h``."""
    if not any(isinstance(n, ast.Call) and called(n) == function.name for n in walk(function)):
        return
    for node in ast.walk(function):
        if not isinstance(node, ast.If) or len(node.body) != 1 or not isinstance(node.body[0], ast.Return):
            continue
        name = _asked_for_variable(file, node.test)
        value = node.body[0].value
        if name is None or value is None:
            continue
        code = _detaching(value, name)
        if code is None:
            continue
        edits: list[Edit] = [ReplaceExpression(file.span(node.test), f"isinstance({name}, {{torch}}.Tensor)")]
        if ast.unparse(value) != code:
            edits.append(ReplaceExpression(file.span(value), code))
        test = file.span(node)
        last = file.span(node.body[0])
        span = Span(test.line, test.column, last.end_line, last.end_column)
        yield Observation(RULE, file.path, span, "helper", "fault", {"name": name, "edits": edits})


def _asked_for_variable(file: ParsedFile, test: ast.expr) -> str | None:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return None
    for asked, kind in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        if (
            isinstance(asked, ast.Call)
            and called(asked) == "type"
            and len(asked.args) == 1
            and isinstance(asked.args[0], ast.Name)
            and is_variable(file, kind)
        ):
            return asked.args[0].id
    return None


def is_variable(file: ParsedFile, node: ast.expr) -> bool:
    """Whether an expression names ``torch.autograd.Variable``, by the imports of the file."""
    text = ast.unparse(node)
    if text in ("torch.autograd.Variable", "autograd.Variable", "torch.autograd.variable.Variable"):
        return True
    if not isinstance(node, ast.Name):
        return False
    names = file.once(_variable_names, file.tree)
    return "*" in names or node.id in names


def _variable_names(tree: ast.Module) -> frozenset[str]:
    """What imports call ``torch.autograd.Variable``; ``*`` where all of a module of torch is imported."""
    return frozenset(
        alias.name if alias.name == "*" else alias.asname or alias.name
        for statement in ast.walk(tree)
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("torch")
        for alias in statement.names
        if alias.name in ("*", "Variable")
    )


def _detaching(value: ast.expr, name: str) -> str | None:
    """What the cut of ``name`` becomes, None if the expression is no cut of it."""
    text = ast.unparse(value)
    if text in (f"{name}.detach()", f"{name}.data", f"{name}.detach().clone()", f"{name}.data.clone()"):
        return f"{name}.detach().clone()" if "clone" in text else f"{name}.detach()"
    if isinstance(value, ast.Call) and called(value) == "Variable" and len(value.args) == 1:
        inner = _detaching(value.args[0], name) if not isinstance(value.args[0], ast.Name) else f"{name}.detach()"
        keywords: dict[str | None, Any] = {k.arg: k.value for k in value.keywords}
        if (
            inner is None
            or not ast.unparse(value.args[0]).startswith(name)
            or keywords.keys() - {"volatile", "requires_grad"}
        ):
            return None
        asks = keywords.get("requires_grad")
        if asks is None or (isinstance(asks, ast.Constant) and asks.value is False):
            return inner
        return f"{inner}.requires_grad_()" if isinstance(asks, ast.Constant) else None
    return None
