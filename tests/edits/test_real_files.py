"""Random edits of the standard library: what comes out is what :mod:`ast` says it should be, and nothing else moves."""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import pytest

from codemods.edits.apply import apply_edits
from codemods.edits.positions import span_of, split_lines
from codemods.terms.edits import (
    AddDecorator,
    DropArgument,
    Edit,
    InsertStatements,
    MoveStatement,
    RemoveStatement,
    WrapBlock,
    WrapExpression,
)

_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
_MARK = "codemods_mark"


def _files(largest: int) -> list[Path]:
    found = [*_LIBRARY.glob("*.py"), *_LIBRARY.glob("asyncio/*.py"), *_LIBRARY.glob("email/*.py")]
    return sorted(path for path in found if 1_000 < path.stat().st_size < largest)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


@pytest.mark.parametrize("seed", range(8))
def test_random_edits(seed: int) -> None:
    generator = random.Random(seed)
    _check_random_edits(_text(generator.choice(_files(6_000))), generator)


@pytest.mark.slow
@pytest.mark.parametrize("path", _files(40_000)[::4], ids=lambda path: path.name)
def test_random_edits_of_larger_files(path: Path) -> None:
    generator = random.Random(path.name)
    _check_random_edits(_text(path), generator)
    _check_random_edits("\ufeff" + _text(path).replace("\n", "\r\n").removesuffix("\r\n"), generator)


def _check_random_edits(before: str, generator: random.Random) -> None:
    trial = _Trial(before, generator)
    after = apply_edits(before, trial.edits, exported=trial.imported)
    made = _WithoutMarks().visit(ast.parse(after.removeprefix("\ufeff")))
    assert ast.dump(made) == ast.dump(trial.expected())
    remaining = iter(_lines(after))
    for number, line in enumerate(_lines(before), 1):
        if number not in trial.touched and line.strip():
            assert line in remaining, f"line {number} is not as it was: {line!r}"
    if "\r" in before:
        assert after.count("\n") == after.count("\r\n")


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


class _Trial:
    """Random edits of ``text`` that do not get into each other's way, and the tree that they should make of it."""

    def __init__(self, text: str, generator: random.Random) -> None:
        self.lines = split_lines(text)
        self.tree = ast.parse(text.removeprefix("\ufeff"))
        self.generator = generator
        self.edits: list[Edit] = []
        self.touched: set[int] = set()
        aliases = [node for node in ast.walk(self.tree) if isinstance(node, ast.alias)]
        self.imported = {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
        self.dropped: list[tuple[ast.Call, ast.expr | ast.keyword]] = []
        self.removed: list[ast.stmt] = []
        self.moved: list[tuple[ast.stmt, ast.stmt]] = []
        self.taken: set[ast.AST] = set()
        self.suites = list(self._suites())
        for _ in range(2):
            self._remove()
            self._move()
            self._insert()
        self._wrap_blocks(3)
        nodes = [node for node in ast.walk(self.tree) if node not in self.taken]
        self._decorate([node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))])
        self._drop([node for node in nodes if isinstance(node, ast.Call) and self._has_position(node)])
        self._wrap_expressions([node for node in nodes if isinstance(node, ast.expr) and self._has_position(node)])

    def expected(self) -> ast.Module:
        """The tree with all edits made, but for what they add."""
        for call, argument in self.dropped:
            call.args = [other for other in call.args if other is not argument]
            call.keywords = [other for other in call.keywords if other is not argument]
        for statement in self.removed:
            self._suite_of(statement).remove(statement)
        for statement, anchor in self.moved:
            self._suite_of(statement).remove(statement)
            suite = self._suite_of(anchor)
            suite.insert(suite.index(anchor) + 1, statement)
        for suite in self.suites:
            if not suite and suite is not self.tree.body:
                suite.append(ast.Pass())
        return self.tree

    def _suites(self) -> Iterable[list[ast.stmt]]:
        # In f-strings, ast of older Pythons has wrong positions; patterns and plain tuples in subscripts are no places.
        self.unplaced: set[ast.AST] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.JoinedStr, ast.pattern)):
                self.unplaced.update(ast.walk(node))
            elif isinstance(node, ast.Subscript):
                self.unplaced.add(node.slice)
            for field in ("body", "orelse", "finalbody"):
                suite = getattr(node, field, None)
                if suite and isinstance(suite, list):
                    span = span_of(suite[0], self.lines)
                    if not self.lines[span.line - 1].startswith("elif", span.column):
                        yield suite

    def _suite_of(self, statement: ast.stmt) -> list[ast.stmt]:
        return next(suite for suite in self.suites if any(other is statement for other in suite))

    def _has_position(self, node: ast.expr) -> bool:
        is_load = isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
        return is_load and node not in self.unplaced and not isinstance(node, (ast.Starred, ast.Slice))

    def _statement(self) -> ast.stmt | None:
        """Some statement that no other edit needs; what is in it is taken too."""
        suite = self.generator.choice(self.suites)
        statement = self.generator.choice(suite)
        if self.taken.intersection(ast.walk(statement)):
            return None
        return statement

    def _touch(self, node: ast.AST, *, with_comments: bool = False) -> None:
        span = span_of(node, self.lines)
        start = min([span.line, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        while with_comments and self.lines[start - 2].strip().startswith("#"):
            start -= 1
        self.touched.update(range(start, span.end_line + 1))

    def _is_last(self, statement: ast.stmt) -> bool:
        """Whether it is the last one of a suite, which might go with it: there are other tests for that."""
        return all(other is statement or other in self.taken for other in self._suite_of(statement))

    def _remove(self) -> None:
        statement = self._statement()
        if statement is not None and not self._is_last(statement):
            self.taken.update(ast.walk(statement))
            self.removed.append(statement)
            self.edits.append(RemoveStatement(span_of(statement, self.lines)))
            self._touch(statement)

    def _move(self) -> None:
        statement, anchor = self._statement(), self._statement()
        if statement is None or anchor is None or anchor in ast.walk(statement) or statement in ast.walk(anchor):
            return
        if self._is_last(statement):
            return
        self.taken.update(ast.walk(statement))
        self.taken.add(anchor)
        self.moved.append((statement, anchor))
        self.edits.append(MoveStatement(span_of(statement, self.lines), span_of(anchor, self.lines), "after"))
        self._touch(statement, with_comments=True)
        self._touch(anchor)

    def _insert(self) -> None:
        anchor = self._statement()
        if anchor is None:
            return
        self.taken.add(anchor)
        has_body = hasattr(anchor, "body")
        where = self.generator.choice(("before", "after", *(("first-in", "last-in") if has_body else ())))
        block = f"# comment\n{_MARK}\n\nwith {_MARK}:\n    {_MARK}(\n        {_MARK}\n    )"
        code = self.generator.choice((_MARK, block))
        self.edits.append(InsertStatements(span_of(anchor, self.lines), where, code))  # type: ignore[arg-type]
        self._touch(anchor)

    def _wrap_blocks(self, count: int) -> None:
        for suite in self.generator.sample(self.suites, min(count, len(self.suites))):
            free = [index for index, statement in enumerate(suite) if statement not in self.taken]
            if not free:
                continue
            first, last = sorted(self.generator.choices(free, k=2))
            spans = [span_of(suite[index], self.lines) for index in (first, last)]
            self.edits.append(WrapBlock(*spans, f"with {_MARK}:"))
            start = min([spans[0].line, *(node.lineno for node in getattr(suite[first], "decorator_list", ()))])
            self.touched.update(range(start, spans[1].end_line + 1))

    def _decorate(self, functions: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> None:
        for function in self.generator.sample(functions, min(5, len(functions))):
            self.edits.append(AddDecorator(span_of(function, self.lines), _MARK))

    def _drop(self, calls: list[ast.Call]) -> None:
        for call in self.generator.sample(calls, min(10, len(calls))):
            if call.args or call.keywords:
                argument = self.generator.choice([*call.args, *(item for item in call.keywords if item.arg)] or [None])
                if argument is None:
                    continue
                name = argument.arg if isinstance(argument, ast.keyword) else call.args.index(argument)
                self.dropped.append((call, argument))
                self.edits.append(DropArgument(span_of(call, self.lines), name))  # type: ignore[arg-type]
                self._touch(call)

    def _wrap_expressions(self, expressions: list[ast.expr]) -> None:
        for expression in self.generator.sample(expressions, min(25, len(expressions))):
            around = ((f"{_MARK}(", ")"), ("", f".{_MARK}"), (f"{_MARK}[0](", f").{_MARK}"))
            prefix, suffix = self.generator.choice(around)
            self.edits.append(WrapExpression(span_of(expression, self.lines), prefix, suffix))
            self._touch(expression)


class _WithoutMarks(ast.NodeTransformer):
    """Takes away what the edits add."""

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.body if _is_mark(node.items[0].context_expr) else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if ast.unparse(node).startswith((f"{_MARK}(\n", f"{_MARK}({_MARK})")):
            return None
        self.generic_visit(node)
        return None if _is_mark(node.value) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _is_mark(node.func) or (isinstance(node.func, ast.Subscript) and _is_mark(node.func.value)):
            return node.args[0]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return node.value if node.attr == _MARK else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [decorator for decorator in node.decorator_list if not _is_mark(decorator)]
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = [decorator for decorator in node.decorator_list if not _is_mark(decorator)]
        return self.generic_visit(node)


def _is_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == _MARK
