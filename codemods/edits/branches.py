"""Branches of an ``if`` or a loop that edits leave without a statement."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.edits.emptied import is_harmless, negated
from codemods.edits.expressions import parse_expression
from codemods.edits.suites import SuiteChanges, statements_of
from codemods.edits.whitespace import comments, is_directive


def is_emptied(suite: cst.CSTNode, changes: SuiteChanges) -> bool:
    """Whether ``changes`` leave nothing of a suite, not even a comment."""
    if not isinstance(suite, (cst.IndentedBlock, cst.SimpleStatementSuite)) or changes.inserts:
        return False
    gone = changes.removed | changes.moved
    return all(old in gone for old in statements_of(suite)) and not _has_comments(suite)


def orelse_of(node: cst.CSTNode) -> cst.Else | cst.If | None:
    """The ``else`` or ``elif`` of a statement."""
    return node.orelse if isinstance(node, (cst.If, cst.For, cst.While, cst.Try)) else None


def may_go(clause: cst.Else | cst.If, *, is_statement: bool) -> bool:
    """Whether an ``else``, or an ``if`` without one, whose suite is empty can be left out.

    Of a statement of its own the comments above stay.
    """
    header = clause.with_changes(body=_NOTHING, **({"leading_lines": ()} if is_statement else {}))
    if isinstance(header, cst.If):
        header = header.with_changes(orelse=None)
        test = _parsed(header.test)
        if test is None or not is_harmless(test):
            return False
    return not _has_comments(header)


def may_turn(branch: cst.If) -> bool:
    """Whether an ``if`` without statements can have those of its ``else``."""
    if not isinstance(branch.orelse, cst.Else) or _parsed(branch.test) is None:
        return False
    header = branch.with_changes(body=_NOTHING, orelse=None, leading_lines=())
    return not _has_comments(header) and not _has_comments(branch.orelse.with_changes(body=_NOTHING))


def turn_round(branch: cst.If) -> cst.If:
    """``if x: pass`` with an ``else`` as ``if not x`` with what stands in that."""
    test, orelse = _parsed(branch.test), branch.orelse
    assert test is not None
    assert orelse is not None
    opposite = parse_expression(ast.unparse(negated(test)))
    return branch.with_changes(
        test=opposite, whitespace_before_test=cst.SimpleWhitespace(" "), body=orelse.body, orelse=None
    )


_NOTHING = cst.SimpleStatementSuite([cst.Pass()])


def _parsed(test: cst.BaseExpression) -> ast.expr | None:
    try:
        return ast.parse(f"({cst.Module([]).code_for_node(test)}\n)", mode="eval").body
    except SyntaxError:
        return None


def _has_comments(node: cst.CSTNode) -> bool:
    return not all(map(is_directive, comments(node)))
