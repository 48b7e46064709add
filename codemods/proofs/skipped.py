"""Paths from a backward to a step: whether gradients are kept on one only because micro-batches are counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.proofs.blocks import meeting
from codemods.proofs.syntax import FUNCTIONS, LOOPS
from codemods.source.walking import walk

_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Assert, ast.Yield, ast.YieldFrom, ast.Await)


def skips_by_count(filled: Place, taken: Place, loop: ast.AST) -> bool:
    """Whether every turn of ``loop`` that fills gradients comes by the place that takes them, but for such as a count
    of its turns leaves out: those of micro-batches."""
    met = meeting(filled, taken)
    if met is None or met[0].statement is None:
        return False
    for place in taken.chain():
        here = place.frame is met[0].frame
        if not _comes(place, met[0].statement if here else None, loop):
            return False
        if here:
            return True
    return False


def _comes(place: Place, first: ast.stmt | None, loop: ast.AST) -> bool:
    """The same from ``first``, or from the begin of the function, to a place of one frame."""
    file = place.frame.file
    counted = loop if any(around is loop for around, _ in place.loops) else None
    if place.statement is None or any(isinstance(outer, ast.Try) for outer in _within_turn(file, place.statement)):
        return False
    line = first.lineno if first is not None else 0
    inner: ast.AST = place.statement
    while (outer := file.parent(inner)) is not None:
        suite = _suite(outer, inner)
        if suite is None:
            return False
        passed = suite[: suite.index(inner)]
        if any(not _ends_by_count(file, one, line, counted) for one in passed):
            return False
        whole = first is None and isinstance(outer, FUNCTIONS)
        if whole or any(node is first for one in suite for node in walk(one)):
            return True
        if isinstance(outer, ast.If):
            if not _by_count(file, outer.test, counted, holds=suite is outer.body):
                return False
        elif not isinstance(outer, (ast.With, ast.AsyncWith)):
            return False
        inner = outer
    return False


def _within_turn(file: ParsedFile, statement: ast.stmt) -> Iterator[ast.AST]:
    """What is around a statement within one turn of the innermost loop."""
    for outer in file.outward(statement, *FUNCTIONS):
        if isinstance(outer, LOOPS):
            return
        yield outer


def _suite(outer: ast.AST, inner: ast.AST) -> list[ast.AST] | None:
    suites = (getattr(outer, name, None) for name in ("body", "orelse", "finalbody"))
    return next((suite for suite in suites if isinstance(suite, list) and inner in suite), None)


def _ends_by_count(file: ParsedFile, statement: ast.AST, line: int, loop: ast.AST | None) -> bool:
    """Whether what leaves a turn in a statement, behind a ``line``, is a ``continue`` that a count decides about."""
    for node in walk(statement):
        if not isinstance(node, _LEAVING) or node.lineno <= line:
            continue
        if not isinstance(node, ast.Continue) or not isinstance(statement, ast.If) or statement.orelse:
            return False
        if node not in statement.body or not _by_count(file, statement.test, loop, holds=False):
            return False
    return True


def _by_count(file: ParsedFile, test: ast.expr, loop: ast.AST | None, *, holds: bool) -> bool:
    """Whether nothing but a count of the turns of ``loop`` keeps a condition from being what ``holds`` says: it is so
    in every nth turn at least."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _by_count(file, test.operand, loop, holds=not holds)
    if isinstance(test, ast.BoolOp):
        each = [_by_count(file, part, loop, holds=holds) for part in test.values]
        return any(each) if isinstance(test.op, ast.Or) is holds else all(each)
    value = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else test
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mod):
        return False
    asked = [node for node in walk(value.left) if isinstance(node, (ast.Name, ast.Attribute))]
    calls = any(isinstance(node, (ast.Call, ast.Subscript)) for node in walk(test))
    return loop is not None and not calls and len(asked) == 1 and _counts(file, asked[0], loop)


def _counts(file: ParsedFile, name: ast.expr, loop: ast.AST) -> bool:
    """Whether a name or an attribute counts the turns of a loop: by ``enumerate``, ``range`` or ``+= 1``."""
    text, counted = ast.unparse(name), False
    scope = file.enclosing(loop, *FUNCTIONS) or file.tree
    for node in walk(scope):
        if not isinstance(getattr(node, "ctx", None), ast.Store) or ast.unparse(node) != text:
            continue
        made = file.parent(node)
        if isinstance(made, ast.AugAssign):
            if not isinstance(made.op, ast.Add) or not _whole(made.value):
                return False
            if any(each is made for each in getattr(loop, "body", ())):
                counted = True
            elif any(each is made for each in walk(loop)):
                # it counts what comes in some turns only
                return False
        elif isinstance(made, ast.Assign):
            if not _whole(made.value):
                return False
        elif made is loop or (made is not None and file.parent(made) is loop):
            counted = counted or _numbers(loop, node)
        else:
            return False
    return counted


def _whole(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int


def _numbers(loop: ast.AST, target: ast.AST) -> bool:
    """Whether a target of a loop is a number that grows by one in each turn."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    name = "range"
    if isinstance(loop.target, ast.Tuple):
        if loop.target.elts[0] is not target:
            return False
        name = "enumerate"
    elif loop.target is not target:
        return False
    given: ast.AST | None = loop.iter
    while isinstance(given, ast.Call):
        if isinstance(given.func, ast.Name) and given.func.id == name:
            return True
        # a bar of progress gives what it gets
        given = given.args[0] if given.args else None
    return False
