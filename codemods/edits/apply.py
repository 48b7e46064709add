"""Make all edits of one file in one go."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

import libcst as cst

from codemods.edits.arguments import drop_arguments, rename_argument
from codemods.edits.blocks import add_decorator
from codemods.edits.branches import turn_round
from codemods.edits.contracts import check_contract
from codemods.edits.expressions import fit_expression, keep_part, replace_expression, wrap_expression
from codemods.edits.imports import drop_names, unused_names
from codemods.edits.plan import Plan, make_plan, plan_unused
from codemods.edits.positions import BOM, split_lines
from codemods.edits.source import Source, StatementNode, parsed_source
from codemods.edits.statements import as_line
from codemods.edits.suites import Layout, Suite, change_suite, split_header, statements_of
from codemods.edits.whitespace import (
    Lines,
    Statement,
    settled,
    split_attached,
    with_leading_lines,
)
from codemods.source.reserved import WORD, stand_in
from codemods.source.syntax import FAILURES
from codemods.terms.edits import DropArgument, Edit, EditError, RenameArgument


def apply_edits(text: str, edits: Sequence[Edit], *, exported: Collection[str] = ()) -> str:
    """Return ``text`` with ``edits`` made in it, all of them, and every byte that they do not concern as it was.

    Every edit names its target by its place in ``text``; a byte order mark counts for nothing. Identical edits are made
    once. Imports that the edits leave without a use are removed, but for names in ``exported``, which other files need.

    Raises EditError if a target is not there, if edits contradict each other, if an edit cannot be made where it is
    asked for, or if the result would not be Python or not what edits of their kinds may make.
    """
    if not edits:
        return text
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(BOM)
    # libcst, like Python, refuses ``async=``: another word of that length stands in for it meanwhile
    masked = stand_in(body)
    try:
        if masked is not None:
            body, word = masked
            edits = [_named(edit, word) for edit in edits]
            return mark + re.sub(rf"\b{word}\b", WORD, _edited(body, edits, exported))
        return mark + _edited(body, edits, exported)
    except RecursionError:
        raise EditError("nested too deeply") from None
    except cst.CSTValidationError as error:
        raise EditError(f"the result would not be Python: {error}") from error


def _named(edit: Edit, word: str) -> Edit:
    """An edit that names the argument ``async`` by the word that stands for it."""
    if isinstance(edit, (DropArgument, RenameArgument)) and edit.argument == WORD:
        return replace(edit, argument=word)
    return edit


def _edited(text: str, edits: Sequence[Edit], exported: Collection[str]) -> str:
    source = parsed_source(text)
    plan = make_plan(source, edits)
    result = _rewritten(source, plan)
    after = _parsed(result)
    unused = unused_names(source.tree, after, source.lines, split_lines(result), source.ast_parents, exported)
    unused = plan_unused(plan, source, unused)
    if unused:
        result = _rewritten(source, plan)
        after = _parsed(result)
    check_contract(source, edits, unused, result, after)
    return result


def _rewritten(source: Source, plan: Plan) -> str:
    module = source.module.visit(_Rewriter(source, plan))
    assert isinstance(module, cst.Module)
    return module.code


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except FAILURES as error:
        raise EditError(f"the result would not be Python: {error}") from error


class _Rewriter(cst.CSTTransformer):
    """Makes the changes of a plan from the leaves up; what moves is rewritten when its new suite asks for it."""

    def __init__(self, source: Source, plan: Plan) -> None:
        super().__init__()
        self.source = source
        self.plan = plan
        self.moved: dict[cst.CSTNode, cst.CSTNode] = {}
        self.on_the_way: set[cst.CSTNode] = set()
        self.parts = {part for part, _ in plan.kept.values()}
        self.kept: dict[cst.CSTNode, cst.BaseExpression] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.plan.touched and node not in self.moved

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel:
        if original_node in self.moved:
            return self.moved[original_node]
        if original_node not in self.plan.touched:
            return updated_node
        if original_node in self.plan.dropped:
            return cst.RemoveFromParent()
        updated_node = self._changed(original_node, updated_node)
        if original_node in self.plan.moved:
            self.moved[original_node] = updated_node
        return updated_node

    def _changed(self, node: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
        plan = self.plan
        if node in plan.suites:
            return change_suite(cast(Suite, node), cast(Suite, updated), plan.suites[node], self._layout(node))
        if node in plan.imported_names and isinstance(updated, (cst.Import, cst.ImportFrom)):
            return drop_names(updated, plan.imported_names[node])
        if node in plan.turned and isinstance(updated, cst.If):
            updated = turn_round(updated)
        if isinstance(node, cst.FunctionDef) and isinstance(updated, cst.FunctionDef):
            for code in plan.decorators.get(node, ()):
                updated = add_decorator(updated, code)
        if isinstance(node, cst.Call) and isinstance(updated, cst.Call):
            updated = self._call(node, updated)
        if isinstance(node, cst.BaseExpression) and (
            node in plan.replacements or node in plan.wraps or node in plan.kept or node in self.parts
        ):
            return self._expression(node, cast(cst.BaseExpression, updated))
        return updated

    def _call(self, node: cst.Call, updated: cst.Call) -> cst.Call:
        plan = self.plan
        if node in plan.kept:
            # what else is asked for of the call goes with it
            return updated
        for argument, name in plan.keywords.get(node, ()):
            updated = rename_argument(updated, argument, name)
        if node in plan.arguments:
            updated = drop_arguments(updated, plan.arguments[node])
        return updated

    def _expression(self, node: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        if node in self.plan.replacements:
            updated = replace_expression(updated, self.plan.replacements[node])
        elif node in self.plan.kept:
            kept, suffix = self.plan.kept[node]
            updated = keep_part(updated, self.kept[kept], suffix)
        for prefix, suffix in self.plan.wraps.get(node, ()):
            updated = wrap_expression(updated, prefix, suffix)
        if node in self.parts:
            self.kept[node] = updated
        parent = self.source.parents[node]
        assert parent is not None
        return fit_expression(updated, node, parent)

    def _layout(self, suite: cst.CSTNode) -> Layout:
        ancestors = [suite, *self.source.ancestors(suite)]
        blocks = [node for node in ancestors if isinstance(node, cst.IndentedBlock)]
        default = self.source.module.default_indent
        first = next(iter(statements_of(cast(Suite, suite))), None)
        is_string = isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString))
        return Layout(
            [default if block.indent is None else block.indent for block in reversed(blocks)],
            default,
            blocks[0].indent if blocks else None,
            is_string and isinstance(self.source.parents.get(suite), (cst.FunctionDef, cst.ClassDef)),
            self._arrive,
        )

    def _arrive(self, node: StatementNode) -> Statement:
        """The statement ``node`` as it is put elsewhere: rewritten, on a line of its own, with its comments."""
        if node in self.on_the_way:
            raise EditError("two statements are to be moved into each other")
        if node not in self.moved:
            self.on_the_way.add(node)
            self.moved[node] = cast(cst.CSTNode, node.visit(self))
            self.on_the_way.remove(node)
        new = self.moved[node]
        line = self.source.line_of(node)
        alone = isinstance(node, cst.BaseCompoundStatement) or len(cast(cst.SimpleStatementLine, line).body) == 1
        above: Lines = ()
        if alone and not isinstance(line, cst.SimpleStatementSuite):
            module = self.source.module
            own = split_header(module)[1] if module.body[0] is line else ()
            above = split_attached([*own, *line.leading_lines])[1]
        if isinstance(new, cst.BaseCompoundStatement):
            statement: Statement = new
        else:
            old = cast("cst.SimpleStatementLine | cst.SimpleStatementSuite", line).trailing_whitespace
            trailing = old if alone else cst.TrailingWhitespace(newline=old.newline)
            statement = as_line(cast(cst.BaseSmallStatement, new), trailing)
        if self.source.suite_of(node) is self.source.module:
            statement = settled(statement)
        return with_leading_lines(statement, above)
