"""Kinds of statements that several rules ask for, and the few questions about syntax that they share."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (*DEFINITIONS, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def called(call: ast.Call) -> str:
    """The last name of the callee; empty where it has none."""
    return last_name(call.func)


def last_name(node: ast.AST) -> str:
    """The name, or the last part of a dotted one; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_own(node: ast.expr, own: str) -> bool:
    """Whether it is an attribute of the method's own object, which the method calls ``own``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own


def renamed(node: ast.AST, old: str, new: str) -> str:
    """The text of a syntax node with one variable called differently."""
    copied = copy.deepcopy(node)
    for inner in ast.walk(copied):
        if isinstance(inner, ast.Name) and inner.id == old:
            inner.id = new
    return ast.unparse(copied)


def suspends(node: ast.AST) -> bool:
    """Whether it yields or awaits: a ``with`` around that leaks into the consumer."""
    kinds = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
    return any(isinstance(inner, kinds) for inner in own_nodes(ast.iter_child_nodes(node)))


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """``nodes`` and all below them, but for what stands in functions and classes among them."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def free_name(scope: ast.AST, names: Iterable[str]) -> str:
    """The first of ``names`` that no variable or parameter in ``scope`` has, else the very first with a number."""
    taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)}
    taken |= {n.arg for n in ast.walk(scope) if isinstance(n, ast.arg)}
    first, *_ = names = list(names)
    return next(name for name in (*names, *(f"{first}_{i}" for i in range(2, 100))) if name not in taken)
