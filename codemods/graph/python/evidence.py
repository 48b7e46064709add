"""What code says of things that cannot be seen: on which it calls what only a module has."""

from __future__ import annotations

import ast

from codemods.graph.model.facts.layers import TRANSPARENT_MODULE_METHODS
from codemods.graph.model.nodes import Frame
from codemods.graph.model.program import receiver_name
from codemods.source.walking import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def own_modules(scope: ast.AST) -> tuple[tuple[ast.AST, str], ...]:
    """Attributes of its object on which a class calls what only a module has, with the calls."""
    return tuple(
        (node, node.func.value.attr)
        for method in getattr(scope, "body", ())
        if isinstance(method, _FUNCTIONS)
        for node in walk(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and _is_of_module(node, ("eval", "train", "parameters"))
        and isinstance(node.func.value, ast.Attribute)
        and isinstance(node.func.value.value, ast.Name)
        and node.func.value.value.id == receiver_name(method)
    )


def module_names(scope: ast.AST) -> set[str]:
    """Variables on which code calls what only a module has, ``eval`` or ``train`` without more."""
    found = set()
    for node in walk(scope):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and _is_of_module(node, ("eval", "train", "parameters", "named_parameters", "load_state_dict"))
        ):
            found.add(node.func.value.id)
    return found


def is_named_module(frame: Frame, call: ast.AST) -> bool:
    """Whether what a call gives gets a name, itself or moved and cast, on which the function around calls what only a
    module has: ``net = build().double()`` beside ``net.parameters()``."""
    statement = frame.statement
    if not isinstance(statement, ast.Assign):
        return False
    given: ast.expr = statement.value
    while given is not call:
        if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
            return False
        if given.func.attr not in TRANSPARENT_MODULE_METHODS:
            return False
        given = given.func.value
    names = frame.file.once(module_names, frame.definition or frame.file.tree)
    return any(isinstance(target, ast.Name) and target.id in names for target in statement.targets)


def _is_of_module(call: ast.Call, names: tuple[str, ...]) -> bool:
    """Whether only a module has such a method with such arguments: ``train()`` takes a flag, ``eval()`` nothing."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr not in names:
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    return call.func.attr not in ("eval", "train") or all(
        isinstance(e, ast.Constant) and isinstance(e.value, bool) for e in given
    )
