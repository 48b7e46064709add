"""Ways through syntax trees that take a fraction of the time of those in :mod:`ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

_PLAIN = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "asname", "module", "level", "kind", "type_comment"})
"""Fields that hold no syntax node, or one that only names an operator or a context."""

_BARE = (ast.Constant, ast.Global, ast.Nonlocal)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each class of nodes that may hold others."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        plain = kind._fields if issubclass(kind, _BARE) else _PLAIN
        # `keyword.arg` is a text; no class has a node under this name
        self[kind] = tuple(name for name in kind._fields if name not in plain)
        return self[kind]


_fields = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The syntax nodes directly below one, in the order of the code; operators and contexts are left out."""
    found: list[ast.AST] = []
    for name in _fields[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(scope: ast.AST) -> Iterator[ast.AST]:
    """A syntax node and all below it, in the order of :func:`ast.walk`; operators and contexts are left out.

    What is below a whole file is asked for by many and kept with it: its tree must not change once it was walked.
    """
    if scope.__class__ is not ast.Module:
        return _walk(scope)
    below = vars(scope).get(_BELOW)
    if below is None:
        below = list(_walk(scope))
        # without the file itself: nothing that is left to be freed may point at itself
        del below[0]
        setattr(scope, _BELOW, below)
    return chain((scope,), below)


def forget(tree: ast.Module) -> None:
    """Take a syntax tree apart; the garbage collector would take several times as long."""
    tree.body.clear()
    vars(tree).pop(_BELOW, None)


_BELOW = "_below"


def _walk(scope: ast.AST) -> Iterator[ast.AST]:
    found: list[ast.AST] = [scope]
    for node in found:
        yield node
        for name in _fields[node.__class__]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                found += [one for one in value if one.__class__ is not str and one is not None]
            elif isinstance(value, ast.AST):
                found.append(value)


def last_name(node: ast.AST) -> str:
    """The name, or the last part of a dotted one; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def called(call: ast.Call) -> str:
    """The last name of the callee; empty where it has none."""
    return last_name(call.func)


def names_in(scope: ast.AST) -> frozenset[str]:
    """The variables that code names."""
    return frozenset(node.id for node in walk(scope) if isinstance(node, ast.Name))


def mentions_data(scope: ast.AST) -> bool:
    """Whether code mentions ``.data``, which autograd does not look at."""
    return any(isinstance(node, ast.Attribute) and node.attr == "data" for node in walk(scope))


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a syntax node; those that are expressions hold none."""
    stack: list[ast.AST] = [tree]
    while stack:
        for name, value in vars(stack.pop()).items():
            if name in _SUITES and isinstance(value, list):
                stack += value
                yield from (one for one in value if isinstance(one, ast.stmt))


_SUITES = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
