"""Calls that need not be run again: which can be remembered, when they still hold, what they gave.

:mod:`codemods.graph.model.memo` says what is remembered of a call; here it is taken and given out.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cells import Key
from codemods.graph.model.facts.layers import OTHER_KERNELS
from codemods.graph.model.facts.python import CACHING, PASSING_DECORATORS
from codemods.graph.model.kinds import GradSetting, NodeKind, UnseenKind
from codemods.graph.model.memo import Memo, Origin, nodes_in, origin, rebuild, signature, simple
from codemods.graph.model.nodes import Frame, Node, Unseen, Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.values import Function, Library, Tensor, Tuple, Unknown
from codemods.graph.python.frames import Frames


class Remembering(Frames):
    """The part of the engine that remembers calls."""

    # pure calls in a forward

    def memo_key(self, function: Function, args: Arguments, receiver: Value | None) -> Any:
        """What a call is remembered by, None if it must not be."""
        decorated = function.wrapped or function.grad_mode is not GradSetting.UNSET
        if args.more or decorated or self.hooks:
            return None
        if self.cache_of(function.definition) is not None:
            return None
        names = sorted(args.keywords)
        parts = [signature(v) for v in (*args.positional, *map(args.keywords.__getitem__, names))]
        if None in parts:
            return None
        own = (id(function.definition), function.closure, getattr(receiver, "oid", None))
        return (own, self.s.grad, len(args.positional), *names, *parts)

    def recall(self, key: Any, args: Arguments, at: ast.AST) -> Value | None:
        """What the call gave before, made of these arguments; None where nothing is remembered that still holds."""
        memo = self.memos.get(key)
        if memo is None:
            return None
        peek = self.s.peek
        if any(peek(cell) is not value for cell, value in memo.reads.items()):
            return None
        if self.s.reads is not None:
            for cell, value in memo.reads.items():
                self.s.reads.setdefault(cell, value)
        arguments = [n for v in args.all() for n in nodes_in(v)]
        fresh: dict[Node, Node] = {}
        for node, came_from in memo.origins.items():
            if node in fresh:
                continue
            parents = [arguments[i] for i in came_from.arguments if i < len(arguments)]
            if len(came_from.arguments) == 1 and not came_from.fixed and node.kind is NodeKind.ARGUMENT:
                fresh[node] = parents[0]
                continue
            made = self.node(
                at,
                NodeKind.MODULE if came_from.layers else NodeKind.OP,
                [*parents, *came_from.fixed],
                certain=node.certain,
                scalar=node.scalar,
                dimensionless=node.dimensionless,
                label=came_from.kernel or node.label,
            )
            if made is None:
                return None
            made.shadow = self.shadow_of(args.all())
            fresh[node] = made
        return rebuild(memo.result, fresh, tuple(o for o in self.shadow_of(args.all()) if isinstance(o, Unseen)))

    def run_and_remember(self, key: Any, args: Arguments, frame: Frame, definition: ast.AST) -> Value:
        """Run the body of a function, and remember what it gave where that follows from what it read."""
        born, first_oid = self.clock, frame.fid
        trace = self.trace
        events = (len(trace.walks), len(trace.marks), len(trace.steps), len(trace.storings))
        sums, others = len(trace.accumulations), len(trace.growths)
        outer_reads = self.s.reads
        reads: dict[Key, Any] = {}
        self.s.reads = reads
        result = self.run_body(frame, definition)
        self.s.reads = outer_reads
        if outer_reads is not None:
            for cell, value in reads.items():
                outer_reads.setdefault(cell, value)
        written = self.written
        after = (len(trace.walks), len(trace.marks), len(trace.steps), len(trace.storings))
        grown = (*trace.accumulations[sums:], *trace.growths[others:])
        if any(a.carrier is None or a.carrier.owner < first_oid for a in grown):
            return result
        if events != after or not simple(result) or self.s.grad is not frame.grad:
            return result
        given = {id(o) for o in self.shadow_of(args.all())}
        if any(isinstance(o, Unseen) and id(o) not in given for o in self.shadow_of([result])):
            # it made something that cannot be seen, which is another thing each time
            return result
        peek = self.s.peek
        if any(0 < cell[0] < first_oid and (cell not in reads or peek(cell) is not reads[cell]) for cell in written):
            return result
        kept = {cell: value for cell, value in reads.items() if cell[0] < first_oid}
        for value in kept.values():
            if isinstance(value, (Tensor, Unknown)) and value.node is not None and not value.node.leaf:
                return result
        arguments = [n for v in args.all() for n in nodes_in(v)]
        origins: dict[Node, Origin] = {}
        for node in nodes_in(result):
            if node in arguments:
                return result
            came_from = origin(node, born, arguments, OTHER_KERNELS)
            if came_from is None:
                return result
            origins[node] = came_from
        self.memos[key] = Memo(kept, result, origins)
        return result

    # functions that give the same result again

    def cache_of(self, definition: ast.AST) -> Unseen | None:
        """What stands for the results of a function whose decorator hands the same result out again."""
        if definition not in self.caches:
            again = any(self._may_repeat(d) for d in getattr(definition, "decorator_list", ()))
            self.caches[definition] = Unseen(UnseenKind.CALL, getattr(definition, "name", "")) if again else None
        return self.caches[definition]

    def _may_repeat(self, decorator: ast.expr) -> bool:
        """Whether a decorator may hand a former result out again: one that is not known to do otherwise."""
        value = self.values.get(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if isinstance(value, Library):
            path = canonical(value.path)
            return path in CACHING or path.partition(".")[0] not in PASSING_DECORATORS
        # one of the tree is run itself, and what it keeps is seen
        return isinstance(value, Unknown)

    def kept_result(self, value: Value, marker: Unseen) -> Value:
        """A result that later calls may give again."""
        for node in self.nodes_of(value):
            if not node.leaf:
                node.shadow = (marker, *node.shadow)
        if isinstance(value, Tensor):
            return replace(value, shadow=(marker, *value.shadow))
        if isinstance(value, Unknown):
            value.shadow = (marker, *value.shadow)
        if isinstance(value, Tuple):
            return Tuple(tuple(self.kept_result(item, marker) for item in value.items), value.names, value.closed)
        return value
