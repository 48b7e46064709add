"""What the code of a function says of calls of itself that are not entered."""

from __future__ import annotations

import ast

from codemods.graph.model.cutting import PLAIN
from codemods.graph.model.facts.operations import TENSOR_METHODS
from codemods.graph.model.program import receiver_name
from codemods.graph.model.values import Function
from codemods.source.walking import walk

_TAKING_APART = frozenset(
    f"builtins.{kind.__name__}"
    for kind in (
        *(isinstance, hasattr, len, type, tuple, list, dict, set, zip, enumerate, range, reversed, sorted),
        *(int, float, bool, str, min, max, ValueError, TypeError, NotImplementedError),
    )
)
_ELSEWHERE = (
    ast.Await,
    ast.ClassDef,
    ast.Delete,
    ast.Global,
    ast.NamedExpr,
    ast.Nonlocal,
    ast.With,
    ast.Yield,
    ast.YieldFrom,
)


def only_computes(function: Function) -> bool:
    """Whether a function that calls itself does nothing but that, take its arguments apart and compute with tensors, so
    that a call keeps nothing of what it gets and walks nothing."""
    definition = function.definition
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        return False
    made = {
        target.id
        for node in walk(definition)
        if isinstance(node, ast.Assign) and _is_container(function, node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    made -= {node.arg for node in walk(definition) if isinstance(node, ast.arg)}
    for node in walk(definition):
        if isinstance(node, _ELSEWHERE) or (isinstance(node, ast.Call) and not _keeps_nothing(function, node, made)):
            return False
        written = node.target if isinstance(node, ast.AugAssign) else node
        stored = isinstance(written, (ast.Attribute, ast.Subscript)) and not isinstance(written.ctx, ast.Load)
        if stored or isinstance(node, ast.AugAssign):
            holder = written.value if isinstance(written, ast.Subscript) else None
            if not (isinstance(holder, ast.Name) and holder.id in made):
                return False
    return True


def ends(function: Function) -> bool:
    """Whether a function that calls itself also returns without that."""
    name = getattr(function.definition, "name", "")
    returned = (node.value for node in walk(function.definition) if isinstance(node, ast.Return))
    return any(
        value is not None and not any(isinstance(n, ast.Name) and n.id == name for n in walk(value))
        for value in returned
    )


def _is_container(function: Function, value: ast.expr) -> bool:
    """Whether an expression makes a new list or dict."""
    called = function.file.named(value.func) if isinstance(value, ast.Call) else ""
    return isinstance(value, (ast.List, ast.Dict)) or called in ("builtins.list", "builtins.dict")


def _keeps_nothing(function: Function, call: ast.Call, made: set[str]) -> bool:
    """Whether a call in a function is one of itself, or of something that keeps nothing of what it gets, but for the
    containers that it has ``made``."""
    called = call.func
    name = getattr(function.definition, "name", "")
    path = function.file.named(called)
    if path:
        library, _, last = path.rpartition(".")
        return path in _TAKING_APART or (library == "torch" and (last in TENSOR_METHODS or last in PLAIN["torch"]))
    if isinstance(called, ast.Name):
        return called.id == name and function.cls is None
    if not isinstance(called, ast.Attribute):
        return False
    if isinstance(called.value, ast.Name) and called.value.id in made:
        return called.attr in ("append", "extend")
    if called.attr == name and function.cls is not None:
        return isinstance(called.value, ast.Name) and called.value.id == receiver_name(function.definition)
    return called.attr in TENSOR_METHODS or called.attr in ("items", "keys", "values")
