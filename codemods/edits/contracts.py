"""What the edits of a file may change: the tree that they ask for, worked out on :mod:`ast`, against the one they made.

The text is rewritten by libcst. Here the same edits are made a second time, on the syntax tree alone, in the plainest
way: what each kind may change is said in :mod:`codemods.terms.edits`, and everything else has to stay as it was. Where
both do not come to the same tree the edits are refused, whichever of the two is wrong.
"""

from __future__ import annotations

import ast
import copy
import io
import re
import tokenize
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from codemods.edits.bindings import MODULE, Bindings, Place
from codemods.edits.emptied import is_harmless, is_identity, negations
from codemods.edits.positions import span_of
from codemods.edits.source import Source
from codemods.edits.whitespace import is_directive
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
_TORCH_MARK = "codemods_name_of_torch_"
_SUITES = ("body", "orelse", "finalbody")

Unused = Mapping[ast.Import | ast.ImportFrom, Collection[int]]


def check_contract(source: Source, edits: Sequence[Edit], unused: Unused, result: str, after: ast.Module) -> None:
    """Raise EditError if ``after``, the tree of ``result``, is not what ``edits`` may make of ``source``.

    ``unused`` are imports that nothing needs any more, with the indexes of their names.
    """
    expected = _Expected(source, list(dict.fromkeys(edits)), unused)
    needed = {node.id for node in ast.walk(after) if isinstance(node, ast.Name)}.intersection(expected.forgotten)
    if needed:
        raise EditError(f"{min(needed)} would no longer be imported, but is used")
    comparison = _Comparison(expected.extras)
    comparison.bodies(expected.tree.body, after.body, at_top=True)
    comparison.check_helpers(source.tree, after)
    comparison.check_names(after)
    _check_comments(source, expected.lost, result)


# the tree that the edits ask for


class _Emptied(ast.stmt):
    """Stands where a suite lost all that it had."""


@dataclass(eq=False)
class _Suite:
    """What happens to the statements of one suite, by the statements of the tree as parsed."""

    first: list[list[ast.stmt]] = field(default_factory=list)
    last: list[list[ast.stmt]] = field(default_factory=list)
    before: dict[ast.stmt, list[list[ast.stmt]]] = field(default_factory=dict)
    after: dict[ast.stmt, list[list[ast.stmt]]] = field(default_factory=dict)
    wraps: list[tuple[int, int, str]] = field(default_factory=list)


class _Expected:
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
            for name in _SUITES
            for statement in _suite(node, name)
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
        # What moves somewhere stands in front of what is inserted there.
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
                self._put(other.anchor, other.where, _parsed(other.code))
            elif isinstance(other, AddDecorator):
                function = self._statement(other.function)
                assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
                added = _expression_of(other.code)
                known = decorated.setdefault(id(function), [])
                if not any(same(one, added) or same(added, one) for one in known):
                    known.append(added)
                    function.decorator_list.append(added)
            elif isinstance(other, AddHelper):
                self.extras += _parsed(other.code)
            elif isinstance(other, WrapBlock):
                first, last = self._statement(other.first), self._statement(other.last)
                node, name = self.homes[id(first)]
                suite = _suite(node, name)
                self._changes(node, name).wraps.append((_index(suite, first), _index(suite, last), other.header))
        for statement in self.identities:
            home, name = self.homes[id(statement)]
            suite = _suite(home, name)
            above = suite[: _index(suite, statement)]
            if not is_identity(statement, above) or (isinstance(home, ast.ClassDef) and name == "body"):
                raise EditError("a statement that does more than to assign names to themselves is to be removed")
        self._rebuild_suites()

    def _with_comments(self, span: Span) -> Span:
        """``span`` of a statement with the comments in its body, which may stand behind its end."""
        statement = self.source.ast_statement(span)
        if not any(_suite(statement, name) for name in _SUITES) and not hasattr(statement, "cases"):
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
        nodes = [(node, name) for node in ast.walk(self.tree) for name in _SUITES if (id(node), name) in touched]
        # What a node is moved into may itself be in a suite that changes: all are read before any is written.
        written = [(node, name, self._suite_after(node, name)) for node, name in nodes]
        for node, name, statements in written:
            setattr(node, name, statements)

    @staticmethod
    def _key(home: tuple[ast.AST, str]) -> tuple[int, str]:
        return id(home[0]), home[1]

    def _suite_after(self, node: ast.AST, name: str) -> list[ast.stmt]:
        old, changes = _suite(node, name), self.suites.get((id(node), name), _Suite())
        has_docstring = name == "body" and isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and _is_docstring(old[:1])
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
                block = _block(opened.pop()[1])
                block.body = made.pop()  # type: ignore[attr-defined]
                made[-1].append(block)
            if index == 0 and has_docstring:
                made[-1] += _flat(changes.first)
            made[-1] += _flat(changes.after.get(statement, ()))
        made[-1] += _flat(changes.last)
        return made[0] or ([] if isinstance(node, ast.Module) else [_Emptied()])


class _Rebuild(ast.NodeTransformer):
    """Makes the edits of expressions, from the leaves up."""

    def __init__(self, expected: _Expected, changes: dict[int, list[_OfExpression]], kept: set[int]) -> None:
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
            new = _in_context(_expression_of(replaced.code), new)
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
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


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
    filled = _Fill(node).visit(_expression_of(template))
    assert isinstance(filled, ast.expr)
    return filled


class _Fill(ast.NodeTransformer):
    def __init__(self, node: ast.expr) -> None:
        self.node = node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.node if node.id == _MARK else node


def _parsed(code: str) -> list[ast.stmt]:
    try:
        return ast.parse(_marked(code)).body
    except SyntaxError as error:
        raise EditError(f"{code!r} does not parse: {error}") from error


def _expression_of(code: str) -> ast.expr:
    try:
        return ast.parse(f"({_marked(code)}\n)", mode="eval").body
    except SyntaxError as error:
        raise EditError(f"{code!r} is not an expression") from error


def _block(header: str) -> ast.stmt:
    return _parsed(f"{header}\n    pass\n")[0]


def _marked(code: str) -> str:
    return code.replace(f"{{{MODULE}}}", _TORCH_MARK)


def _suite(node: ast.AST, name: str) -> list[ast.stmt]:
    suite = getattr(node, name, None)
    return suite if isinstance(suite, list) and all(isinstance(one, ast.stmt) for one in suite) else []


def _index(suite: Sequence[ast.stmt], statement: ast.stmt) -> int:
    return next((i for i, one in enumerate(suite) if one is statement), -1)


def _flat(groups: Iterable[list[ast.stmt]]) -> list[ast.stmt]:
    return [statement for group in groups for statement in group]


def _is_docstring(statements: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        for s in statements
    )


# the comparison with what was made


class _Comparison:
    """Goes through two trees side by side; raises EditError where they part."""

    def __init__(self, extras: Sequence[ast.stmt]) -> None:
        self.extras = list(extras)
        self.helpers: list[ast.stmt] = []
        self.named: list[tuple[ast.AST, str]] = []
        """Names in the new tree that stand for torch, or for what is behind the dot of it."""

    def nodes(self, expected: ast.AST, actual: ast.AST) -> None:
        if isinstance(expected, ast.Name) and expected.id == _TORCH_MARK and isinstance(actual, ast.Name):
            self.named.append((actual, ""))
            return
        if (
            isinstance(expected, ast.Attribute)
            and isinstance(expected.value, ast.Name)
            and expected.value.id == _TORCH_MARK
            and isinstance(actual, ast.Name)
        ):
            self.named.append((actual, expected.attr))
            return
        if isinstance(expected, ast.If) and isinstance(actual, ast.If) and self._branches(expected, actual):
            return
        if type(expected) is not type(actual):
            raise _parted(expected, actual)
        for name in expected._fields:
            mine, theirs = getattr(expected, name, None), getattr(actual, name, None)
            if name in _SUITES and isinstance(mine, list) and isinstance(theirs, list):
                self.bodies(mine, theirs)
            else:
                self.fields(mine, theirs, expected, actual)

    def fields(self, mine: object, theirs: object, expected: ast.AST, actual: ast.AST) -> None:
        if isinstance(mine, ast.AST) and isinstance(theirs, ast.AST):
            self.nodes(mine, theirs)
        elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
            for one, other in zip(mine, theirs, strict=True):
                self.fields(one, other, expected, actual)
        elif not _same_constant(mine, theirs):
            raise _parted(expected, actual)

    def bodies(self, expected: Sequence[ast.stmt], actual: Sequence[ast.stmt], *, at_top: bool = False) -> None:
        """Compare two suites."""
        rest = list(actual)
        wanted = list(_without_emptied(expected))
        emptied = len(wanted) < len(expected)
        for statement in wanted:
            while at_top and rest and self._extra(statement, rest[0]):
                rest.pop(0)
            if _may_go(statement) and not (rest and same(statement, rest[0])):
                emptied = True
                continue
            if not rest:
                raise _parted(statement, None)
            self.nodes(statement, rest.pop(0))
        while at_top and rest and self._extra(None, rest[0]):
            rest.pop(0)
        if rest and not (emptied and _is_pass(actual)):
            raise _parted(None, rest[0])

    def _branches(self, expected: ast.If, actual: ast.If) -> bool:
        """Whether the body of an ``if`` emptied, and what is left is the other branch under its negation."""
        if not all(map(_may_go, expected.body)) or _is_pass(actual.body) or not expected.orelse:
            return False
        for negation in negations(expected.test):
            if ast.dump(negation) == ast.dump(actual.test) and not actual.orelse:
                self.bodies(expected.orelse, actual.body)
                return True
        return False

    def _extra(self, expected: ast.stmt | None, actual: ast.stmt) -> bool:
        """Whether ``actual`` stands here beside what was expected: an import of torch, or a helper asked for."""
        if expected is not None and type(expected) is type(actual) and same(expected, actual):
            return False
        if isinstance(actual, ast.Import) and [alias.name for alias in actual.names] == [MODULE]:
            return True
        for extra in self.extras:
            if type(extra) is type(actual) and same(extra, actual):
                self.extras.remove(extra)
                self.helpers.append(actual)
                self.nodes(extra, actual)
                return True
        return False

    def check_helpers(self, before: ast.Module, after: ast.Module) -> None:
        """Raise EditError if a helper is not there, or not yet where its name is first mentioned."""
        for extra in self.extras:
            if not any(same(extra, statement) for statement in before.body):
                raise _parted(extra, None)
        for helper in self.helpers:
            name = getattr(helper, "name", "")
            above = after.body[: after.body.index(helper)]
            if any(isinstance(node, ast.Name) and node.id == name for s in above for node in ast.walk(s)):
                raise EditError(f"{name} stands below what uses it")

    def check_names(self, after: ast.Module) -> None:
        """Raise EditError if what stands for torch may be something else there."""
        if not self.named:
            return
        parents = {child: node for node in ast.walk(after) for child in ast.iter_child_nodes(node)}
        bindings = Bindings(after, parents)
        for node, attribute in self.named:
            assert isinstance(node, ast.Name)
            place = Place(_header_place(node, parents))
            if node.id not in (
                bindings.modules_at(place) if not attribute else bindings.attributes_at(place, attribute)
            ):
                raise EditError(f"{node.id} in line {node.lineno} of the result is not surely torch")


def same(expected: ast.AST, actual: ast.AST) -> bool:
    """Whether a tree may be what was expected, whatever the file calls torch."""
    try:
        _Comparison(()).nodes(expected, actual)
    except EditError:
        return False
    return True


def _header_place(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    """A node from which the scopes of a name are found: for a decorator the function itself."""
    parent = parents.get(node)
    child = node
    while parent is not None and not isinstance(child, ast.stmt):
        if isinstance(parent, (*_FUNCTIONS, ast.ClassDef)) and child in parent.decorator_list:
            return parent
        child, parent = parent, parents.get(parent)
    return node


def _without_emptied(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    return (s for s in statements if not isinstance(s, _Emptied))


def _is_pass(statements: Sequence[ast.stmt]) -> bool:
    return len(statements) == 1 and isinstance(statements[0], ast.Pass)


def _may_go(statement: ast.stmt) -> bool:
    """Whether an ``if`` is left without anything to do, and nothing happens when its test is evaluated."""
    if isinstance(statement, _Emptied):
        return True
    if not isinstance(statement, ast.If) or not is_harmless(statement.test):
        return False
    return all(map(_may_go, (*statement.body, *statement.orelse)))


def _same_constant(mine: object, theirs: object) -> bool:
    if isinstance(mine, str) and isinstance(theirs, str) and _TORCH_MARK in mine:
        return bool(re.fullmatch(re.escape(mine).replace(_TORCH_MARK, r"\w+"), theirs))
    return type(mine) is type(theirs) and repr(mine) == repr(theirs)


def _parted(expected: ast.AST | None, actual: ast.AST | None) -> EditError:
    wanted = "nothing" if expected is None else type(expected).__name__
    line = getattr(actual, "lineno", None) or getattr(expected, "lineno", None)
    what = "nothing" if actual is None else f"{type(actual).__name__}"
    return EditError(f"the edits would change more than they may: {what} for {wanted} near line {line}")


# comments


def _check_comments(source: Source, lost: Sequence[Span], result: str) -> None:
    """Raise EditError if a comment is gone that none of the ``lost`` places had in it."""
    kept = Counter(
        text for line, column, text in _comments(source.text) if not any(_within(line, column, s) for s in lost)
    )
    missing = kept - Counter(text for _, _, text in _comments(result))
    directives = [text for text in missing if is_directive(text)]
    for text in directives:
        del missing[text]
    if missing:
        raise EditError(f"a comment would be lost: {min(missing)}")


def _within(line: int, column: int, span: Span) -> bool:
    return (span.line, span.column) <= (line, column) < (span.end_line, span.end_column)


def _comments(text: str) -> list[tuple[int, int, str]]:
    if "#" not in text:
        return []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [(t.start[0], t.start[1], t.string.rstrip()) for t in tokens if t.type == tokenize.COMMENT]
