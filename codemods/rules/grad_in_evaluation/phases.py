"""Forwards that train in some turns only, as a condition says: ``if phase == "train": loss.backward()``."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

from codemods.graph.model.nodes import Node, all_descendants
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Forward, Trace
from codemods.graph.model.walks import walks
from codemods.proofs.blocks import suite_of
from codemods.proofs.syntax import DEFINITIONS, LOOPS, suspends
from codemods.proofs.unseen import Way, leaves_sight
from codemods.rules._sites import written
from codemods.rules.grad_in_evaluation.recordings import united
from codemods.source.walking import last_name, walk
from codemods.terms.spans import Span


class Phase(NamedTuple):
    """The first and the last statement that record what is walked where a test holds, and that as a truth value."""

    path: str
    first: Span
    last: Span
    test: str
    condition: str


class Phases:
    """The phases of one run."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[ast.stmt, Phase | None] = {}

    def of(self, forward: Forward) -> Phase | None:
        """The statements that run a forward, up to the ``if`` that holds every backward through what they make in any
        turn; None where there is no such ``if``, or what they make is needed otherwise."""
        if forward.grad is not True:
            return None
        for place in forward.place.chain():
            statement = place.statement
            if statement is None:
                continue
            if statement not in self._known:
                self._known[statement] = self._at(place.frame.file, statement)
            found = self._known[statement]
            if found is not None:
                return found
        return None

    def _at(self, file: ParsedFile, statement: ast.stmt) -> Phase | None:
        guarded = _guarded(file, statement)
        if guarded is None:
            return None
        first, last, guard = guarded
        stretches = ((forward.first, forward.last) for forward in self._forwards[statement])
        made = {n for begin, end in united(stretches) for n in self._made[self._index(begin) : self._index(end)]}
        if _needed_elsewhere(self._trace, made, guard):
            return None
        return Phase(file.path, file.span(first), file.span(last), *_told(file, guard))

    @cached_property
    def _forwards(self) -> dict[ast.stmt | None, list[Forward]]:
        """The forwards that run in each statement."""
        found: dict[ast.stmt | None, list[Forward]] = defaultdict(list)
        for forward in self._trace.forwards:
            for statement in {place.statement for place in forward.place.chain()}:
                found[statement].append(forward)
        return found

    @cached_property
    def _made(self) -> list[Node]:
        return sorted((n for n in self._trace.nodes if n.certain), key=lambda n: n.birth)

    @cached_property
    def _births(self) -> list[int]:
        return [n.birth for n in self._made]

    def _index(self, moment: int) -> int:
        return bisect_left(self._births, moment)


def _needed_elsewhere(trace: Trace, made: set[Node], guard: ast.If) -> bool:
    """Whether something else than the backwards in ``guard`` comes to what was made."""
    within = {id(node) for node in walk(guard)}
    for one in trace.walks:
        if not made.isdisjoint(one.seen) and not any(id(place.node) in within for place in one.place.chain()):
            return True
    return leaves_sight(all_descendants(made), (Way.ESCAPED, Way.STORED))


def _guarded(file: ParsedFile, statement: ast.stmt) -> tuple[ast.stmt, ast.stmt, ast.If] | None:
    """The statement that holds ``statement`` beside an ``if`` that alone back-propagates, the last one before that
    ``if``, and it."""
    here: ast.AST | None = statement
    while isinstance(here, ast.stmt) and not isinstance(here, (*DEFINITIONS, ast.ClassDef)):
        siblings = suite_of(file, here)
        at = siblings.index(here)
        behind = next((n for n, s in enumerate(siblings[at + 1 :], at + 1) if file.once(walks, s)), None)
        if behind is not None:
            guard, stretch = siblings[behind], siblings[at:behind]
            if not isinstance(guard, ast.If) or _binds(stretch, guard.test) or any(map(suspends, stretch)):
                return None
            return (here, stretch[-1], guard) if _is_plain(file, guard) else None
        if isinstance(here, LOOPS) or file.once(walks, here):
            return None
        here = file.parent(here)
    return None


def _is_plain(file: ParsedFile, guard: ast.If) -> bool:
    """Whether one branch of an ``if`` back-propagates and its test reads settings and does nothing else."""
    bodies = [any(file.once(walks, s) for s in suite) for suite in (guard.body, guard.orelse)]
    # a template would take a brace for its own
    return (
        bodies[0] is not bodies[1]
        and all(isinstance(n, _PLAIN) for n in walk(guard.test))
        and "{" not in (ast.unparse(guard.test))
    )


def _binds(statements: list[ast.stmt], test: ast.expr) -> bool:
    """Whether statements bind a name or an attribute that a test reads."""
    read = {last_name(n) for n in walk(test)}
    bound = (n for s in statements for n in walk(s) if not isinstance(getattr(n, "ctx", ast.Load()), ast.Load))
    return any(last_name(n) in read - {""} for n in bound)


def _told(file: ParsedFile, guard: ast.If) -> tuple[str, str]:
    """What holds where an ``if`` back-propagates, as one says it and as True or False."""
    test = guard.test
    if not any(file.once(walks, s) for s in guard.body):
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            return (f"not ({written(file, test)})",) * 2
        test = test.operand
    text = written(file, test)
    return text, text if _is_truth(test) else f"bool({text})"


_PLAIN = (
    ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp,
    ast.expr_context, ast.cmpop, ast.boolop, ast.unaryop,
)  # fmt: skip


def _is_truth(test: ast.expr) -> bool:
    """Whether it is True or False, and nothing that only counts as such."""
    if isinstance(test, ast.BoolOp):
        return all(map(_is_truth, test.values))
    if isinstance(test, ast.Compare):
        return any(isinstance(side, ast.Constant) for side in (test.left, *test.comparators))
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
