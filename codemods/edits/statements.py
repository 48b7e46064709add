"""Statements made from the code of an edit."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.edits.positions import split_lines
from codemods.edits.whitespace import Lines, Statement, settled, with_leading_lines
from codemods.terms.edits import EditError


def parse_statements(code: str, newline: str) -> tuple[Sequence[Statement], Lines]:
    """The statements of ``code``, for a file whose lines end in ``newline``, and the comments after the last of them.

    Raises EditError if ``code`` has no statements or does not parse.
    """
    # Within strings too, where libcst would leave them: the file should not get a second kind of line end.
    lines_of_file = newline.join(split_lines(code))
    try:
        module = settled(cst.parse_module(lines_of_file))
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
        raise EditError(f"{code!r} does not parse: {error}") from error
    if not module.body:
        raise EditError(f"{code!r} has no statements")
    first, *others = module.body
    lines = [line for line in (*module.header, *first.leading_lines) if line.comment is not None]
    return [with_leading_lines(first, lines), *others], [line for line in module.footer if line.comment is not None]


def as_line(statement: cst.BaseSmallStatement, trailing: cst.TrailingWhitespace) -> cst.SimpleStatementLine:
    """``statement`` alone on a line that ends with ``trailing``."""
    return cst.SimpleStatementLine(
        [statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)], trailing_whitespace=trailing
    )
