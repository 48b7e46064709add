"""Comprehensions are evaluated: their turns, and the variables that end with them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

from codemods.graph.model.kinds import SequenceKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Library, Sequence
from codemods.graph.python.deferred import defer, noting
from codemods.graph.python.in_place import InPlace
from codemods.source.walking import children, walk

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

Parts = dict[ast.expr, list[Value]]
"""What expressions were, turn by turn."""


class Comprehensions(InPlace):
    """The part of the engine that evaluates comprehensions."""

    def _eval_ListComp(self, e: ast.ListComp) -> Value:
        found: list[Value] = []
        parts: Parts = {}
        counted = self._comprehend(e, e.generators, lambda: found.append(self._part_by_part(e.elt, parts)))
        self._in_any_turn(parts)
        made = self.run.new_sequence(found)
        if not counted:
            self.run.uncounted.add(made.oid)
        if len(found) > 1 and any(generator.ifs for generator in e.generators):
            # which of them are left out is not known
            self.mix(made)
        elif len(e.generators) == 1:
            self._note_length(e.generators[0].iter, made)
        return made

    def _note_length(self, through: ast.expr, made: Sequence) -> None:
        """``[... for _ in range(n)]`` has so many elements."""
        ends = through.args if isinstance(through, ast.Call) else []
        called = self.run.values.get(through.func) if isinstance(through, ast.Call) else None
        if isinstance(called, Library) and called.path == "builtins.range" and len(ends) == 1:
            length = self.run.values.get(ends[0])
            if length is not None:
                self.run.lengths[made.oid] = length

    def _eval_GeneratorExp(self, e: ast.GeneratorExp) -> Value:
        found: list[Value] = []
        with self.run.at_another_time(), noting(self.run) as reads:
            self._comprehend(e, e.generators, lambda: found.append(self.evaluate(e.elt)))
        return defer(self.run, self.run.new_sequence(found, kind=SequenceKind.GENERATOR), self.run.frame, reads)

    def _eval_SetComp(self, e: ast.SetComp) -> Value:
        found: list[Value] = []
        self._comprehend(e, e.generators, lambda: found.append(self.evaluate(e.elt)))
        return self.run.new_sequence(found, kind=SequenceKind.SET)

    def _eval_DictComp(self, e: ast.DictComp) -> Value:
        made = self.run.new_mapping()
        parts: Parts = {}

        def put() -> None:
            key = self.evaluate(e.key)
            self.torch.put_item(made, key, self._part_by_part(e.value, parts))

        self._comprehend(e, e.generators, put)
        self._in_any_turn(parts)
        return made

    def _part_by_part(self, expression: ast.expr, parts: Parts) -> Value:
        """Evaluate an element, and note it and the parts of a sum: they may grow those of the turns before."""
        value = self.evaluate(expression)
        for part in walk(expression) if isinstance(expression, ast.BinOp) else (expression,):
            if isinstance(part, ast.expr) and (known := self.run.values.get(part)) is not None:
                parts.setdefault(part, []).append(known)
        return value

    def _in_any_turn(self, parts: Parts) -> None:
        """Know of each part of a sum what it was in any of the turns."""
        for part, values in parts.items():
            self.run.values[part] = self.run.one_of(values) or values[0]

    def _comprehend(self, e: Comprehension, generators: list[ast.comprehension], body: Callable[[], None]) -> bool:
        """Run the turns of a comprehension; whether they are all that there are."""
        run = self.run
        if not generators:
            body()
            return True
        first, rest = generators[0], generators[1:]
        through = self.evaluate(first.iter)
        if first is not e.generators[0]:
            return self._each_item(e, through, first, rest, body)
        scope, names = run.new_oid(), run.frame.file.once(_own_names, e)
        run.frame.scopes.append((scope, names))
        try:
            return self._each_item(e, through, first, rest, body)
        finally:
            run.frame.scopes.pop()
            if scope not in run.closures:
                run.s.end((scope, name) for name in names)

    def _each_item(
        self,
        e: Comprehension,
        through: Value,
        first: ast.comprehension,
        rest: list[ast.comprehension],
        body: Callable[[], None],
    ) -> bool:
        """Run the body of a comprehension once for each item of one of its generators."""
        values = self.iterate(through, e)
        counted = self.is_counted(through)
        if isinstance(e, ast.ListComp) and len(values) == 2 and not counted and not rest:
            # of three elements the second has a neighbour on either side
            values.append(values[1])

        def turn(_: Value) -> None:
            for condition in first.ifs:
                if self.run.truth(self.evaluate(condition)) is False:
                    return
            self._comprehend(e, rest, body)

        begin = functools.partial(self.take, first.target, through, e)
        self.turns.run_all(e, values, begin, turn, counted=counted)
        return counted and not rest and not first.ifs


def _own_names(e: ast.AST) -> frozenset[str]:
    """The variables of a comprehension, which end with it."""
    targets = [n.target for n in children(e) if isinstance(n, ast.comprehension)]
    names = [n for target in targets for n in walk(target) if isinstance(n, ast.Name)]
    return frozenset(n.id for n in names if isinstance(n.ctx, ast.Store))
