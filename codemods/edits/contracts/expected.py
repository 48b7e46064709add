"""The tree that edits ask for: each made on :mod:`ast`, in the plainest way."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from codemods.edits.contracts.comparison import same
from codemods.edits.contracts.trees import FUNCTIONS, SUITES, Emptied, expression_of, statements_of, suite_of
from codemods.edits.emptied import is_identity
from codemods.edits.positions import span_of
from codemods.edits.source import Source
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

_Node = TypeVar("_Node", bound=ast.AST)
_MARK = "codemods_wrapped_expression_"

Unused = Mapping[ast.Import | ast.ImportFrom, Collection[int]]


@dataclass(eq=False)
class _Suite:
    """What happens to the statements of one suite, by the statements of the tree as parsed."""

    first: list[list[ast.stmt]] = field(default_factory=list)
    last: list[list[ast.stmt]] = field(default_factory=list)
    before: dict[ast.stmt, list[list[ast.stmt]]] = field(default_factory=dict)
    after: dict[ast.stmt, list[list[ast.stmt]]] = field(default_factory=dict)
    wraps: list[tuple[int, int, str]] = field(default_factory=list)


class Expected:
    """The tree of ``source`` with ``edits`` made in it, by what their kinds say."""

    def __init__(self, source: Source, edits: Sequence[Edit], unused: Unused) -> None:
        self.source = source
        self.forgotten: set[str] = set()
        """Names that are no longer imported."""
        memo: dict[int, Any] = {}
        self.tree: ast.Module = copy.deepcopy(source.tree, memo)
        self.memo = memo
        self.extras: list[ast.stmt] = []
        self.lost: list[Span] = []
        """Where comments may go with what they are about."""
        self.homes = {
            id(statement): (node, name)
            for node in ast.walk(self.tree)
            for name in SUITES
            for statement in suite_of(node, name)
        }
        self.suites: dict[tuple[int, str], _Suite] = {}
        self.gone: set[int] = set()
        self.identities: list[ast.stmt] = []
        self._expressions([e for e in edits if isinstance(e, _OF_EXPRESSIONS)])
        self._imports(unused)
        self._statements([e for e in edits if not isinstance(e, _OF_EXPRESSIONS)])

    def _imports(self, unused: Unused) -> None:
        for original, indexes in unused.items():
            statement = self._copy(original)
            self.forgotten |= {
                alias.asname or alias.name.partition(".")[0]
                for index, alias in enumerate(statement.names)
                if index in indexes
            }
            statement.names = [alias for index, alias in enumerate(statement.names) if index not in indexes]
            first, _, last, _ = span_of(original, self.source.lines)
            self.lost.append(Span(first, 0, last + 1, 0))
            if not statement.names:
                self.gone.add(id(statement))

    def _copy(self, node: _Node) -> _Node:
        copied: _Node = self.memo[id(node)]
        return copied

    def _expression(self, span: Span) -> ast.expr:
        return self._copy(self.source.ast_expression(span))

    def _statement(self, span: Span) -> ast.stmt:
        return self._copy(self.source.ast_statement(span))

    # expressions

    def _expressions(self, edits: Sequence[_OfExpression]) -> None:
        changes: dict[int, list[_OfExpression]] = {}
        for edit in edits:
            node = self._expression(_target(edit))
            changes.setdefault(id(node), []).append(edit)
            if isinstance(edit, DropArgument):
                self._comments_of_argument(edit)
            elif isinstance(edit, ReplaceExpression):
                self.lost.append(edit.target)
        kept = {id(self._expression(e.kept)) for e in edits if isinstance(e, KeepPart)}
        if changes:
            _Rebuild(self, changes, kept).visit(self.tree)

    def _comments_of_argument(self, edit: DropArgument) -> None:
        call = self.source.ast_expression(edit.call)
        assert isinstance(call, ast.Call)
        dropped = _argument(call, edit.argument)
        first, _, last, _ = span_of(dropped, self.source.lines)
        self.lost.append(Span(first, 0, last + 1, 0))

    # statements

    def _statements(self, edits: Sequence[Edit]) -> None:
        moves = [e for e in edits if isinstance(e, MoveStatement)]
        removals = [e for e in edits if isinstance(e, (RemoveStatement, RemoveIdentity))]
        # Moved statements come before inserted ones.
        moved = [(e, self._statement(e.target)) for e in moves]
        for edit, statement in moved:
            self.gone.add(id(statement))
            self._put(edit.anchor, edit.where, [statement])
        for removal in removals:
            statement = self._statement(removal.target)
            self.gone.add(id(statement))
            self.lost.append(self._with_comments(removal.target))
            if isinstance(removal, RemoveIdentity):
                self.identities.append(statement)
        decorated: dict[int, list[ast.expr]] = {}
        for other in edits:
            if isinstance(other, InsertStatements):
                self._put(other.anchor, other.where, statements_of(other.code))
            elif isinstance(other, AddDecorator):
                function = self._statement(other.function)
                assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
                added = expression_of(other.code)
                known = decorated.setdefault(id(function), [])
                if not any(same(one, added) or same(added, one) for one in known):
                    known.append(added)
                    function.decorator_list.append(added)
            elif isinstance(other, AddHelper):
                self.extras += statements_of(other.code)
            elif isinstance(other, WrapBlock):
                first, last = self._statement(other.first), self._statement(other.last)
                node, name = self.homes[id(first)]
                suite = suite_of(node, name)
                self._changes(node, name).wraps.append((_index(suite, first), _index(suite, last), other.header))
        for statement in self.identities:
            home, name = self.homes[id(statement)]
            suite = suite_of(home, name)
            above = suite[: _index(suite, statement)]
            if not is_identity(statement, above) or (isinstance(home, ast.ClassDef) and name == "body"):
                raise EditError("a statement that does more than to assign names to themselves is to be removed")
        self._rebuild_suites()

    def _with_comments(self, span: Span) -> Span:
        """``span`` of a statement with the comments in its body, which may stand behind its end."""
        statement = self.source.ast_statement(span)
        if not any(suite_of(statement, name) for name in SUITES) and not hasattr(statement, "cases"):
            return span
        end = span.end_line
        for number, line in enumerate(self.source.lines[span.end_line :], span.end_line + 1):
            inner = line.lstrip()
            if inner and not (inner.startswith("#") and len(line) - len(inner) > span.column):
                break
            end = number
        return span._replace(end_line=end + 1, end_column=0)

    def _changes(self, node: ast.AST, name: str) -> _Suite:
        return self.suites.setdefault((id(node), name), _Suite())

    def _put(self, anchor: Span, where: str, statements: list[ast.stmt]) -> None:
        node = self._statement(anchor)
        if where in ("before", "after"):
            changes = self._changes(*self.homes[id(node)])
            (changes.before if where == "before" else changes.after).setdefault(node, []).append(statements)
            return
        changes = self._changes(node, "body")
        (changes.first if where == "first-in" else changes.last).append(statements)

    def _rebuild_suites(self) -> None:
        touched = {self._key(self.homes[one]) for one in self.gone} | self.suites.keys()
        nodes = [(node, name) for node in ast.walk(self.tree) for name in SUITES if (id(node), name) in touched]
        # What a node is moved into may itself be in a suite that changes: all are read before any is written.
        written = [(node, name, self._suite_after(node, name)) for node, name in nodes]
        for node, name, statements in written:
            setattr(node, name, statements)

    @staticmethod
    def _key(home: tuple[ast.AST, str]) -> tuple[int, str]:
        return id(home[0]), home[1]

    def _suite_after(self, node: ast.AST, name: str) -> list[ast.stmt]:
        old, changes = suite_of(node, name), self.suites.get((id(node), name), _Suite())
        has_docstring = name == "body" and isinstance(node, (*FUNCTIONS, ast.ClassDef)) and _is_docstring(old[:1])
        made: list[list[ast.stmt]] = [[]]
        if not old or not has_docstring:
            made[0] += _flat(changes.first)
        opened: list[tuple[int, str]] = []
        for index, statement in enumerate(old):
            made[-1] += _flat(changes.before.get(statement, ()))
            starting = [wrap for wrap in changes.wraps if wrap[0] == index]
            for _, last, header in sorted(starting, key=lambda wrap: wrap[1], reverse=True):
                opened.append((last, header))
                made.append([])
            if id(statement) not in self.gone:
                made[-1].append(statement)
            while opened and opened[-1][0] == index:
                block = statements_of(f"{opened.pop()[1]}\n    pass\n")[0]
                block.body = made.pop()  # type: ignore[attr-defined]
                made[-1].append(block)
            if index == 0 and has_docstring:
                made[-1] += _flat(changes.first)
            made[-1] += _flat(changes.after.get(statement, ()))
        made[-1] += _flat(changes.last)
        return made[0] or ([] if isinstance(node, ast.Module) else [Emptied()])


class _Rebuild(ast.NodeTransformer):
    """Makes the edits of expressions, from the leaves up."""

    def __init__(self, expected: Expected, changes: dict[int, list[_OfExpression]], kept: set[int]) -> None:
        self.expected = expected
        self.changes = changes
        self.parts = kept
        self.kept: dict[int, ast.expr] = {}

    def visit(self, node: ast.AST) -> Any:
        original = id(node)
        changes = self.changes.get(original, [])
        drops: list[ast.expr | ast.keyword] = []
        renames: list[tuple[ast.expr | ast.keyword, str]] = []
        cut = next((e for e in changes if isinstance(e, KeepPart)), None)
        if isinstance(node, ast.Call) and cut is None:
            drops = [_argument(node, e.argument) for e in changes if isinstance(e, DropArgument)]
            renames = [(_argument(node, e.argument), e.name) for e in changes if isinstance(e, RenameArgument)]
        # Which arguments these are has to be known before what is in them becomes something else.
        marks = [(_place_of(node, one), name) for one, name in renames] if isinstance(node, ast.Call) else []
        gone = [_place_of(node, one) for one in drops] if isinstance(node, ast.Call) else []
        new = self.generic_visit(node)
        if isinstance(new, ast.Call):
            _rename(new, marks)
            new.args = [one for index, one in enumerate(new.args) if ("args", index) not in gone]
            new.keywords = [one for index, one in enumerate(new.keywords) if ("keywords", index) not in gone]
        replaced = next((e for e in changes if isinstance(e, ReplaceExpression)), None)
        if replaced is not None:
            new = _in_context(expression_of(replaced.code), new)
        elif cut is not None:
            part = self.kept[id(self.expected._expression(cut.kept))]
            new = _filled(f"{_MARK}{cut.suffix}", part) if cut.suffix else part
        for edit in changes:
            if isinstance(edit, WrapExpression):
                assert isinstance(new, ast.expr)
                new = _filled(f"{edit.prefix}{_MARK}{edit.suffix}", new)
        if original in self.parts:
            assert isinstance(new, ast.expr)
            self.kept[original] = new
        return new


_OfExpression = DropArgument | RenameArgument | KeepPart | WrapExpression | ReplaceExpression
_OF_EXPRESSIONS = (DropArgument, RenameArgument, KeepPart, WrapExpression, ReplaceExpression)


def _target(edit: _OfExpression) -> Span:
    return edit.call if isinstance(edit, (DropArgument, RenameArgument)) else edit.target


def _argument(call: ast.Call, argument: str | int) -> ast.expr | ast.keyword:
    if isinstance(argument, str):
        return next(k for k in call.keywords if k.arg == argument)
    return call.args[argument]


def _place_of(call: ast.AST, argument: ast.AST) -> tuple[str, int]:
    assert isinstance(call, ast.Call)
    for name, arguments in (("args", call.args), ("keywords", call.keywords)):
        for index, one in enumerate(arguments):
            if one is argument:
                return name, index
    raise EditError("an argument is not where it was")


def _rename(call: ast.Call, marks: Iterable[tuple[tuple[str, int], str]]) -> None:
    for (where, index), name in marks:
        if where == "keywords":
            call.keywords[index].arg = name
        else:
            call.keywords.insert(0, ast.keyword(arg=name, value=call.args.pop(index)))


def _in_context(new: ast.expr, old: ast.AST) -> ast.expr:
    if isinstance(getattr(old, "ctx", None), (ast.Store, ast.Del)) and hasattr(new, "ctx"):
        new.ctx = old.ctx  # type: ignore[attr-defined]
    return new


def _filled(template: str, node: ast.expr) -> ast.expr:
    filled = _Fill(node).visit(expression_of(template))
    assert isinstance(filled, ast.expr)
    return filled


class _Fill(ast.NodeTransformer):
    def __init__(self, node: ast.expr) -> None:
        self.node = node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.node if node.id == _MARK else node


def _index(suite: Sequence[ast.stmt], statement: ast.stmt) -> int:
    return next((i for i, one in enumerate(suite) if one is statement), -1)


def _flat(groups: Iterable[list[ast.stmt]]) -> list[ast.stmt]:
    return [statement for group in groups for statement in group]


def _is_docstring(statements: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        for s in statements
    )
