"""Loops: ``for`` and ``while``."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

from codemods.graph.model.nodes import Value
from codemods.graph.model.state import State
from codemods.graph.model.values import NONE, NUMBER, Const, Library, Sequence, Unknown
from codemods.graph.python.branches import Branches
from codemods.graph.python.initializing import last_of_each
from codemods.graph.run.contents import ITEMS, REST

_FEW = 2
"""Turns that every loop is run for anyway."""


class Loops(Branches):
    """The part of the engine that runs loops."""

    def _do_For(self, s: ast.For) -> None:
        through = self.evaluate(s.iter)
        values = self.iterate(through, s.iter)
        if self.raises_here:
            return
        if len(values) > _FEW:
            values = last_of_each(s, values, self.run, self.load_name)
        begin = functools.partial(self.take, s.target, through, s.iter)
        self._loop(s, values, begin, counted=self.is_counted(through))

    _do_AsyncFor = _do_For  # noqa: N815

    def _do_While(self, s: ast.While) -> None:
        test = self.evaluate(s.test)
        if self.run.truth(test) is False:
            self.execute(s.orelse)
            return

        def again(turn: Value) -> None:
            if turn is not NONE:
                self.evaluate(s.test)

        self._loop(s, [NONE, NUMBER], again, forever=isinstance(s.test, ast.Constant))

    def _loop(
        self,
        s: ast.For | ast.AsyncFor | ast.While,
        values: list[Value],
        begin: Callable[[Value], None],
        *,
        forever: bool = False,
        counted: bool = False,
    ) -> None:
        """Run the turns of a loop, and what comes after them; see :class:`~codemods.graph.python.turns.Turns`."""
        run = self.run
        base = run.s
        outer_breaks, outer_continues = self.breaks, self.continues
        self.breaks = []
        run.s = base.fork(run.clock)
        finished: list[State] = []
        if isinstance(s, ast.For):
            run.began[s.iter] = run.tick()

        def body(_: Value) -> list[State]:
            self.continues = []
            if isinstance(s, ast.For):
                run.turned[s.iter] = run.tick()
            self.execute(s.body)
            return self.continues

        opened = [] if counted else [run.tick()]
        run.open_loops += opened
        try:
            self.turns.run_all(s, values, begin, body, counted=counted)
        finally:
            del run.open_loops[len(run.open_loops) - len(opened) :]
        if not run.dead:
            if isinstance(s, ast.For):
                self._has_filled(s.iter)
            self.execute(s.orelse)
            if not run.dead:
                finished.append(run.s)
        ends = finished + self.breaks
        self.breaks, self.continues = outer_breaks, outer_continues
        if not ends:
            # every turn left the function; the loop may also run no turn at all
            if forever:
                run.dead = True
                return
            run.dead = False
            run.s = base
            return
        run.meet(ends, base)

    def _has_filled(self, through: ast.expr) -> None:
        """A loop has come to its end: of the lists in which it put something in every place nothing else is left."""
        counts = (through, 0)
        for container in self.run.filled.get(counts, ()):
            put = self.torch.put_by_all(container, counts)
            if put and self._goes_over(through, container):
                self.run.s.set((container.oid, ITEMS), tuple(put))
                self.run.s.delete((container.oid, REST))

    def _goes_over(self, through: ast.expr, container: Sequence) -> bool:
        """Whether a loop counts to every place of a list."""
        values = self.run.values
        if not isinstance(through, ast.Call) or not through.args:
            return False
        called, last = values.get(through.func), through.args[-1]
        name = called.path if isinstance(called, Library) else ""
        if name == "builtins.enumerate":
            return values.get(last) is container
        if name != "builtins.range":
            return False
        if isinstance(last, ast.Call) and len(last.args) == 1:
            measured = values.get(last.func)
            of_all = isinstance(measured, Library) and measured.path == "builtins.len"
            return of_all and values.get(last.args[0]) is container
        count, length = values.get(last), self.run.lengths.get(container.oid)
        if isinstance(count, Const) and isinstance(length, Const):
            return isinstance(count.value, int) and isinstance(length.value, int) and count.value >= length.value
        return isinstance(count, Unknown) and count is length
