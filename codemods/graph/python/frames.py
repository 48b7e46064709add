"""A function's body is run: its parameters are bound, and its paths end in one result."""

from __future__ import annotations

import ast
from typing import Any

from codemods.graph.libraries.calls import Libraries
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cells import Key
from codemods.graph.model.kinds import CarrierKind, SequenceKind, UnseenKind
from codemods.graph.model.nodes import Carrier, Frame, Unseen, Value
from codemods.graph.model.state import State, written_since
from codemods.graph.model.values import NONE, Const, Function, Instance, Method, Partial, Tuple, Unknown
from codemods.graph.python.deferred import defer, noting
from codemods.graph.python.growing import Growing
from codemods.graph.python.remembering import Remembering
from codemods.graph.python.turns import Turns
from codemods.graph.run.contents import REST, RETURNED, SENT
from codemods.graph.run.interpreter import Interpreter
from codemods.graph.run.run import Run
from codemods.graph.torch.model import Torch
from codemods.source.walking import children

_MAX_RAISES = 8


class Frames(Interpreter):
    """The part of the engine that runs the body of a function."""

    def __init__(self, budget: int = 150_000) -> None:
        self.run = Run(budget)
        self.torch = Torch(self.run)
        self.libraries = Libraries(self.torch)
        self.growing = Growing(self.torch)
        self.remembered = Remembering(self.run)
        self.turns = Turns(self.run)
        self.returns: list[tuple[State, Value]] = []
        self.breaks: list[State] = []
        self.continues: list[State] = []
        self.raises: list[State] = []
        self.raises_here = False
        self.narrowed: list[tuple[Key, Value, Value]] = []
        """What the branch that begins now knows of cells: key, what it holds on all paths, what it holds here."""

    # what the layers above supply

    def execute(self, statements: list[ast.stmt]) -> None:
        """Run statements."""
        raise NotImplementedError

    # bodies

    def bind(self, function: Function, frame: Frame, args: Arguments, at: ast.AST) -> None:
        """Give the parameters of ``function`` their values in ``frame``."""
        run = self.run
        spec = function.definition.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        defaults = dict(zip(names[len(names) - len(function.defaults) :], function.defaults, strict=False))
        positional = list(args.positional)
        keywords = dict(args.keywords)
        more = run.one_of([v for value in args.more for v in self._several(value, at)])

        def default(value: Value) -> Value:
            # ``*rest`` and ``**rest`` may bring another one
            return value if more is None else run.join(value, more)

        def put(name: str, value: Value) -> None:
            frame.names.add(name)
            run.s.set((frame.fid, name), value)
            for node in run.nodes_of(value):
                node.stores.append((Carrier(CarrierKind.LOCAL, frame.fid, name), frame.call or run.place(at)))

        for i, name in enumerate(names):
            if i < len(positional):
                put(name, positional[i])
            elif name in keywords:
                put(name, keywords.pop(name))
            elif more is not None and name not in defaults:
                put(name, more)
            elif name in defaults:
                put(name, default(defaults[name]))
            else:
                put(name, more if more is not None else self.argument(name))
        if spec.vararg is not None:
            rest = positional[len(names) :]
            put(spec.vararg.arg, self._rest(rest, more, uncounted=args.uncounted))
        kw_defaults = dict(function.kw_defaults)
        for arg in spec.kwonlyargs:
            if arg.arg in keywords:
                put(arg.arg, keywords.pop(arg.arg))
            else:
                known = kw_defaults.get(arg.arg)
                put(arg.arg, default(known) if known is not None else more or self.argument(arg.arg))
        if spec.kwarg is not None:
            rest_mapping = run.new_mapping()
            for name, value in keywords.items():
                self.torch.put_item(rest_mapping, Const(name), value)
            if more is not None:
                run.s.set((rest_mapping.oid, REST), more)
            put(spec.kwarg.arg, rest_mapping)

    def _rest(self, values: list[Value], more: Value | None, *, uncounted: bool) -> Value:
        """What ``*args`` takes: ``values``, and any number of ``more``."""
        if more is None and not uncounted:
            return Tuple(tuple(values))
        several = self.run.new_sequence(values, rest=more)
        if uncounted:
            self.run.uncounted.add(several.oid)
        return several

    def _several(self, value: Value, at: ast.AST) -> list[Value]:
        """What ``*value`` or ``**value`` may give."""
        inner = self.run.elements(value)
        if inner or not isinstance(value, (Instance, Unknown, Method, Partial)):
            return inner or [value]
        return [self.run.taken(at, value)] if self.run.nodes_of(value) or self.run.held_in([value]) else [value]

    def argument(self, name: str) -> Unknown:
        """An argument that nobody in the tree passes: it may be attached outside."""
        made = self.run.unknown(name)
        made.shadow = (Unseen(UnseenKind.ARGUMENT, name),)
        return made

    def run_body(self, frame: Frame, definition: ast.AST) -> Value:
        """Run a function in its frame; what it returns on all its paths, joined."""
        if isinstance(definition, ast.AsyncFunctionDef):
            with self.run.at_another_time(), noting(self.run) as reads:
                return self._run(frame, definition, reads)
        if not frame.file.once(_yields, definition):
            return self._run(frame, definition, {})
        with self.run.at_another_time(), noting(self.run) as reads:
            return self._run(frame, definition, reads)

    def _run(self, frame: Frame, definition: ast.AST, reads: dict[Key, Any]) -> Value:
        """The same, where what the body of a generator reads is noted in ``reads``."""
        run = self.run
        caller, was_dead = run.frame, run.dead
        run.frame = frame
        run.active.append(definition)
        returns: list[tuple[State, Value]] = []
        outer_returns = self.returns
        outer_breaks, outer_continues, outer_raises = self.breaks, self.continues, self.raises
        self.returns, self.breaks, self.continues, self.raises = returns, [], [], []
        try:
            if isinstance(definition, ast.Lambda):
                result = self.evaluate(definition.body)
                run.written = set()
                return result
            assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
            base = run.s
            run.s = base.fork(run.clock)
            self.execute(definition.body)
            ends = [state for state, _ in returns]
            run.written = {cell for state in [*ends, run.s] for cell in written_since(state, base.log)}
            values = [value for _, value in returns]
            if not run.dead:
                ends.append(run.s)
                if not frame.yields:
                    values.append(NONE)
            if not ends:
                # every path raises: the call does not come back
                run.s = base
                run.written = set()
                self.raises_here = True
                return NONE
            run.meet(ends, base)
            if frame.file.once(_yields, definition) or frame.yields:
                # of many, each of the later ones may be any of them
                made = run.new_sequence(frame.yields[:8], run.one_of(frame.yields[8:]), kind=SequenceKind.GENERATOR)
                returned = run.one_of(values)
                if returned is not None:
                    run.s.set((made.oid, RETURNED), returned)
                if frame.sent:
                    run.s.set((made.oid, SENT), tuple(frame.sent))
                return defer(run, made, frame, reads)
            result = values[0]
            for value in values[1:]:
                result = run.join(result, value)
            return result
        finally:
            if run.trying and self.raises:
                # what a call did before it raised is there where that is caught
                outer_raises += self.raises[:_MAX_RAISES]
            run.active.pop()
            self.returns, self.breaks, self.continues, self.raises = (
                outer_returns,
                outer_breaks,
                outer_continues,
                outer_raises,
            )
            run.frame = caller
            run.dead = was_dead
            if not frame.captured:
                run.s.end((frame.fid, name) for name in frame.names)


def _yields(definition: ast.AST) -> bool:
    stack = children(definition)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack += children(node)
    return False
