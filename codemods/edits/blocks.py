"""Put statements under the header of a new block, and decorators above functions."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.edits.whitespace import (
    Statement,
    indented,
    line_end,
    with_leading_lines,
    with_newline,
)
from codemods.terms.edits import EditError


def wrap_statements(
    statements: Sequence[Statement],
    header: str,
    *,
    indent: str | None,
    indentation: Sequence[str],
    default_indent: str,
) -> Statement:
    """A block with ``header``, ``statements`` in its body and what stood above them above it.

    ``indent`` is that of the new body, None for the ``default_indent`` of the module; ``indentation`` is that of the
    suite where ``statements`` have been so far. Raises EditError if ``header`` is not the header of a block.
    """
    block = parse_header(header)
    by = default_indent if indent is None else indent
    first, *others = statements
    above, newline = first.leading_lines, line_end(first)
    body = [indented(item, by, indentation, default_indent) for item in (with_leading_lines(first, ()), *others)]
    assert isinstance(block.body, cst.IndentedBlock)
    suite = block.body.with_changes(body=body, indent=None if by == default_indent else by)
    suite = suite.with_changes(header=with_newline(suite.header, newline))
    return with_leading_lines(block.with_changes(body=suite), above)


def parse_header(header: str) -> cst.BaseCompoundStatement:
    """The block that begins with ``header``; raises EditError if none does."""
    try:
        module = cst.parse_module(f"{header}\n    pass\n")
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
        raise EditError(f"{header!r} is not the header of a block") from error
    if len(module.body) != 1 or not isinstance(module.body[0], cst.BaseCompoundStatement):
        raise EditError(f"{header!r} is not the header of a block")
    return module.body[0]


def indent_of_bodies(statements: Sequence[cst.CSTNode]) -> str | None:
    """The indentation of the first block directly in ``statements`` if it is not the module's default."""
    for statement in statements:
        body = getattr(statement, "body", None)
        if isinstance(body, cst.IndentedBlock):
            return body.indent
    return None


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
