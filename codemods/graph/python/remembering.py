"""Calls that need not be run again: which can be remembered, when they still hold, what they gave.

:mod:`codemods.graph.model.memo` says what is remembered of a call; here it is taken and given out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cells import Key
from codemods.graph.model.facts.python import CACHING, PASSING_DECORATORS
from codemods.graph.model.kinds import CarrierKind, GradSetting, SequenceKind, UnseenKind
from codemods.graph.model.memo import (
    Again,
    Asked,
    Memo,
    Step,
    events_at,
    graph_of,
    nodes_in,
    signature,
    simple,
    tensors_in,
)
from codemods.graph.model.nodes import Carrier, Frame, Node, Place, Unseen, Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.trace import Handing, Storing
from codemods.graph.model.values import Function, Library, Mapping, Sequence, Tensor, Tuple, Unknown
from codemods.graph.python.deferred import noting
from codemods.graph.run.contents import ITEMS, REST
from codemods.graph.run.run import Run

_DEEP, _MANY = 3, 64
"""How deep, and up to how many elements, containers that are given to a call are told by what they hold."""


@dataclass(frozen=True)
class _Before:
    """What was noted when a call began: ``clock`` is the moment, ``events`` are counts that must stay, ``counts`` those
    of what may also be noted of things that the call made itself, ``at_arguments`` those of uses and escapes."""

    clock: int
    events: tuple[int, ...]
    counts: tuple[int, int, int, int, int]
    at_arguments: list[tuple[int, int]]
    nodes: int


class Remembering:
    """Remembers calls of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run

    # pure calls in a forward

    def asked_for(self, function: Function, args: Arguments, receiver: Value | None) -> Asked | None:
        """What a call is remembered by, None if it must not be."""
        decorated = function.wrapped or function.grad_mode is not GradSetting.UNSET
        if args.more or args.uncounted or decorated or self.run.hooks:
            return None
        if self.cache_of(function.definition) is not None:
            return None
        names = sorted(args.keywords)
        asked = Asked((), [], [])
        parts = [self._look(v, asked) for v in (*args.positional, *map(args.keywords.__getitem__, names))]
        if None in parts:
            return None
        own = (id(function.definition), function.closure, getattr(receiver, "oid", None))
        # one tensor that is given twice is not two
        same: dict[Node, int] = {}
        equal = tuple(same.setdefault(node, i) for i, node in enumerate(asked.nodes))
        # in another forward its nodes are told together
        how = (self.run.s.grad, self.run.frame.inside_module, len(args.positional))
        return replace(asked, key=(own, *how, equal, *names, *parts))

    def _look(self, value: Value, asked: Asked, depth: int = 0) -> Any:
        """How an argument looks; what it carries is added to ``asked``."""
        if isinstance(value, (Sequence, Mapping)) and depth < _DEEP:
            held = self._held_by_name(value)
            if held is not None:
                asked.containers.append(value)
                looks = [self._look(one, asked, depth + 1) for one in held.values()]
                form = (value.kind, value.bounded) if isinstance(value, Sequence) else ()
                order = tuple(
                    value.oid in known for known in (self.run.displaced, self.run.uncounted, self.run.repeated)
                )
                return None if None in looks else ("holds", form, order, *held, *looks)
        asked.nodes.extend(nodes_in(value))
        return signature(value)

    def _held_by_name(self, container: Sequence | Mapping) -> dict[Any, Value] | None:
        """What a container holds by its cells, None where that is too much or is not held as such."""
        oid = container.oid
        rest = self.run.s.get((oid, REST))
        if isinstance(container, Sequence):
            items = self.run.s.get((oid, ITEMS))
            if container.kind not in (SequenceKind.LIST, SequenceKind.DEQUE) or not isinstance(items, tuple):
                return None
            held: dict[Any, Any] = dict(enumerate(items))
        else:
            held = {key: self.run.s.get((oid, key)) for key in self.run.mapping_keys(container)}
        if rest is not None:
            held[REST] = rest
        return held if 0 < len(held) <= _MANY and all(isinstance(v, Value) for v in held.values()) else None

    def recall(self, asked: Asked, args: Arguments, at: ast.AST, frame: Frame | None) -> Value | None:
        """What the call gave before, made of these arguments; None where nothing is remembered that still holds.

        ``frame`` is the call, where places in it are to be told.
        """
        run = self.run
        memo = run.memos.get(asked.key)
        if memo is None or not run.s.holds(memo.reads):
            return None
        reads = run.s.reads
        if reads is not None:
            reads |= {cell: value for cell, value in memo.reads.items() if cell not in reads}
        for container in asked.containers:
            for held in run.elements(container):
                run.read(held, Carrier(CarrierKind.ELEMENT, container.oid, ""), at)

        def again(place: Place) -> Place:
            return memo.again(place, run.place(at), frame)

        self._note_again(memo, asked, args, again)
        made: list[Node | None] = []
        nodes: dict[Node, Node] = {}
        shadow = run.shadow_of(args.all())
        aliased = [tensor for tensor in tensors_in([*args.all(), *self._elements_of(asked)]) if tensor.aliases]
        fresh = {o: run.new_unseen(o.name) for o in memo.made}
        for step, carried in zip(memo.steps, memo.carried, strict=True):
            parents = [p if isinstance(p, Node) else made[p] if p >= 0 else asked.nodes[-1 - p] for p in step.parents]
            node = run.once_more(step, [p for p in parents if p is not None], again)
            made.append(node)
            if node is not None:
                node.shadow = (*(fresh[o] for o in carried), *shadow) if carried else shadow
                if aliased and node.saves:
                    run.drawn(aliased, node)
                if step.result is not None:
                    nodes[step.result] = node
        if any(node not in nodes and not node.leaf for node in nodes_in(memo.result)):
            return None
        unseen = tuple(o for o in shadow if isinstance(o, Unseen))
        return Again(nodes, unseen, fresh, run.new_oid).rebuild(memo.result)

    def _note_again(self, memo: Memo, asked: Asked, args: Arguments, again: Callable[[Place], Place]) -> None:
        """Note at the arguments of a call what was noted at those of the one that is remembered."""
        for node, (uses, escapes) in dict(zip(asked.nodes, memo.noted, strict=True)).items():
            node.uses += [use._replace(place=again(use.place)) for use in uses]
            node.escapes += escapes
        if memo.handed is not None:
            place, things, models = memo.handed
            self.run.trace.handings.append(Handing(again(place), (*args.all(), *things), models))

    def run_and_remember(
        self, asked: Asked, args: Arguments, frame: Frame, body: Callable[[], tuple[Value, bool]]
    ) -> Value:
        """Run the ``body`` of a function, which tells what it gives and whether it may raise, and remember what it gave
        where that follows from what it read."""
        run = self.run
        before = self._before(asked)
        with noting(run) as reads:
            result, raises = body()
        if raises or run.s.grad is not frame.grad or not simple(result):
            return result
        if not run.frame.inside_module and len(run.trace.nodes) > before.nodes and not nodes_in(result):
            # rules ask where a module records graphs that nobody gets
            return result
        if self._left_something(before, asked, args, frame.fid, reads):
            return result
        inside = {container.oid: frozenset(self._cells_of(container)) for container in asked.containers}
        if any(cell[0] in inside and cell[1] not in inside[cell[0]] and v is not None for cell, v in reads.items()):
            return result
        kept = {cell: value for cell, value in reads.items() if cell[0] < frame.fid and cell[0] not in inside}
        if self._is_of_before(result, asked, [*args.all(), *_flat(kept.values())]):
            return result
        # what a result was cut off from was computed, too, and so was what code did something with
        cut = [o for o in run.shadow_of([result]) if isinstance(o, Node) and o.birth >= before.clock]
        used = [node for node in run.trace.nodes[before.nodes :] if node.uses or node.escapes]
        whole = not run.frame.inside_module
        steps = graph_of([*nodes_in(result), *cut, *used], before.clock, asked.nodes, run.trace.unpacked, whole=whole)
        if steps is not None:
            noted = tuple(
                (tuple(node.uses[uses:]), tuple(node.escapes[escapes:]))
                for node, (uses, escapes) in zip(asked.nodes, before.at_arguments, strict=True)
            )
            handings = run.trace.handings[before.counts[4] :]
            given = [value for handing in handings for value in handing.given]
            things = tuple(value for value in given if 0 < getattr(value, "oid", 0) < frame.fid)
            models = any(handing.models for handing in handings)
            handed = (handings[0].place, things, models) if handings else None
            returned, *carried = self._made_unseen(args, steps, result)
            made = tuple(dict.fromkeys((*returned, *(o for one in carried for o in one))))
            if all(o in run.unseen_since and run.unseen_since[o] >= before.clock for o in made):
                run.memos[asked.key] = Memo(frame, kept, result, steps, noted, handed, made, tuple(carried))
        return result

    def _before(self, asked: Asked) -> _Before:
        t, inside = self.run.trace, self.run.frame.inside_module
        return _Before(
            self.run.clock,
            (
                len(t.walks),
                len(t.marks),
                len(t.steps),
                len(t.given_away),
                0 if inside else len(t.readings) + len(t.aliases),
            ),
            (len(t.accumulations), len(t.growths), len(t.storings), len(t.alterations), len(t.handings)),
            events_at(asked.nodes),
            len(t.nodes),
        )

    def _left_something(
        self, before: _Before, asked: Asked, args: Arguments, first: int, reads: dict[Key, Any]
    ) -> bool:
        """Whether a call that began with identity ``first`` noted or changed anything that is not its own."""
        trace, peek = self.run.trace, self.run.s.peek
        if self._before(asked).events != before.events:
            return True
        sums, growths, storings, alterations, _ = before.counts
        grown = (*trace.accumulations[sums:], *trace.growths[growths:])
        return (
            any(a.carrier is None or a.carrier.owner < first for a in grown)
            or self._put_into_others(trace.storings[storings:], asked, args, first, reads)
            or any(self._is_older(a.value, before.clock) for a in trace.alterations[alterations:])
            or any(c[0] and c[0] < first and (c not in reads or peek(c) is not reads[c]) for c in self.run.written)
        )

    def _put_into_others(
        self, storings: Iterable[Storing], asked: Asked, args: Arguments, first: int, reads: dict[Key, Any]
    ) -> bool:
        """Whether anything was put into a container, or into elements of a tensor, that the call did not make."""
        tensors: list[Tensor] = []
        for storing in storings:
            if isinstance(storing.container, Tensor):
                tensors.append(storing.container)
            elif getattr(storing.container, "oid", 0) < first:
                return True
        if not tensors:
            return False
        there = self._memory_of_before(asked, [*args.all(), *_flat(v for c, v in reads.items() if c[0] < first)])
        # what is written to has the memory of what it was; data of which that is not followed may be anybody's
        return any(not tensor.bases or not there.isdisjoint(map(id, tensor.bases)) for tensor in tensors)

    def _memory_of_before(self, asked: Asked, there: Iterable[Value]) -> set[int]:
        """The identities of all memory that a call may have got: by its arguments and by what it read."""
        return {id(base) for t in tensors_in([*there, *self._elements_of(asked)]) for base in self.run.memory(t)}

    def _is_older(self, value: Value, clock: int) -> bool:
        """Whether what was changed in place has a graph of before, or shares its memory with other tensors."""
        aliased = isinstance(value, Tensor) and bool(value.aliases)
        return aliased or any(node.birth < clock for node in self.run.nodes_of(value))

    def _made_unseen(self, args: Arguments, steps: tuple[Step, ...], result: Value) -> list[tuple[Unseen, ...]]:
        """What may be graphs that code which cannot be seen made in a call: those that its result may carry, and those
        that each step may."""
        given = {id(o) for o in self.run.shadow_of(args.all())}
        shadows = [self.run.shadow_of([result]), *(tuple(o for n in s.nodes for o in n.shadow) for s in steps)]
        return [
            tuple(dict.fromkeys(o for o in shadow if isinstance(o, Unseen) and id(o) not in given))
            for shadow in shadows
        ]

    def _is_of_before(self, result: Value, asked: Asked, there: list[Value]) -> bool:
        """Whether a result is a tensor that was there before the call, or shares its memory."""
        memory = self._memory_of_before(asked, there)
        return any(
            tensor.aliases or not memory.isdisjoint(map(id, self.run.memory(tensor))) for tensor in tensors_in([result])
        ) or not set(asked.nodes).isdisjoint(nodes_in(result))

    def _elements_of(self, asked: Asked) -> list[Value]:
        return [one for container in asked.containers for one in self.run.elements(container)]

    def _cells_of(self, container: Sequence | Mapping) -> list[Any]:
        """The cells by which a container that is given to a call is told."""
        return [REST, ITEMS] if isinstance(container, Sequence) else self.run.mapping_keys(container)

    # functions that give the same result again

    def cache_of(self, definition: ast.AST) -> Unseen | None:
        """What stands for the results of a function whose decorator hands the same result out again."""
        if definition not in self.run.caches:
            again = any(self._may_repeat(d) for d in getattr(definition, "decorator_list", ()))
            self.run.caches[definition] = Unseen(UnseenKind.CALL, getattr(definition, "name", "")) if again else None
        return self.run.caches[definition]

    def _may_repeat(self, decorator: ast.expr) -> bool:
        """Whether a decorator may hand a former result out again: one that is not known to do otherwise."""
        value = self.run.values.get(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if isinstance(value, Library):
            path = canonical(value.path)
            return path in CACHING or path.partition(".")[0] not in PASSING_DECORATORS
        # one of the tree is run itself, and what it keeps is seen
        return isinstance(value, Unknown)

    def kept_result(self, value: Value, marker: Unseen) -> Value:
        """A result that later calls may give again."""
        for node in self.run.nodes_of(value):
            if not node.leaf:
                node.shadow = (marker, *node.shadow)
        if isinstance(value, Tensor):
            return replace(value, shadow=(marker, *value.shadow))
        if isinstance(value, Unknown):
            value.shadow = (marker, *value.shadow)
        if isinstance(value, Tuple):
            return Tuple(tuple(self.kept_result(item, marker) for item in value.items), value.names, value.closed)
        return value


def _flat(contents: Iterable[Any]) -> list[Value]:
    """The values in what cells hold."""
    return [
        one for held in contents for one in (held if isinstance(held, tuple) else (held,)) if isinstance(one, Value)
    ]
