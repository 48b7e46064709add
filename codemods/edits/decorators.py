"""Decorate functions."""

from __future__ import annotations

import libcst as cst

from codemods.edits.whitespace import line_end, with_newline
from codemods.terms.edits import EditError


def add_decorator(function: cst.FunctionDef, code: str) -> cst.FunctionDef:
    """``function`` with ``@code`` directly above its ``def``, so below comments and other decorators.

    Raises EditError if ``code`` cannot follow an ``@``.
    """
    try:
        (parsed, *others) = cst.parse_module(f"@{code}\ndef function(): pass\n").body
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
        raise EditError(f"{code!r} cannot be a decorator") from error
    if others or not isinstance(parsed, cst.FunctionDef) or len(parsed.decorators) != 1:
        raise EditError(f"{code!r} is not one decorator")
    decorator = with_newline(parsed.decorators[0], line_end(function))
    # Comments between the other decorators and the def stay where they are, above the new one.
    decorator = decorator.with_changes(leading_lines=function.lines_after_decorators)
    return function.with_changes(decorators=(*function.decorators, decorator), lines_after_decorators=())
