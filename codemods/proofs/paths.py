"""Whether every path comes by a place: on the way to another, or from another on.

Both questions go outward from the place, suite by suite, and through the calls that lead to it, to the suite in which
the other stands as well. What stands around both decides about both.

* ``if`` and ``match`` may leave a place out. From another on, what a count of the turns of ``counted`` leaves out is
  not missed: it comes in every few turns, and is never left out for good.
* A loop may take no turn; with ``turning`` it takes one.
* ``return`` in a function that was called leaves out what is behind it. ``break``, ``continue`` and what else leaves a
  turn matters only from another on: on the way to another, they leave that as well. Loops that are passed whole keep
  theirs to themselves.
* Errors leave what is on the way to another with it, unless a ``try`` or a ``with suppress(...)`` is left. From another
  on, whatever raises and any of these leaves a place out; with ``until``, what is caught on the way there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.blocks import meeting
from codemods.proofs.marks import clears, tells_backwards_apart
from codemods.proofs.syntax import FUNCTIONS, LOOPS, ends_errors, own_nodes, scope
from codemods.source.walking import walk

_ENDING_TURNS = (ast.Break, ast.Continue)
_ENDING_CALLS = (ast.Return, ast.Yield, ast.YieldFrom)
_RAISING = (ast.Raise, ast.Assert, ast.Await)


class _Suite(NamedTuple):
    """Statements of which ``passed`` come before the one on the way; ``field`` of ``outer`` holds them."""

    outer: ast.AST
    field: str
    statements: list[ast.stmt]
    passed: list[ast.stmt]

    @property
    def decides(self) -> bool:
        """Whether what is around them may leave them out."""
        passed = (ast.With, ast.AsyncWith, ast.Module, *FUNCTIONS)
        return ends_errors(self.outer) or not isinstance(self.outer, passed)


def comes_before(place: Place, other: Place) -> bool:
    """Whether no path leads to ``other`` in its turn without coming by ``place``, which ran before it."""
    met = meeting(place, other)
    if met is None or met[0].statement is None or met[1].statement is None:
        return False
    both = {(suite.outer, suite.field) for suite in _outward(met[1])}
    for level in place.chain():
        here = level.frame is met[0].frame
        for suite in _outward(level):
            if here and (suite.outer, suite.field) in both:
                return True
            if suite.decides or (not here and any(isinstance(n, ast.Return) for n in own_nodes(suite.passed))):
                return False
        if here:
            return True
    return False


def comes_after(
    begin: Place, place: Place, *, counted: ast.AST | None = None, turning: bool = False, until: Place | None = None
) -> bool:
    """Whether every path from ``begin`` comes by ``place`` in its turn, or at least before ``until``.

    ``counted`` is a loop: what a count of its turns leaves out is not missed. ``turning``: loops take a turn at least.
    """
    met = meeting(begin, place)
    if met is None or met[0].statement is None:
        return False
    for level in place.chain():
        here = level.frame is met[0].frame
        first = met[0].statement if here else None
        if not _comes(level, first, counted, turning, until) or (until is not None and _caught(level, until)):
            return False
        if here:
            return True
    return False


def _comes(place: Place, first: ast.stmt | None, loop: ast.AST | None, turning: bool, until: Place | None) -> bool:
    """The same from ``first``, or from the begin of the function, to a place of one frame."""
    file = place.frame.file
    counted = loop if any(around is loop for around, _ in place.loops) else None
    if place.statement is None or any(map(ends_errors, file.outward(place.statement, *_TURNS))):
        return False
    begin = first.lineno if first is not None else 0
    around = {*file.outward(place.statement, *FUNCTIONS)}
    leaving = _leaving(place, until)
    for suite in _outward(place):
        for statement in suite.passed:
            left = [n for n in own_nodes([statement]) if isinstance(n, leaving) and getattr(n, "lineno", 0) > begin]
            if any(_leaves(file, n, around) and not _counts(file, n, statement, counted) for n in left):
                return False
        if (first is None and isinstance(suite.outer, FUNCTIONS)) or any(
            n is first for n in own_nodes(suite.statements)
        ):
            return True
        if isinstance(suite.outer, ast.If):
            if not _by_count(file, suite.outer.test, counted, holds=suite.field == "body"):
                return False
        elif suite.decides and not (turning and isinstance(suite.outer, LOOPS) and suite.field == "body"):
            return False
    return False


_TURNS = (*FUNCTIONS, *LOOPS)


def _leaving(place: Place, until: Place | None) -> tuple[type[ast.AST], ...]:
    """What may leave out the rest of a turn, and not ``until`` with it."""
    if until is None:
        return (*_ENDING_TURNS, *_ENDING_CALLS, *_RAISING)
    if any(level.frame is place.frame for level in until.chain()):
        return _ENDING_TURNS
    return (*_ENDING_TURNS, *_ENDING_CALLS)


def _leaves(file: ParsedFile, node: ast.AST, around: set[ast.AST]) -> bool:
    """Whether a ``break`` or ``continue`` is of a loop ``around`` the place; all else leaves it anyway."""
    return not isinstance(node, _ENDING_TURNS) or file.enclosing(node, *LOOPS) in around


def _counts(file: ParsedFile, node: ast.AST, statement: ast.stmt, loop: ast.AST | None) -> bool:
    """Whether a ``continue`` is all that a statement decides, by a count."""
    return (
        isinstance(node, ast.Continue)
        and isinstance(statement, ast.If)
        and not statement.orelse
        and node in statement.body
        and _by_count(file, statement.test, loop, holds=False)
    )


def half_done(trace: Trace, place: Place) -> bool:
    """Whether an error there may be answered by code that finds what the backwards before it have left: a turn of a
    loop around, or what uses gradients or parameters later, in a ``finally`` or in the handler itself."""
    caught = False
    for at in place.chain():
        inner: ast.AST = at.node
        for outer in at.frame.file.outward(inner, *FUNCTIONS):
            if isinstance(outer, ast.Try) and inner in outer.body:
                goes_on = any(not isinstance(handler.body[-1], ast.Raise) for handler in outer.handlers)
                answers = [*outer.handlers, *outer.finalbody]
                if _uses_gradients(trace, place, outer.body, [] if goes_on else answers):
                    return True
                caught |= goes_on
            elif not isinstance(outer, ast.Try) and ends_errors(outer):
                if _uses_gradients(trace, place, [outer], []):
                    return True
                caught = True
            if isinstance(outer, LOOPS) and caught:
                return True
            inner = outer
    return False


def _uses_gradients(trace: Trace, place: Place, tried: Iterable[ast.AST], answers: Iterable[ast.AST]) -> bool:
    """Whether gradients or parameters are used behind a place, but not in what is ``tried``; only in the ``answers`` to
    its error, if any are given."""
    later = [mark.place for mark in trace.marks if tells_backwards_apart(mark) and not clears(mark)]
    later += [step.place for step in trace.steps] + [walk.place for walk in trace.walks]
    left_out = {id(node) for statement in tried for node in walk(statement)}
    only = {id(node) for statement in answers for node in walk(statement)}
    for other in later:
        around = {id(at.node) for at in other.chain()}
        if other.clock > place.clock and around.isdisjoint(left_out) and (not only or around & only):
            return True
    return False


def _caught(place: Place, until: Place) -> bool:
    """Whether an error at a place may be caught on the way to ``until``."""
    file, met = place.frame.file, meeting(place, until)
    held = {id(suite.outer) for suite in _outward(met[1]) if suite.field == "body"} if met is not None else set()
    here = met is not None and met[0].frame is place.frame
    around = file.outward(place.statement, *FUNCTIONS) if place.statement is not None else ()
    return any(ends_errors(outer) and not (here and id(outer) in held) for outer in around)


def _outward(place: Place) -> Iterator[_Suite]:
    """The suites around a place, the innermost first, to that of its function or file."""
    file, inner = place.frame.file, place.statement
    node: ast.AST | None = inner
    while node is not None and (outer := file.parent(node)) is not None:
        for field in ("body", "orelse", "handlers", "cases", "finalbody"):
            suite = getattr(outer, field, None)
            if isinstance(suite, list) and node in suite:
                yield _Suite(outer, field, suite, suite[: suite.index(node)])
        if isinstance(outer, FUNCTIONS):
            return
        node = outer


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
    return loop is not None and not calls and len(asked) == 1 and _counts_turns(file, asked[0], loop)


def _counts_turns(file: ParsedFile, name: ast.expr, loop: ast.AST) -> bool:
    """Whether a name or an attribute counts the turns of a loop: by ``enumerate``, ``range`` or ``+= 1``."""
    text, counted = ast.unparse(name), False
    for node in walk(scope(file, loop)):
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
    paired = isinstance(loop.target, ast.Tuple) and loop.target.elts[0] is target
    given: ast.AST | None = loop.iter if paired or loop.target is target else None
    while isinstance(given, ast.Call):
        if isinstance(given.func, ast.Name) and given.func.id == ("enumerate" if paired else "range"):
            return True
        # a bar of progress gives what it gets
        given = given.args[0] if given.args else None
    return False
