"""From edits, which name places in a text, to what is to happen to the nodes of its tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import libcst as cst

from codemods.edits.arguments import argument_index
from codemods.edits.bindings import MODULE, Bindings, Spot, identifiers
from codemods.edits.branches import is_emptied, may_go, may_turn, orelse_of
from codemods.edits.imports import TopLevelPlace, place_for_helper, place_for_import
from codemods.edits.source import Source, StatementNode, describe
from codemods.edits.statements import parse_statements
from codemods.edits.suites import Insertion, SuiteChanges, Where, Wrap
from codemods.edits.whitespace import Lines, Statement
from codemods.terms.edits import (
    AddDecorator,
    AddHelper,
    DropArgument,
    Edit,
    EditError,
    InsertStatements,
    KeepPart,
    MoveStatement,
    RemoveIdentity,
    RemoveStatement,
    RenameArgument,
    ReplaceExpression,
    WrapBlock,
    WrapExpression,
)
from codemods.terms.spans import Span

_TORCH = f"{{{MODULE}}}"
_TORCH_ATTRIBUTE = re.compile(re.escape(_TORCH) + r"\s*\.\s*([^\W\d]\w*)")

_PLACES: dict[Where, Literal["at", "after", "start", "end"]] = {
    "before": "at",
    "after": "after",
    "first-in": "start",
    "last-in": "end",
}


@dataclass(eq=False)
class Plan:
    """What is to happen to which node of a tree as parsed; ``touched`` are these nodes and all above them.

    ``dropped`` are branches that nothing is left of; those in ``turned`` take the statements of their ``else``.
    """

    arguments: dict[cst.Call, set[int]] = field(default_factory=dict)
    keywords: dict[cst.Call, list[tuple[str | int, str]]] = field(default_factory=dict)
    kept: dict[cst.BaseExpression, tuple[cst.BaseExpression, str]] = field(default_factory=dict)
    replacements: dict[cst.BaseExpression, str] = field(default_factory=dict)
    wraps: dict[cst.BaseExpression, list[tuple[str, str]]] = field(default_factory=dict)
    decorators: dict[cst.FunctionDef, list[str]] = field(default_factory=dict)
    suites: dict[cst.CSTNode, SuiteChanges] = field(default_factory=dict)
    imported_names: dict[cst.CSTNode, set[int]] = field(default_factory=dict)
    moved: set[StatementNode] = field(default_factory=set)
    removed: set[StatementNode] = field(default_factory=set)
    dropped: set[cst.CSTNode] = field(default_factory=set)
    turned: set[cst.If] = field(default_factory=set)
    touched: set[cst.CSTNode] = field(default_factory=set)


def make_plan(source: Source, edits: Iterable[Edit]) -> Plan:
    """What ``edits``, identical ones counting once, ask for in ``source``.

    Raises EditError if a target is not there or edits contradict each other.
    """
    planner = _Planner(source)
    for edit in dict.fromkeys(edits):
        planner.add(edit)
    return planner.finish()


_Unused = dict[ast.Import | ast.ImportFrom, set[int]]


def plan_unused(plan: Plan, source: Source, unused: _Unused) -> _Unused:
    """Add to ``plan`` that ``unused`` names are no longer imported; return those for which that changed it."""
    changed: _Unused = {}
    for statement, indexes in unused.items():
        node = source.statement_of(statement)
        if node in plan.removed or node in plan.moved:
            continue
        changed[statement] = indexes
        if len(indexes) == len(statement.names):
            suite = source.suite_of(node)
            plan.suites.setdefault(suite, SuiteChanges()).removed.add(node)
            plan.removed.add(node)
            _touch(plan, source, suite)
        else:
            plan.imported_names[node] = indexes
            _touch(plan, source, node)
    return changed


def _touch(plan: Plan, source: Source, node: cst.CSTNode) -> None:
    plan.touched.add(node)
    plan.touched.update(source.ancestors(node))


class _Planner:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.plan = Plan()
        self.taken_away: list[ast.stmt] = []
        # Nodes that edits need to find where they are, each with what it is to them.
        self.targets: list[tuple[cst.CSTNode, str]] = []
        self.with_code: list[Edit] = []
        self.import_limits: dict[str, int] = {}
        self.bindings = Bindings(source.tree, source.ast_parents)
        self.at_top: list[Insertion] = []
        self.helpers: dict[str, str] = {}

    def add(self, edit: Edit) -> None:
        """Find the targets of ``edit``; what has code is planned later, when it is known which imports will go."""
        plan, source = self.plan, self.source
        if isinstance(edit, (DropArgument, RenameArgument)):
            self._argument(edit)
        elif isinstance(edit, KeepPart):
            self._keep(edit)
        elif isinstance(edit, (RemoveStatement, RemoveIdentity)):
            node = self._statement_of_suite(edit.target)
            self._changes(node).removed.add(node)
            plan.removed.add(node)
            self.taken_away.append(source.ast_statement(edit.target))
            self._target(node, "a statement to remove")
        elif isinstance(edit, MoveStatement):
            node = self._statement_of_suite(edit.target)
            if node in plan.moved:
                raise EditError(f"the statement at {describe(edit.target)} is to be moved to two places")
            plan.moved.add(node)
            self._changes(node).moved.add(node)
            self.taken_away.append(source.ast_statement(edit.target))
            self._target(node, "a statement to move")
            anchor = self._insert(edit.anchor, edit.where, Insertion(moved=node, blank_below=edit.blank_below))
            if anchor is node or node in source.ancestors(anchor):
                raise EditError(f"the statement at {describe(edit.target)} is to be moved into or next to itself")
        else:
            self.with_code.append(edit)

    def _argument(self, edit: DropArgument | RenameArgument) -> None:
        call = self.source.expression(edit.call)
        if not isinstance(call, cst.Call):
            raise EditError(f"no call at {describe(edit.call)}")
        try:
            index = argument_index(call, edit.argument)
        except EditError as error:
            raise EditError(f"{error} at {describe(edit.call)}") from None
        if isinstance(edit, DropArgument):
            self.plan.arguments.setdefault(call, set()).add(index)
            self._target(call, "an argument to drop")
        else:
            self.plan.keywords.setdefault(call, []).append((edit.argument, edit.name))
            self._target(call, "an argument to rename")

    def _keep(self, edit: KeepPart) -> None:
        node, kept = self.source.expression(edit.target), self.source.expression(edit.kept)
        if node not in self.source.ancestors(kept):
            raise EditError(f"what is to be kept is no part of the expression at {describe(edit.target)}")
        wanted = (kept, edit.suffix)
        if self.plan.kept.setdefault(node, wanted) != wanted:
            raise EditError(f"two parts are to be kept of the expression at {describe(edit.target)}")
        self._target(node, "an expression to cut down")
        self._target(kept, "what is to be kept of an expression")

    def finish(self) -> Plan:
        self.bindings = Bindings(self.source.tree, self.source.ast_parents, self.taken_away)
        for edit in self.with_code:
            self._add_code(edit)
        for name, limit in self.import_limits.items():
            code = f"import {MODULE}" if name == MODULE else f"import {MODULE} as {name}"
            self._insert_at_top(place_for_import(self.source.tree, limit), code)
        # Helpers follow the imports where both are put after the same statement.
        for code in self.helpers.values():
            self._insert_at_top(place_for_helper(self.source.tree), code)
        self._prune()
        self._check()
        return self.plan

    def _prune(self) -> None:
        """Leave out branches that become empty; what they are in may become empty by that."""
        pending = list(self.plan.suites)
        while pending:
            suite = pending.pop()
            changes = self.plan.suites[suite]
            parent = self.source.parents.get(suite)
            if not isinstance(parent, (cst.If, cst.Else)) or not is_emptied(suite, changes):
                continue
            holder = self.source.parents[parent]
            is_statement = orelse_of(holder) is not parent
            orelse = orelse_of(parent)
            if orelse is not None and orelse not in self.plan.dropped:
                turning = self.plan.suites.get(orelse.body)
                if (
                    isinstance(parent, cst.If)
                    and may_turn(parent)
                    and not (turning and is_emptied(orelse.body, turning))
                ):
                    self._turn(parent)
                continue
            if not may_go(parent, is_statement=is_statement):
                continue
            if is_statement:
                assert isinstance(parent, cst.If)
                around = self.source.suite_of(parent)
                self.plan.suites.setdefault(around, SuiteChanges()).removed.add(parent)
                self._target(parent, "a branch that becomes empty")
                pending.append(around)
            else:
                self.plan.dropped.add(parent)
                self._target(parent, "a branch that becomes empty")
                if isinstance(holder, cst.If) and holder.body in self.plan.suites:
                    # it may be empty as well, and waited for this
                    pending.append(holder.body)

    def _turn(self, branch: cst.If) -> None:
        self.plan.turned.add(branch)
        self._target(branch, "a branch that becomes empty")

    def _add_code(self, edit: Edit) -> None:
        plan, source = self.plan, self.source
        if isinstance(edit, WrapExpression):
            node = source.expression(edit.target)
            place = Spot(source.ast_expression(edit.target))
            # Resolved as one, so that both halves take the same name.
            prefix, suffix = self._resolved(f"{edit.prefix}\0{edit.suffix}", place).split("\0")
            plan.wraps.setdefault(node, []).append((prefix, suffix))
            self._target(node, "an expression to wrap")
        elif isinstance(edit, ReplaceExpression):
            node = source.expression(edit.target)
            code = self._resolved(edit.code, Spot(source.ast_expression(edit.target)))
            if plan.replacements.setdefault(node, code) != code:
                raise EditError(f"two edits replace the expression at {describe(edit.target)}")
            self._target(node, "an expression to replace")
        elif isinstance(edit, InsertStatements):
            wanted = source.ast_statement(edit.anchor)
            where = _PLACES[edit.where]
            statements, below = self._parsed(self._resolved(edit.code, Spot(wanted, where)))
            self._insert(edit.anchor, edit.where, Insertion(statements, below))
        elif isinstance(edit, WrapBlock):
            self._wrap(edit)
        elif isinstance(edit, AddDecorator):
            function = source.statement(edit.function)
            if not isinstance(function, cst.FunctionDef):
                raise EditError(f"no function at {describe(edit.function)}")
            code = self._resolved(edit.code, Spot(source.ast_statement(edit.function)))
            codes = plan.decorators.setdefault(function, [])
            if code not in codes:
                codes.append(code)
            self._target(function, "a function to decorate")
        elif isinstance(edit, AddHelper):
            self._add_helper(edit)
        else:
            raise EditError(f"{type(edit).__name__} is not an edit")

    def _wrap(self, edit: WrapBlock) -> None:
        first, last = (self._statement_of_suite(span) for span in (edit.first, edit.last))
        suite = self.source.suite_of(first)
        if suite is not self.source.suite_of(last):
            raise EditError(f"{describe(edit.first)} and {describe(edit.last)} are not in one suite")
        header = self._resolved(edit.header, Spot(self.source.ast_statement(edit.first)))
        self._changes(first).wraps.append(Wrap(first, last, header))
        self._target(first, "a statement to wrap")

    def _add_helper(self, edit: AddHelper) -> None:
        place = place_for_helper(self.source.tree)
        at = self.source.tree if place.anchor is None else place.anchor
        code = self._resolved(edit.code, Spot(at, "after" if place.where == "after" else "at"))
        if self.helpers.get(edit.name, code) != code:
            raise EditError(f"two helpers are to be named {edit.name}")
        try:
            parsed = ast.parse(code).body
        except SyntaxError as error:
            raise EditError(f"the helper {edit.name} does not parse: {error}") from error
        for statement in self.source.tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if statement.name != edit.name:
                    continue
                if any(ast.dump(statement) == ast.dump(candidate) for candidate in parsed):
                    return
                raise EditError(f"the file has another {edit.name}")
        if edit.name in identifiers(self.source.tree):
            raise EditError(f"the file uses the name {edit.name}")
        self.helpers[edit.name] = code

    def _insert(self, anchor: Span, where: Where, insertion: Insertion) -> StatementNode:
        node = self.source.statement(anchor)
        if where in ("before", "after"):
            changes = self._changes(self._statement_of_suite(anchor))
            if where == "after" and isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                # As a formatter would have it.
                blank = 2 if isinstance(self.source.suite_of(node), cst.Module) else 1
                insertion = Insertion(insertion.statements, insertion.below, insertion.moved, blank_above=blank)
            (changes.before if where == "before" else changes.after).setdefault(node, []).append(insertion)
            self._target(node, "the place of an insertion")
            return node
        suite = getattr(node, "body", None)
        if not isinstance(suite, cst.BaseSuite):
            raise EditError(f"no statement with a body at {describe(anchor)}")
        changes = self.plan.suites.setdefault(suite, SuiteChanges())
        (changes.first if where == "first-in" else changes.last).append(insertion)
        self._target(suite, "the place of an insertion")
        return node

    def _insert_at_top(self, place: TopLevelPlace, code: str) -> None:
        statements, below = self._parsed(code)
        insertion = Insertion(statements, below, None, place.blank_above, place.blank_below, place.below_comments)
        changes = self.plan.suites.setdefault(self.source.module, SuiteChanges())
        self.plan.touched.add(self.source.module)
        if place.anchor is None:
            changes.first.append(insertion)
            return
        node = self.source.statement_of(place.anchor)
        side = changes.before if place.where == "before" else changes.after
        present = side.setdefault(node, [])
        # Above what edits put there: they may use it.
        present.insert(sum(other in self.at_top for other in present), insertion)
        self.at_top.append(insertion)

    def _parsed(self, code: str) -> tuple[Sequence[Statement], Lines]:
        return parse_statements(code, self.source.module.default_newline)

    def _statement_of_suite(self, span: Span) -> StatementNode:
        node = self.source.statement(span)
        self.source.suite_of(node)
        return node

    def _changes(self, statement: StatementNode) -> SuiteChanges:
        return self.plan.suites.setdefault(self.source.suite_of(statement), SuiteChanges())

    def _target(self, node: cst.CSTNode, what: str) -> None:
        self.targets.append((node, what))

    def _resolved(self, code: str, place: Spot) -> str:
        """``code`` with names for ``{torch}`` that hold at ``place``."""
        if _TORCH not in code:
            return code
        name = next(iter(self.bindings.modules_at(place)), None)
        if name is not None:
            return code.replace(_TORCH, name)
        names = set(_TORCH_ATTRIBUTE.findall(code))
        attributes = {attribute: next(iter(self.bindings.attributes_at(place, attribute)), None) for attribute in names}
        if all(attributes.values()) and _TORCH not in _TORCH_ATTRIBUTE.sub("", code):
            return _TORCH_ATTRIBUTE.sub(lambda match: attributes[match[1]] or "", code)
        name = self.bindings.free_name(place)
        limit = self._top_level_index(place)
        self.import_limits[name] = min(limit, self.import_limits.get(name, limit))
        return code.replace(_TORCH, name)

    def _top_level_index(self, place: Spot) -> int:
        node = place.node
        if isinstance(node, ast.Module):
            return 0
        while not isinstance(self.source.ast_parents[node], ast.Module):
            node = self.source.ast_parents[node]
        index = next(index for index, other in enumerate(self.source.tree.body) if other is node)
        return index + 1 if place.where == "after" and node is place.node else index

    def _check(self) -> None:
        """Refuse contradictions. What is removed takes along edits within it, but not what others put there."""
        plan = self.plan
        if plan.removed & plan.moved:
            raise EditError("a statement is to be both removed and moved")
        for suite, changes in plan.suites.items():
            inserted_into = changes.before or changes.after or changes.first or changes.last
            if inserted_into and any(node in plan.removed for node in self.source.ancestors(suite)):
                raise EditError("statements are to be put into a statement that is to be removed")
        for node, what in self.targets:
            if any(ancestor in plan.replacements for ancestor in self.source.ancestors(node)):
                raise EditError(f"{what} is part of an expression that is to be replaced")
            if node in plan.replacements and (node in plan.arguments or node in plan.keywords):
                raise EditError("a call is to lose or rename an argument and to be replaced")
            if node in plan.replacements and node in plan.kept:
                raise EditError("an expression is to be cut down and to be replaced")
            _touch(plan, self.source, node)
