"""Kinds of statements that several rules ask for, and the few questions about syntax that they share."""

from __future__ import annotations

import ast
import copy

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (*DEFINITIONS, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def called(call: ast.Call) -> str:
    """The last name of what is called, empty where it has none."""
    return last_name(call.func)


def last_name(node: ast.AST) -> str:
    """The name, or the last part of a dotted one; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_own(node: ast.expr, own: str) -> bool:
    """Whether it is an attribute of what a method calls ``own``: its object."""
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
    stack = list(ast.iter_child_nodes(node))
    while stack:
        child = stack.pop()
        if isinstance(child, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return True
        if not isinstance(child, (*DEFINITIONS, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(child))
    return False
