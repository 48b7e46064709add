"""Statements are run in order: the simple ones, loops, ``with`` and ``try``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, ClassVar

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.gradients import PARAMETRIZATION_CACHES, WEIGHT_CACHES
from codemods.graph.model.facts.python import EXIT_STACKS, SUPPRESSING
from codemods.graph.model.kinds import Escape, SequenceKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.state import FROZEN, State
from codemods.graph.model.trace import Ran
from codemods.graph.model.values import (
    NONE,
    Class,
    Function,
    GradMode,
    Instance,
    Join,
    Sequence,
    Unknown,
)
from codemods.graph.python.loops import Loops
from codemods.graph.run.core import BudgetEnded
from codemods.source.walking import walk


class Statements(Loops):
    """The part of the engine that runs statements."""

    executors: ClassVar[dict[type[ast.AST], Callable[[Any, Any], None]]] = {}
    """The method for each kind of statement, by its class."""

    def execute(self, statements: list[ast.stmt]) -> None:
        run = self.run
        for statement in statements:
            if run.dead:
                return
            run.spent += 1
            if run.spent > run.budget:
                raise BudgetEnded
            frame = run.frame
            outer_statement = frame.statement
            frame.statement = statement
            first = run.clock + 1
            method = self.executors.get(statement.__class__)
            if method is not None:
                method(self, statement)
            if self.raises_here:
                self.raises_here = False
                run.dead = True
                self.raises.append(run.s)
            if not frame.inside_module:
                run.trace.ran.append(Ran(statement, frame, tuple(frame.loops), first, run.clock + 1))
            frame.statement = outer_statement

    # simple statements

    def _do_Expr(self, s: ast.Expr) -> None:
        self.evaluate(s.value)

    def _do_Return(self, s: ast.Return) -> None:
        value = self.evaluate(s.value) if s.value is not None else NONE
        if self.raises_here:
            return
        if s.value is not None:
            self.growing.note_returned(s.value, value)
        self.returns.append((self.run.s, value))
        self.run.dead = True

    def _do_Raise(self, s: ast.Raise) -> None:
        run = self.run
        raised = self.evaluate(s.exc) if s.exc is not None else run.frame.caught
        if isinstance(raised, Class):
            raised = self.call_value(raised, Arguments(), s)
        cause = self.evaluate(s.cause) if s.cause is not None else run.frame.caught
        if raised is not None:
            if cause is not None and cause is not raised and isinstance(raised, (Instance, Unknown)):
                for name in ("__cause__", "__context__"):
                    self.set_attribute(raised, name, cause, s)
            run.thrown.append(raised)
            run.escape_all([raised], Escape.RAISED)
        self.raises.append(run.s)
        run.dead = True

    def _do_Assert(self, s: ast.Assert) -> None:
        self.run.use(self.evaluate(s.test), UseKind.TRUTH, s)
        if s.msg is not None:
            self.evaluate(s.msg)

    def _do_Global(self, s: ast.Global) -> None:
        self.run.frame.globals.update(s.names)

    def _do_Nonlocal(self, s: ast.Nonlocal) -> None:
        self.run.frame.nonlocals.update(s.names)

    def _do_Break(self, s: ast.Break) -> None:
        self.breaks.append(self.run.s)
        self.run.dead = True

    def _do_Continue(self, s: ast.Continue) -> None:
        self.continues.append(self.run.s)
        self.run.dead = True

    # loops

    # with and try

    def _do_With(self, s: ast.With) -> None:
        run = self.run
        saved = run.s.grad
        exits: list[Callable[[], None]] = []
        leaving = (self.breaks, self.continues, self.raises)
        before = [len(states) for states in leaving]
        returned = len(self.returns)
        entered, catching = run.clock, run.catching
        caching = [self._enter(item, exits) for item in s.items]
        base = run.s
        ending = any(self._ends_errors(item.context_expr) for item in s.items)
        if ending:
            run.s = base.fork(run.clock)
        if not self.raises_here:
            self.execute(s.body)
        if ending:
            raised = self.raises[before[2] :]
            run.meet([*([] if run.dead else [run.s]), *raised], base)
        run.catching = catching
        for leave in reversed(exits):
            leave()
        if caches := set().union(*caching):
            run.trace.caching.append((entered, run.tick()))
            if caches & PARAMETRIZATION_CACHES:
                run.trace.shared_weights.append((entered, run.tick()))
        if not exits:
            return
        # what left through return, break or raise has left the context as well
        if not self.raises_here:
            run.s.grad = saved
        for state, _ in self.returns[returned:]:
            state.grad = saved
        for states, count in zip(leaving, before, strict=True):
            for state in states[count:]:
                state.grad = saved

    _do_AsyncWith = _do_With  # noqa: N815

    def _enter(self, item: ast.withitem, exits: list[Callable[[], None]]) -> set[str]:
        """Enter a context and add what leaves it to ``exits``; return the caches of weights that it may be."""
        run = self.run
        value = self.evaluate(item.context_expr)
        result: Value = value
        if isinstance(value, Join):
            modes = {o.enabled for o in value.options if isinstance(o, GradMode)}
            if modes:
                before = run.s.grad
                others = [o for o in value.options if not isinstance(o, GradMode)]
                if others:
                    modes.add(before)
                run.s.grad = modes.pop() if len(modes) == 1 else None
                exits.append(lambda: setattr(run.s, "grad", before))
        elif isinstance(value, GradMode):
            before = value.previous if value.switched else run.s.grad
            run.s.grad = value.enabled
            exits.append(lambda: setattr(run.s, "grad", before))
        elif (method := run.closing.get(item.context_expr)) is not None:
            exits.append(lambda: self._close(value, method, item.context_expr))
        elif isinstance(value, Instance):
            enter = value.cls.find("__enter__") or value.cls.find("__aenter__")
            leave = value.cls.find("__exit__") or value.cls.find("__aexit__")
            before = run.s.grad
            thrown = len(run.thrown)
            if isinstance(enter, Function):
                result = self.call_function(enter, Arguments(), item.context_expr, receiver=value)
            if isinstance(leave, Function):
                exits.append(lambda: self._leave(value, leave, thrown, item.context_expr))
        elif isinstance(value, Unknown) and value.path in EXIT_STACKS:
            before = run.s.grad
            exits.append(lambda: setattr(run.s, "grad", before))
            exits.append(lambda: run.leave_all(value))
        elif isinstance(item.context_expr, ast.Call):
            if self.may_switch(item.context_expr) or self._may_freeze(value):
                before = run.s.grad
                run.s.grad = None
                exits.append(lambda: setattr(run.s, "grad", before))
            elif isinstance(value, Unknown) and value.path == "apex.amp.scale_loss":
                # apex.amp.scale_loss(loss, optimizer) as scaled_loss
                result = value
        if item.optional_vars is not None:
            if isinstance(result, Sequence) and result.kind is SequenceKind.GENERATOR:
                result = run.one_of(run.elements(result)) or run.unknown("entered")
            self.assign(item.optional_vars, result, None)
        run.catching += self._catches(item.context_expr, value)
        return {o.path for o in run.options(value) if isinstance(o, Unknown)} & WEIGHT_CACHES

    def _may_freeze(self, context: Value) -> bool:
        """Whether the generator that a context was made of has just frozen leaves: what it does behind its ``yield``
        was run with what comes before, so that they are frozen in between."""
        generator = isinstance(context, Sequence) and context.kind is SequenceKind.GENERATOR
        return generator and self.run.s.grad is True and any(name == FROZEN for _, name in self.run.written)

    def _leave(self, context: Instance, leave: Function, thrown: int, at: ast.AST) -> None:
        """Leave a context by its method, which gets what was raised in it, if anything was."""
        given: list[Value] = [NONE] * 3
        if raised := self.run.one_of(self.run.thrown[thrown:]):
            given = [
                self.run.join(NONE, value) for value in (self.run.lost("type"), raised, self.run.lost("traceback"))
            ]
        self.call_function(leave, Arguments(None, given), at, receiver=context)

    def _close(self, value: Value, method: str, at: ast.AST) -> None:
        self.call_method(value, method, Arguments(), at)

    def _ends_errors(self, context: ast.expr) -> bool:
        """Whether a context may end an error of any kind."""
        value = self.run.values.get(context)
        if isinstance(value, Unknown):
            return value.path in SUPPRESSING
        return value is not None and self._catches(context, value)

    def _catches(self, context: ast.expr, value: Value) -> bool:
        """Whether a context ends the error of a backward in its body."""
        if isinstance(value, Instance):
            leave = value.cls.find("__exit__") or value.cls.find("__aexit__")
            return isinstance(leave, Function) and leave.file.once(_ends_errors, leave.definition)
        if not isinstance(context, ast.Call):
            return False
        if isinstance(value, Unknown):
            return value.path in SUPPRESSING and _names_it(context.args)
        if isinstance(value, Sequence) and isinstance(context.func, ast.Name):
            made = self.load_name(context.func.id, context)
            return isinstance(made, Function) and made.file.once(_yields_in_a_try, made.definition)
        return False

    def _do_Try(self, s: ast.Try) -> None:
        run = self.run
        base = run.s
        run.s = base.fork(run.clock)
        outer_raises, outer_thrown, caught_before = self.raises, run.thrown, run.frame.caught
        self.raises, run.thrown = [], []
        before = run.s.fork(run.clock)
        catches = any(map(_swallows, s.handlers))
        run.trying += 1
        run.catching += catches
        self.execute(s.body)
        run.catching -= catches
        run.trying -= 1
        ends: list[State] = []
        if not run.dead:
            self.execute(s.orelse)
        after = run.s
        completed = not run.dead
        if completed:
            ends.append(run.s)
        thrown, values = self.raises, run.thrown
        self.raises, run.thrown = outer_raises, outer_thrown
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for statement in s.body for n in walk(statement))
        for handler in s.handlers:
            run.frame.caught = run.one_of([*values, run.lost("exception")])
            # an exception may come at any point of the body: at its begin, or with all its effects
            begin = before.fork(run.clock)
            candidates = [begin, *thrown, *([after] if completed else [])]
            if len(candidates) > 1:
                run.meet(candidates, base)
            run.s = begin
            run.s.log = type(run.s.log)(base.log, inf)
            run.s.log.keys |= base.log.keys
            run.dead = False
            if handler.type is not None:
                self.evaluate(handler.type)
            if handler.name:
                assert run.frame.caught is not None
                self.store_name(handler.name, run.frame.caught, handler)
            self.execute(handler.body)
            # who closes a generator does not see the error that ended it
            if not run.dead or (yields and _may_close(handler)):
                ends.append(run.s)
        run.frame.caught = caught_before
        if not s.handlers:
            self.raises.extend(thrown)
            run.thrown += values
        run.meet(ends, base)
        if s.finalbody:
            was_dead = run.dead
            run.dead = False
            self.execute(s.finalbody)
            run.dead = run.dead or was_dead

    _do_TryStar = _do_Try  # noqa: N815


Statements.executors = {
    getattr(ast, name.removeprefix("_do_")): getattr(Statements, name)
    for name in dir(Statements)
    if name.startswith("_do_") and hasattr(ast, name.removeprefix("_do_"))
}


# what catches the ``RuntimeError`` of a backward, and goes on: handlers, and contexts that end errors

_ERRORS = frozenset(("RuntimeError", "Exception", "BaseException"))


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Whether a handler gets the error and does not raise again."""
    gets = handler.type is None or _names_it([handler.type])
    return gets and not any(isinstance(n, ast.Raise) for statement in handler.body for n in walk(statement))


def _may_close(handler: ast.ExceptHandler) -> bool:
    """Whether a handler gets what ends a generator that is closed (docs: ``generator.close``)."""
    kinds = () if handler.type is None else walk(handler.type)
    return handler.type is None or any(
        isinstance(n, ast.Name) and n.id in ("GeneratorExit", "BaseException") for n in kinds
    )


def _names_it(types: Iterable[ast.expr]) -> bool:
    """Whether one of the types of exceptions may be that of the error."""
    return any(isinstance(n, ast.Name) and n.id in _ERRORS for each in types for n in walk(each))


def _ends_errors(definition: ast.AST) -> bool:
    """Whether an ``__exit__`` may return something true, which ends the error (Python reference, 3.3.9)."""
    returned = [n.value for n in walk(definition) if isinstance(n, ast.Return)]
    return any(not (e is None or (isinstance(e, ast.Constant) and not e.value)) for e in returned)


def _yields_in_a_try(definition: ast.AST) -> bool:
    """Whether a generator catches what is thrown where it yields (docs: contextlib.contextmanager)."""
    tries = [n for n in walk(definition) if isinstance(n, ast.Try) and any(map(_swallows, n.handlers))]
    bodies = [statement for each in tries for statement in each.body]
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for statement in bodies for n in walk(statement))
