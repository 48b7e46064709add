"""Lines between statements, line ends and indentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

import libcst as cst

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
Lines = Sequence[cst.EmptyLine]
Node = TypeVar("Node", bound=cst.CSTNode)


# What a comment tells a tool about its line goes with the line.
_DIRECTIVES = ("noqa", "type:", "pylint:", "pragma:", "fmt:", "isort:", "nosec", "noinspection", "mypy:", "pyright:")


def is_directive(comment: str) -> bool:
    """Whether a comment speaks to a tool about the line that it stands on, or to nobody."""
    return not comment.strip("# \t") or any(word in comment.lower() for word in _DIRECTIVES)


def comments(node: cst.CSTNode) -> list[str]:
    """All comments inside ``node``, in no order that means anything."""
    # Not by libcst.matchers, whose import takes longer than that of all the rest of libcst.
    found, stack = [], [node]
    while stack:
        each = stack.pop()
        if isinstance(each, cst.Comment):
            found.append(each.value)
        stack.extend(each.children)
    return found


def is_blank(line: cst.EmptyLine) -> bool:
    """Whether ``line`` holds nothing that must be kept, neither a comment nor a form feed."""
    return line.comment is None and "\f" not in line.whitespace.value


def split_attached(lines: Lines) -> tuple[Lines, Lines]:
    """The lines above a statement in two: those that stand for themselves, and the comments directly above it."""
    start = len(lines)
    while start and lines[start - 1].comment is not None:
        start -= 1
    return lines[:start], lines[start:]


def split_blanks(lines: Lines) -> tuple[Lines, Lines]:
    """The blank lines with which ``lines`` begin, and the others."""
    end = 0
    while end < len(lines) and is_blank(lines[end]):
        end += 1
    return lines[:end], lines[end:]


def join_lines(left_over: Lines, lines: Lines, *, at_start: bool) -> Lines:
    """What stands above a statement when the one before it, below ``left_over``, is gone.

    Blank lines do not add up, and there are none at the start of a suite.
    """
    if not all(is_blank(line) for line in left_over):
        return [*left_over, *lines]
    blanks, others = split_blanks(lines)
    return others if at_start else [*max(left_over, blanks, key=len), *others]


def at_least_blank(lines: Lines, count: int, newline: cst.Newline) -> Lines:
    """``lines`` with ``count`` blank ones at the start, or more if there were more."""
    blanks, _ = split_blanks(lines)
    return [*[cst.EmptyLine(indent=False, newline=newline) for _ in range(count - len(blanks))], *lines]


def with_leading_lines(statement: Statement, lines: Lines) -> Statement:
    """``statement`` below other lines."""
    return statement.with_changes(leading_lines=tuple(lines))


def line_end(statement: cst.BaseStatement) -> cst.Newline:
    """How the first logical line of ``statement`` ends."""
    if isinstance(statement, cst.SimpleStatementLine):
        return statement.trailing_whitespace.newline
    return suite_line_end(cast(cst.BaseCompoundStatement, statement).body) if hasattr(statement, "body") else _DEFAULT


def suite_line_end(suite: cst.BaseSuite) -> cst.Newline:
    """How the line with the colon in front of ``suite`` ends."""
    if isinstance(suite, cst.IndentedBlock):
        return suite.header.newline
    if isinstance(suite, cst.SimpleStatementSuite):
        return suite.trailing_whitespace.newline
    return _DEFAULT


def with_newline(node: Node, newline: cst.Newline) -> Node:
    """``node``, newly made, with the line ends of its new neighbour where those are not the ones of the file."""
    if newline.value is None:
        return node
    return cast(Node, node.visit(_Newlines(newline)))


def settled(node: Node) -> Node:
    """``node``, so far at module level, so that its blank lines stay empty wherever it is put."""
    return cast(Node, node.visit(_BlankLines()))


def indented(node: Node, by: str, indentation: Sequence[str], default_indent: str) -> Node:
    """``node``, so far at ``indentation``, ready to be put into a block that is indented ``by`` more.

    libcst moves lines by itself, within parentheses too; this moves lines after a backslash along, and keeps what must
    not move: blank lines, and the insides of f-strings.
    """
    if not indentation:
        node = settled(node)
    return cast(Node, node.visit(_Indent(by, indentation, default_indent)))


_DEFAULT = cst.Newline()


class _Newlines(cst.CSTTransformer):
    def __init__(self, newline: cst.Newline) -> None:
        super().__init__()
        self.newline = newline

    def leave_Newline(self, original_node: cst.Newline, updated_node: cst.Newline) -> cst.Newline:
        return self.newline if updated_node.value is None else updated_node


class _BlankLines(cst.CSTTransformer):
    def __init__(self) -> None:
        super().__init__()
        self.depth = 0

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self.depth += 1

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        self.depth -= 1
        return updated_node

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        # Without an indentation to look for, libcst takes every blank line for an indented one.
        if self.depth or updated_node.comment is not None:
            return updated_node
        return updated_node.with_changes(indent=False)


class _Indent(cst.CSTTransformer):
    def __init__(self, by: str, indentation: Sequence[str], default_indent: str) -> None:
        super().__init__()
        self.by = by
        self.indentation = list(indentation)
        self.default_indent = default_indent
        self.formatted_strings = 0

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self.indentation.append(self.default_indent if node.indent is None else node.indent)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        self.indentation.pop()
        return updated_node

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        self.formatted_strings += 1

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        self.formatted_strings -= 1
        return updated_node

    def leave_SimpleWhitespace(
        self, original_node: cst.SimpleWhitespace, updated_node: cst.SimpleWhitespace
    ) -> cst.SimpleWhitespace:
        if "\\" not in updated_node.value:
            return updated_node
        ends = ("\\\r\n", "\\\n", "\\\r")
        value, rest = "", updated_node.value
        while rest:
            end = next((end for end in ends if rest.startswith(end)), "")
            value += end + self.by if end else rest[0]
            rest = rest[len(end) or 1 :]
        return cst.SimpleWhitespace(value)

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        # Blanks on a line of their own are nobody's indentation, and moving them would show as a change.
        stays = self.formatted_strings or updated_node.comment is None
        if not stays or not updated_node.indent:
            return updated_node
        return updated_node.with_changes(indent=False, whitespace=self._anchored(updated_node.whitespace))

    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        if not self.formatted_strings or not updated_node.indent:
            return updated_node
        return updated_node.with_changes(indent=False, last_line=self._anchored(updated_node.last_line))

    def _anchored(self, whitespace: cst.SimpleWhitespace) -> cst.SimpleWhitespace:
        return cst.SimpleWhitespace("".join(self.indentation) + whitespace.value)
