"""Turns of loops: which loop has turned between two places, and what happens in every turn or only in some."""

from __future__ import annotations

import ast

from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.proofs.syntax import FUNCTIONS, LOOPS, called
from codemods.source.walking import walk

_TURNING = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CHANGING = frozenset(
    ("append", "appendleft", "extend", "insert", "add", "update", "pop", "popleft", "popitem", "remove", "clear")
)
_FILLING = frozenset(("append", "add", "setdefault", "update"))
_STEADY = frozenset(("isinstance", "hasattr", "callable", "is_available", "issubclass", "is_initialized"))


def loops_around(place: Place) -> list[tuple[ast.AST, int]]:
    """The real loops around a place, with their turns: not those in which a function runs that nobody calls."""
    return [(loop, turn) for loop, turn in place.turns() if isinstance(loop, LOOPS)]


def in_some_turns(place: Place, loop: ast.AST) -> bool:
    """Whether a condition that may change from turn to turn stands between a loop and a place in it.

    What stands there may run only once, so that nothing is proven about two turns.
    """
    for at in place.chain():
        file = at.frame.file
        scope, tests = _conditions(file, at.node, loop, holds=True)
        if scope is None:
            continue
        ends = ast.Continue if scope is loop else ast.Return
        for node in walk(scope):
            if (
                isinstance(node, ends)
                and node.lineno < at.line
                and _conditions(file, node, loop, holds=True)[0] is scope
            ):
                inside = scope is not loop or file.enclosing(node, *LOOPS) is loop
                tests += _conditions(file, node, loop, holds=False)[1] if inside else []
        if any(_changes(test, scope) for test in tests):
            return True
        if scope is loop:
            return False
    return False


def _conditions(
    file: ParsedFile, node: ast.AST, loop: ast.AST, *, holds: bool
) -> tuple[ast.AST | None, list[ast.expr]]:
    """The loop, or the function, around a node, and the conditions between under which it is reached; without those
    that, from the second turn on, always hold, or never do where ``holds`` is False."""
    inner, outer = node, file.parent(node)
    tests: list[ast.expr] = []
    while outer is not None and outer is not loop and not isinstance(outer, (*FUNCTIONS, ast.Module)):
        if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            if not _lasts(file, outer.test, holds=any(inner is part for part in body) is holds):
                tests.append(outer.test)
        elif isinstance(outer, ast.Match) and inner is not outer.subject:
            tests.append(outer.subject)
        inner, outer = outer, file.parent(outer)
    return outer, tests


def _filled(tree: ast.AST) -> set[str]:
    """What a file puts something into under a key or by ``add`` and ``append``, as text."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found.add(ast.unparse(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLING:
            found.add(ast.unparse(node.func.value))
    return found


def _lasts(file: ParsedFile, test: ast.expr, *, holds: bool) -> bool:
    """Whether a condition stays as it is from the first or second turn on: ``x is not None``, ``i > 0``, or ``key in
    kept`` of something that the file fills."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sign, bound = type(test.ops[0]), getattr(test.comparators[0], "value", ...)
    if sign in (ast.In, ast.NotIn):
        kept = ast.unparse(test.comparators[0]) in file.once(_filled, file.tree)
        return kept and sign is (ast.In if holds else ast.NotIn)
    if not isinstance(test.comparators[0], ast.Constant):
        return False
    if bound is None:
        return sign is (ast.IsNot if holds else ast.Is)
    kinds = {0: (ast.Gt, ast.NotEq), 1: (ast.GtE,)} if holds else {0: (ast.LtE, ast.Eq), 1: (ast.Lt,)}
    return type(bound) is int and sign in kinds.get(bound, ())


def _changes(test: ast.expr, scope: ast.AST) -> bool:
    """Whether a condition may have another value the next time."""
    if any(isinstance(node, ast.Call) and called(node) not in _STEADY for node in walk(test)):
        return True
    asked = {ast.unparse(n) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))}
    for node in walk(scope):
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) and ast.unparse(node) in asked:
            return True
        method = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if method is not None and method.attr in _CHANGING and ast.unparse(method.value) in asked:
            return True
    return False


def crossed(old: Place, new: Place) -> ast.AST | None:
    """The loop that has turned between two places of one run, None if none has."""
    for (loop, turn), (other, later) in zip(old.turns(), new.turns(), strict=False):
        if loop is not other:
            return None
        if turn != later:
            return loop if turn < later and isinstance(loop, _TURNING) else None
    return None


def of_a_changing_condition(place: Place) -> bool:
    """Whether two paths meet there, one taken in some turns of the loop and one in the others: the loop writes what
    the condition tests, and no inner loop runs until it holds."""
    branch = place.statement
    loop = place.loops[-1][0] if place.loops else None
    if not isinstance(branch, ast.If) or loop is None:
        return False
    asked = {named(n) for n in walk(branch.test)} - {""}
    written = {
        named(n) for n in walk(loop) if isinstance(getattr(n, "ctx", None), ast.Store) and n not in (loop, branch)
    }
    until = {named(n) for w in walk(loop) if isinstance(w, ast.While) and w is not loop for n in walk(w.test)}
    return bool(asked & written) and not asked & until


def every_turn(place: Place, loop: ast.AST) -> bool:
    """Whether every complete turn of a loop passes a place."""
    for at in place.chain():
        file = at.frame.file
        current: ast.AST | None = at.statement
        while current is not None:
            parent = file.parent(current)
            if parent is loop:
                return True
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)) or parent is None:
                break
            tried = isinstance(parent, ast.Try) and current in (*parent.body, *parent.finalbody)
            if isinstance(parent, ast.stmt) and not tried and not isinstance(parent, (ast.With, ast.AsyncWith)):
                return False
            current = parent
    return False


def named(node: ast.AST) -> str:
    """What a variable or an attribute is called, the latter after a dot; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return f".{node.attr}" if isinstance(node, ast.Attribute) else ""
