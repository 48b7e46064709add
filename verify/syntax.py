"""What all of the dynamic half asks of syntax trees: names, calls, targets, what is bound and what is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def functions(tree: ast.AST, prefix: str = "", *, nested: bool = False) -> Iterator[tuple[str, Function]]:
    """The functions and methods of ``tree`` with their full names, as Python has them; ``nested``: also those that
    stand in other functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
            if nested:
                yield from functions(node, f"{prefix}{node.name}.<locals>.", nested=True)
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.", nested=nested)
        elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from functions(node, prefix, nested=nested)


def last_name(node: ast.AST) -> str:
    """``step`` of ``step`` and of ``self.optimizer.step``; empty where there is no name."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def names(node: ast.AST) -> set[str]:
    """The variables that occur in ``node``."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def read(node: ast.AST) -> set[str]:
    """The variables that ``node`` reads."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def bound(node: ast.AST) -> set[str]:
    """The variables that ``node`` binds, or deletes."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}


def paths(node: ast.AST) -> set[str]:
    """The variables and attributes that occur in ``node``, as they are written."""
    return {ast.unparse(each) for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute))}


def parameters(function: Function | ast.Lambda) -> set[str]:
    """The names of all parameters."""
    return {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}


def targets(statement: ast.AST) -> list[ast.expr]:
    """What an assignment assigns to, tuples and lists taken apart; nothing for any other statement."""
    if isinstance(statement, ast.Assign):
        whole = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        whole = [statement.target]
    else:
        return []
    return [each for target in whole for each in _apart(target)]


def _apart(target: ast.expr) -> list[ast.expr]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [target]
    return [each for part in target.elts for each in _apart(part)]


def pairs(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with their values, tuples taken apart."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for target in node.targets if isinstance(node, ast.Assign) else ():
        value = node.value  # type: ignore[attr-defined]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            found += zip(target.elts, value.elts, strict=False)
        else:
            found.append((target, value))
    return found


def method_call(node: ast.AST | None, *methods: str) -> tuple[ast.expr, ast.Call] | None:
    """The object and the call where ``node``, an expression or the statement of one, calls one of its ``methods``."""
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in methods:
        return call.func.value, call
    return None


def covers(node: ast.stmt | ast.expr, line: int) -> bool:
    """Whether ``line`` is one of those of ``node``."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)
