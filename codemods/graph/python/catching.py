"""What catches the ``RuntimeError`` of a backward, and goes on: handlers, and contexts that end errors."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.source.walking import walk

_ERRORS = frozenset(("RuntimeError", "Exception", "BaseException"))


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether a handler gets the error and does not raise again."""
    gets = handler.type is None or names_it([handler.type])
    return gets and not any(isinstance(n, ast.Raise) for statement in handler.body for n in walk(statement))


def may_close(handler: ast.ExceptHandler) -> bool:
    """Whether a handler gets what ends a generator that is closed (docs: ``generator.close``)."""
    kinds = () if handler.type is None else walk(handler.type)
    return handler.type is None or any(
        isinstance(n, ast.Name) and n.id in ("GeneratorExit", "BaseException") for n in kinds
    )


def names_it(types: Iterable[ast.expr]) -> bool:
    """Whether one of the types of exceptions may be that of the error."""
    return any(isinstance(n, ast.Name) and n.id in _ERRORS for each in types for n in walk(each))


def ends_errors(definition: ast.AST) -> bool:
    """Whether an ``__exit__`` may return something true, which ends the error (Python reference, 3.3.9)."""
    returned = [n.value for n in walk(definition) if isinstance(n, ast.Return)]
    return any(not (e is None or (isinstance(e, ast.Constant) and not e.value)) for e in returned)


def yields_in_a_try(definition: ast.AST) -> bool:
    """Whether a generator catches what is thrown where it yields (docs: contextlib.contextmanager)."""
    tries = [n for n in walk(definition) if isinstance(n, ast.Try) and any(map(swallows, n.handlers))]
    bodies = [statement for each in tries for statement in each.body]
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for statement in bodies for n in walk(statement))
