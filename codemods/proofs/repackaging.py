"""Helpers that cut hidden state by asking for a type that no tensor has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.blocks import suites_around
from codemods.proofs.syntax import DEFINITIONS
from codemods.source.walking import called, last_name, walk
from codemods.terms.edits import Edit, ReplaceExpression
from codemods.terms.spans import Span


class Helper(NamedTuple):
    """Where a helper asks for the type of which variable, and the edits that mend it."""

    path: str
    span: Span
    name: str
    edits: list[Edit]


def broken_helpers(trace: Trace) -> Iterator[Helper]:
    """The helpers that a run came to."""
    done: set[int] = set()
    for frame in trace.frames:
        definition = frame.definition
        if isinstance(definition, DEFINITIONS) and id(definition) not in done:
            done.add(id(definition))
            yield from _helper(frame.file, definition)


def repackaging_helpers(file: ParsedFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Span]:
    """Where a function repackages hidden state by asking for such a type."""
    return [helper.span for helper in _helper(file, function)]


def _helper(file: ParsedFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Helper]:
    """``if type(h) == Variable: return Variable(h.data)`` in a function that calls itself on the parts of ``h``."""
    if not any(isinstance(n, ast.Call) and called(n) == function.name for n in walk(function)):
        return
    for node in walk(function):
        if not isinstance(node, ast.If) or len(node.body) != 1 or not isinstance(node.body[0], ast.Return):
            continue
        name = _asked_for_variable(file, node.test)
        value = node.body[0].value
        if name is None or value is None or not _takes_apart(file, function, node, name):
            continue
        code = _detaching(file, value, name)
        if code is None:
            continue
        edits: list[Edit] = [ReplaceExpression(file.span(node.test), f"isinstance({name}, {{torch}}.Tensor)")]
        if ast.unparse(value) != code:
            edits.append(ReplaceExpression(file.span(value), code))
        yield Helper(file.path, file.span(node).to(file.span(node.body[0])), name, edits)


def _takes_apart(file: ParsedFile, function: ast.FunctionDef | ast.AsyncFunctionDef, test: ast.If, name: str) -> bool:
    """Whether a tensor, for which ``test`` does not hold, surely comes to a call of the function on its parts."""
    then = _behind(file, test)
    while isinstance(then, ast.If):
        asked = then.test
        if not (isinstance(asked, ast.Call) and called(asked) == "isinstance" and len(asked.args) == 2):
            return False
        kinds = asked.args[1].elts if isinstance(asked.args[1], ast.Tuple) else [asked.args[1]]
        if not all(isinstance(kind, ast.Name) and kind.id in ("tuple", "list", "dict", "set") for kind in kinds):
            return False
        then = _behind(file, then)
    while isinstance(then, (ast.Assign, ast.Expr)) and not _calls_itself(function, then):
        then = _behind(file, then)
    if not isinstance(then, (ast.Return, ast.Assign, ast.For)) or not _calls_itself(function, then):
        return False
    iterated = [n.iter for n in walk(then) if isinstance(n, (ast.comprehension, ast.For))]
    iterated += [n.args[1] for n in walk(then) if isinstance(n, ast.Call) and called(n) == "map" and len(n.args) > 1]
    return any(isinstance(over, ast.Name) and over.id == name for over in iterated)


def _behind(file: ParsedFile, statement: ast.stmt) -> ast.stmt | None:
    """What runs after a statement, or after an ``if`` whose test does not hold."""
    if isinstance(statement, ast.If) and statement.orelse:
        return statement.orelse[0]
    for suite, index in suites_around(file, statement):
        if index + 1 < len(suite):
            return suite[index + 1]
    return None


def _calls_itself(function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> bool:
    return any(last_name(n) == function.name for n in walk(statement))


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
    if isinstance(node, ast.Attribute):
        return node.attr == "Variable" and file.named(node) in ("torch.autograd.Variable", "torch.Variable")
    if not isinstance(node, ast.Name):
        return False
    names = file.once(_variable_names, file.tree)
    return node.id in names or ("*" in names and node.id == "Variable")


def _variable_names(tree: ast.Module) -> frozenset[str]:
    """What imports call ``torch.autograd.Variable``; ``*`` where all of a module of torch is imported."""
    return frozenset(
        alias.name if alias.name == "*" else alias.asname or alias.name
        for statement in walk(tree)
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("torch")
        for alias in statement.names
        if alias.name in ("*", "Variable")
    )


def _detaching(file: ParsedFile, value: ast.expr, name: str) -> str | None:
    """What the cut of ``name`` becomes, None if the expression is no cut of it."""
    text = ast.unparse(value)
    if text in (f"{name}.detach()", f"{name}.data", f"{name}.detach().clone()", f"{name}.data.clone()"):
        return f"{name}.detach().clone()" if "clone" in text else f"{name}.detach()"
    if isinstance(value, ast.Call) and is_variable(file, value.func) and len(value.args) == 1:
        inner = _detaching(file, value.args[0], name) if not isinstance(value.args[0], ast.Name) else f"{name}.detach()"
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
