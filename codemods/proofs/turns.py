"""Turns of loops: which loop has turned between two places, and what happens in every turn or only in some."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.proofs.syntax import FUNCTIONS, LOOPS
from codemods.source.walking import called, walk

_TURNING = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FILLING = frozenset(("append", "add", "setdefault", "update"))
_EMPTYING = frozenset(("pop", "popleft", "popitem", "remove", "clear"))
_CHANGING = _EMPTYING | {"append", "appendleft", "extend", "insert", "add", "update"}
_STEADY = frozenset(("isinstance", "hasattr", "callable", "is_available", "issubclass", "is_initialized"))


def loops_around(place: Place) -> list[tuple[ast.AST, int]]:
    """The real loops around a place, with their turns: not those in which a function runs that nobody calls."""
    return [(loop, turn) for loop, turn in place.turns() if isinstance(loop, LOOPS)]


def in_some_turns(place: Place, loop: ast.AST, *, late: bool = False) -> bool:
    """Whether a condition that may change from turn to turn stands between a loop and a place in it.

    What stands there may run only once, so that nothing is proven about two turns. With ``late`` a condition that holds
    from any turn on, such as ``i >= 3``, counts as one that does not change.
    """
    for at in place.chain():
        around = _Conditions(at.frame.file, at.node, loop)
        scope = around.scope
        if scope is None:
            continue
        tests = around.open(holds=True, late=late)
        for ending in _endings(at, scope, loop):
            tests += ending.open(holds=False, late=late)
        if any(_changes(test, scope) for test in tests):
            return True
        if scope is loop:
            return False
    return False


def only_once(place: Place, loop: ast.AST) -> bool:
    """Whether a place in a loop is never reached again after the first turns: it stands under ``if not cache`` or ``if
    key not in cache`` of something that is filled for good, or behind a return under the opposite."""
    for at in place.chain():
        around = _Conditions(at.frame.file, at.node, loop)
        if around.scope is None or around.lasting(holds=False):
            return around.scope is not None
        if any(e.lasting(holds=True) and not e.open(holds=True) for e in _endings(at, around.scope, loop)):
            return True
        if around.scope is loop:
            return False
    return False


def limited(place: Place, container: str) -> bool:
    """Whether a condition in the function of a place lets it be reached a few times only: one that asks for what is in
    the ``container``, compares something that is counted, or reads a flag that is set elsewhere."""
    file = place.frame.file
    around = _Conditions(file, place.node, file.tree)
    if around.scope is None:
        return False
    conditions = [around, *_endings(place, around.scope, file.tree)]
    tests = [test for each in conditions for test, _ in each.tests]
    tests += [o for o in file.outward(place.node, *FUNCTIONS) if isinstance(o, ast.BoolOp)]
    return any(_limits(file, atom, container) for test in tests for atom in atoms(test))


def _limits(file: ParsedFile, test: ast.expr, container: str) -> bool:
    asked = {ast.unparse(n) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))}
    if container in asked:
        return True
    if isinstance(test, ast.Compare):
        # every nth time is no limit
        every = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(test))
        return not every and bool(asked & file.once(_counted, file.tree))
    flag = named(test)
    return bool(flag) and any(
        named(n) == flag and isinstance(getattr(n, "ctx", None), ast.Store) for n in walk(file.tree)
    )


def atoms(test: ast.expr) -> Iterator[ast.expr]:
    """The conditions that ``and``, ``or`` and ``not`` make a condition of."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from atoms(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from atoms(test.operand)
    else:
        yield test


def _endings(place: Place, scope: ast.AST, loop: ast.AST) -> Iterator[_Conditions]:
    """The conditions under which a turn ends before a place: at a ``continue`` of its loop, a ``return`` elsewhere."""
    file = place.frame.file
    ends = ast.Continue if scope is loop else ast.Return
    for node in walk(scope):
        if isinstance(node, ends) and node.lineno < place.line:
            around = _Conditions(file, node, loop)
            if around.scope is scope and (scope is not loop or file.enclosing(node, *LOOPS) is loop):
                yield around


class _Conditions:
    """The conditions between a node and the loop, or the function, that it stands in."""

    def __init__(self, file: ParsedFile, node: ast.AST, loop: ast.AST) -> None:
        inner, outer = node, file.parent(node)
        self.file = file
        self.tests: list[tuple[ast.expr, bool | None]] = []
        """Each with what it is there, None where that cannot be said."""
        while outer is not None and outer is not loop and not isinstance(outer, (*FUNCTIONS, ast.Module)):
            if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and inner is not outer.test:
                body = outer.body if isinstance(outer.body, list) else [outer.body]
                self.tests.append((outer.test, any(inner is part for part in body)))
            elif isinstance(outer, ast.Match) and inner is not outer.subject:
                self.tests.append((outer.subject, None))
            inner, outer = outer, file.parent(outer)
        self.scope = outer

    def open(self, *, holds: bool, late: bool = False) -> list[ast.expr]:
        """Those that are not known, from the second turn on, or with ``late`` from any on, to let the node be reached,
        or not to where ``holds`` is False."""
        return [test for test, there in self.tests if not self._lasts(test, there, holds, late)]

    def lasting(self, *, holds: bool) -> bool:
        """Whether one of them is known to let the node be reached from the second turn on, or not to."""
        return any(self._lasts(test, there, holds) for test, there in self.tests)

    def _lasts(self, test: ast.expr, there: bool | None, holds: bool, late: bool = False) -> bool:
        return there is not None and _lasts(self.file, self.scope, test, holds=there is holds, late=late)


def _filled(tree: ast.AST) -> set[str]:
    """What a file puts something into under a key or by a method, as text."""
    return {ast.unparse(held) for held in _written(tree, ast.Store, _FILLING)}


def _emptied(tree: ast.AST) -> set[str]:
    """What a file takes something out of, as text."""
    return {ast.unparse(held) for held in _written(tree, ast.Del, _EMPTYING)}


def _written(tree: ast.AST, by: type[ast.expr_context], methods: frozenset[str]) -> Iterator[ast.expr]:
    for node in walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, by):
            yield node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            yield node.func.value


def _counted(tree: ast.AST) -> set[str]:
    """What a file counts up, as text: the targets of its loops and of ``+=``."""
    targets = [n.target for n in walk(tree) if isinstance(n, (ast.For, ast.AsyncFor, ast.AugAssign))]
    return {ast.unparse(part) for t in targets for part in walk(t) if isinstance(part, (ast.Name, ast.Attribute))}


def _lasts(file: ParsedFile, scope: ast.AST | None, test: ast.expr, *, holds: bool, late: bool) -> bool:
    """Whether a condition stays as it is from the first or second turn on: ``x is not None``, ``i > 0`` of what is
    counted, or ``key in kept``, ``kept`` and ``len(kept) > 0`` of something that is filled for good; with ``late`` also
    from a later one on."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _lasts(file, scope, test.operand, holds=not holds, late=late)
    if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)) or _measured(test) is not None:
        return holds and _filled_for_good(file, scope, _measured(test) or test)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sign, bound = type(test.ops[0]), getattr(test.comparators[0], "value", ...)
    if sign in (ast.In, ast.NotIn):
        return sign is (ast.In if holds else ast.NotIn) and _filled_for_good(file, scope, test.comparators[0])
    if not isinstance(test.comparators[0], ast.Constant):
        return False
    if bound is None:
        return sign is (ast.IsNot if holds else ast.Is)
    kinds = {0: (ast.Gt, ast.NotEq), 1: (ast.GtE,)} if holds else {0: (ast.LtE, ast.Eq), 1: (ast.Lt,)}
    beyond = sign in ((ast.Gt, ast.GtE) if holds else (ast.Lt, ast.LtE)) and late
    if type(bound) is not int or not (beyond or sign in kinds.get(bound, ())):
        return False
    measured = _measured(test.left)
    if measured is not None:
        return _filled_for_good(file, scope, measured)
    return ast.unparse(test.left) in file.once(_counted, file.tree)


def _measured(node: ast.expr) -> ast.expr | None:
    """What ``len`` is asked of."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[measured]):
            return measured
    return None


def _filled_for_good(file: ParsedFile, scope: ast.AST | None, kept: ast.expr) -> bool:
    """Whether a file fills a container, and neither empties it nor, where it is asked, puts another in its place."""
    if ast.unparse(kept) not in file.once(_filled, file.tree) or scope is None:
        return False
    # an element is gone with what holds it
    held = kept.value if isinstance(kept, ast.Subscript) else kept
    texts = {ast.unparse(kept), ast.unparse(held)}
    return texts.isdisjoint(file.once(_emptied, file.tree)) and not any(
        isinstance(getattr(n, "ctx", None), ast.Store) and ast.unparse(n) in texts for n in walk(scope)
    )


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
    if old.frame is new.frame and old.loops == new.loops:
        # nearly all that a graph leads to was made in the same turn
        return None
    for (loop, turn), (other, later) in zip(old.turns(), new.turns(), strict=False):
        if loop is not other:
            return None
        if turn != later:
            return loop if turn < later and isinstance(loop, _TURNING) else None
    return None


def in_one_turn(one: Place, other: Place) -> bool:
    """Whether two places lie in the same turn of all loops around both."""
    turns = zip(one.turns(), other.turns(), strict=False)
    return all(turn == later for (loop, turn), (around, later) in turns if loop is around)


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
