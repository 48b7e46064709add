"""Turns of loops and comprehensions: as many as it needs to show what two in a row do to each other."""

from __future__ import annotations

import ast
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from codemods.graph.model.cells import Key
from codemods.graph.model.nodes import Unseen, Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.state import State, written_since
from codemods.graph.model.values import (
    Class,
    Const,
    Function,
    Instance,
    Join,
    Mapping,
    Method,
    Module,
    Partial,
    Plain,
    Sequence,
    Tensor,
    Tuple,
)
from codemods.graph.run.contents import ITEMS, REST
from codemods.graph.run.run import Run

MAX_TURNS = 4
"""How many turns of a loop are run at most: more than two where a turn walks what none before walked, or retains it."""


MAX_FILLING = 12
"""How many are run while each lets one more place hold a graph that held none, ``a, b, c = b, c, loss``, or leaves
something else that conditions may ask for, ``state = "warm"``."""

_DEEPEST = 3
"""How deep what a turn made anew is looked into for what conditions may ask for."""

_WITH_IDENTITY = (Instance, Sequence, Mapping)
_WithIdentity = Instance | Sequence | Mapping
_HOLDING = (*_WITH_IDENTITY, Tuple)


@dataclass
class _HandedOn:
    """What a turn hands on: the cells that hold something out of what they held, ``node = node.next``; those that hold
    what they held within something, ``node = (loss, node)``, with that; whether a cell holds a graph for the first
    time, which the next turn may hand on to another one; and what else now lies in cells by which the next turn may go
    another way."""

    down: dict[Key, None]
    grown: dict[Key, Value]
    filling: bool
    decided: dict[Key, frozenset[object]]


class Turns:
    """Runs turns, as many as it needs."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def run_all(
        self,
        loop: ast.AST,
        values: Iterable[Value],
        begin: Callable[[Value], None],
        body: Callable[[Value], list[State] | None],
        *,
        counted: bool,
    ) -> None:
        """Run the turns of a loop or comprehension: ``begin`` takes each of the ``values``, and then ``body``, which
        gives the states in which it went on to the next turn.

        More of them run while a turn walks what none before it walked, retains a graph, or hands on something that no
        turn handed on. A loop whose first turn steps over its backward takes a third turn to show what two walks in a
        row do, and so does one that comes back to a graph of two turns before. Not so where ``counted``: ``values`` are
        all that there are.
        """
        run = self.run
        turns = deque(values)
        walked: set[tuple[int, ...]] = set()
        oldest = run.oids
        decided: dict[Key, frozenset[object]] = {}
        known: set[frozenset[tuple[Key, frozenset[object]]]] = set()
        settled = 0
        listed = max(0, len(turns) - 2)
        turn = -1
        while turns:
            value = turns.popleft()
            turn += 1
            run.frame.loops.append((loop, turn))
            before = len(run.trace.walks)
            start = run.s
            run.s = start.fork(run.clock)
            begin(value)
            begun = written_since(run.s, start.log)
            continued = body(value) or []
            ends = ([] if run.dead else [run.s]) + continued
            run.frame.loops.pop()
            if not ends:
                run.dead = True
                break
            handed = None if counted else self._handed_on(start, ends, begun, oldest)
            nested = {} if counted or not turn else self._nested(start, ends, begun, oldest)
            run.meet(ends, start)
            for cell, below in nested.items():
                self._go_deeper(cell, below)
            filling = handed is not None and self._let_go_on(handed, loop, first=turn == 1)
            if handed is not None and handed.decided:
                # turns go through the same again once all that decides is what it was
                decided |= handed.decided
                now = frozenset(decided.items())
                filling = filling or now not in known
                settled = turn if turn and now not in known else settled
                known.add(now)
            made = run.trace.walks[before:]
            new = {tuple(id(p.node) for p in walk.place.chain()) for walk in made} - walked
            walked |= new
            # a loop around the one that walks takes one turn more, so that nests of loops do not take too many
            inner = [walk.place.turns()[-1][0] is loop for walk in made if walk.retains is True]
            # the same element once more would be walked twice without being there twice
            again = not run.nodes_of(value) and (any(inner) or (inner and turn < 2))
            if not turn or turns or counted:
                continue
            # an element that is walked must not be there again
            further = turn - listed < MAX_FILLING - 1 and not (made and run.nodes_of(value))
            most = min(settled + MAX_TURNS, MAX_FILLING)
            if ((new or again) and turn < most - 1) or (filling and further):
                turns.append(value)
            elif filling:
                run.left_out(run.frame.file.path, loop, f"what its turns hand on was followed for {turn + 1} of them")

    def _handed_on(self, start: State, ends: list[State], begun: dict[Key, None], oldest: int) -> _HandedOn:
        """What a turn that began with the memory ``start``, and by writing what has ``begun``, hands on to the next
        one; ``oldest`` is the last identity that was given before the loop."""
        found = _HandedOn({}, {}, filling=False, decided={})
        for end in ends:
            self.run.s = end
            for key in written_since(end, start.log):
                old, new = start.peek(key), end.peek(key)
                if new is old or key in begun:
                    continue
                if new is None or (old is None and not self._may_be_missed(key)):
                    continue
                look = self._decisive(new, end, oldest) if key[0] <= oldest else None
                if look is not None and not _alike(self._decisive(old, start, oldest), look):
                    found.decided[key] = found.decided.get(key, frozenset()) | {look}
                found.filling = found.filling or (old is not None and self._fuller(old, new))
                if not isinstance(old, Value) or not isinstance(new, Value):
                    continue
                if self._lies_in(new, old):
                    found.down[key] = None
                elif self._lies_in(old, new):
                    found.grown[key] = old
        return found

    def _let_go_on(self, handed: _HandedOn, loop: ast.AST, *, first: bool) -> bool:
        """Let what goes down, or has grown for the ``first`` time, go on for any number of turns; whether another turn
        may show more."""
        for key in handed.down:
            self.run.s.set(key, self._or_further_down(self.run.s.peek(key), loop))
        for key, old in handed.grown.items() if first else ():
            self._deepen(key, old, loop)
        return handed.filling or (first and bool(handed.grown))

    def _nested(self, start: State, ends: list[State], begun: dict[Key, None], oldest: int) -> dict[Key, Value]:
        """The cells by which what a turn made lies in what the one before it made, or the other way round, ``node[k] =
        {}; node = node[k]``: of the inner one, with what lies in the outer one there."""
        found: dict[Key, Value] = {}
        for end in ends:
            self.run.s = end
            for key in written_since(end, start.log):
                old, new = start.peek(key), end.peek(key)
                if new is old or key in begun or not isinstance(old, Value) or not isinstance(new, Value):
                    continue
                for one, other in itertools.product(self._made_since(old, oldest), self._made_since(new, oldest)):
                    for outer, inner in ((one, other), (other, one)):
                        name, below = self._way_down(outer, inner)
                        if below is not None:
                            found[inner.oid, name] = below
        return found

    def _made_since(self, value: Value, oldest: int) -> list[_WithIdentity]:
        """Containers and objects that may be a value and were made since an identity; what modules hold is followed as
        they are."""
        return [
            option
            for option in self.run.options(value)
            if isinstance(option, (Instance, Sequence, Mapping)) and option.oid > oldest and not _is_module(option)
        ]

    def _way_down(self, outer: _WithIdentity, inner: _WithIdentity) -> tuple[Any, Value | None]:
        """Under which name something is held that is, or leads to, another thing; with what lies there."""
        run = self.run
        for name in (ITEMS, REST, *run.attributes.get(outer.oid, ())):
            content = run.s.peek((outer.oid, name))
            for part in content if isinstance(content, tuple) else (content,):
                if isinstance(part, Value) and self._holds(part, inner):
                    return (name if isinstance(outer, Instance) else REST), part
        return None, None

    def _holds(self, value: Value, inner: _WithIdentity) -> bool:
        """Whether a value is, or leads to, a thing."""
        mine = {getattr(option, "oid", 0) for option in self.run.options(value)}
        return inner.oid in mine or inner.oid in self._inside(value)

    def _go_deeper(self, cell: Key, below: Value) -> None:
        """Let the innermost that turns have made stand for all that more of them would nest in it."""
        held = self.run.s.peek(cell)
        if isinstance(held, Value) and below in self.run.options(held):
            return
        self.run.s.set(cell, self.run.join(held, below) if isinstance(held, Value) else below)
        if cell[1] != REST:
            self.run.attributes.setdefault(cell[0], {})[cell[1]] = None

    def _fuller(self, old: object, new: object) -> bool:
        """Whether a cell holds a graph that held none, or one more of the elements of a list that did not grow."""
        if isinstance(old, tuple) and isinstance(new, tuple):
            return len(old) == len(new) and any(map(self._fuller, old, new))
        if not isinstance(old, Value) or not isinstance(new, Value):
            return False
        return self._has_graph(new) and not self._has_graph(old)

    def _has_graph(self, value: Value) -> bool:
        return any(not node.leaf for node in self.run.nodes_of(value))

    def _deepen(self, key: Key, old: Value, at: ast.AST) -> None:
        """Let the chain in a cell go on for as long as turns may have made it."""
        run = self.run
        new = run.s.peek(key)
        longer = self._or_further_down(old, at)

        def deeper(value: Value) -> Value:
            if value is old:
                return longer
            if isinstance(value, Tuple):
                return Tuple(tuple(map(deeper, value.items)), value.names, value.closed)
            return value

        if isinstance(new, Tuple):
            run.s.set(key, deeper(new))
        elif isinstance(new, _WITH_IDENTITY):
            for name in (ITEMS, *run.attributes.get(new.oid, ())):
                content = run.s.peek((new.oid, name))
                if content is old:
                    run.s.set((new.oid, name), longer)
                elif isinstance(content, tuple) and old in content:
                    run.s.set((new.oid, name), tuple(map(deeper, content)))

    def _or_further_down(self, value: Value, at: ast.AST) -> Value:
        """What comes out of itself in each turn may be anything in it: ``node = node.next``."""
        below = Tuple(tuple(Tensor(node) for node in self.run.reach([value])))
        further = self.run.taken(at, below)
        further.shadow = (*further.shadow, *(o for o in self.run.shadow_of([value]) if isinstance(o, Unseen)))
        return self.run.join(value, further)

    def _lies_in(self, inner: Value, outer: Value) -> bool:
        """Whether an object or container that leads to a graph lies in another one."""
        run = self.run
        wanted = {id(o) for o in run.options(inner) if isinstance(o, _HOLDING)}
        wanted |= {o.oid for o in run.options(inner) if isinstance(o, _WITH_IDENTITY)}
        if not wanted or not run.reach([inner]):
            return False
        return any(known in wanted for known in self._inside(outer))

    def _inside(self, value: Value) -> Iterator[int]:
        """The identities of all that lies in a value."""
        run = self.run
        seen: set[int] = set()
        stack = list(run.options(value))
        while stack:
            one = stack.pop()
            for part in (*run.elements(one), *run.children_of(one)):
                for option in run.options(part):
                    known = getattr(option, "oid", id(option))
                    yield known
                    if known not in seen and isinstance(option, _HOLDING):
                        seen.add(known)
                        stack.append(option)

    def _may_be_missed(self, key: Key) -> bool:
        """Whether code may ask if a cell holds anything: a key of a dict, an attribute of an object."""
        return isinstance(key[1], tuple) or key[0] in self.run.instances

    def _decisive(self, content: object, state: State, oldest: int, depth: int = 0) -> object:
        """What conditions and calls may tell of what a cell holds, by which these go another way; of what was made
        since the identity ``oldest``, by what is in it."""

        kind = content.__class__
        if kind is Tensor or kind is Plain or content is None:
            return None
        if isinstance(content, Const):
            return type(content.value), content.value

        def inside(part: object) -> object:
            return self._decisive(part, state, oldest, depth + 1)

        if isinstance(content, tuple):
            return tuple(map(inside, content))
        if isinstance(content, Tuple):
            return (bool(content.items), *(map(inside, content.items) if depth <= _DEEPEST else ()))
        if isinstance(content, Join):
            return frozenset(map(inside, content.options))
        if isinstance(content, Function):
            return content.definition
        if isinstance(content, Class):
            return _class_of(content.info, oldest)
        if isinstance(content, Method):
            return inside(content.receiver), inside(content.function), content.name
        if isinstance(content, Partial):
            return inside(content.function), inside(content.args)
        if not isinstance(content, (*_WITH_IDENTITY, Module)):
            return None
        if content.oid <= oldest:
            return content.oid
        sort = _class_of(content.cls, oldest) if isinstance(content, Instance) else kind
        if depth > _DEEPEST:
            return sort
        names = (ITEMS, *self.run.attributes.get(content.oid, ()))
        return sort, *((name, inside(state.peek((content.oid, name)))) for name in names)


def _is_module(value: _WithIdentity) -> bool:
    return isinstance(value, Instance) and value.cls.is_module


def _class_of(info: ClassInfo, oldest: int) -> object:
    """A class, or what it is called where each turn makes another one."""
    return info if info.oid <= oldest else info.name


def _alike(old: object, new: object) -> bool:
    """Whether conditions come out the same for things of these looks: a list may have got longer."""
    if isinstance(old, tuple) and isinstance(new, tuple):
        return len(new) >= len(old) and all(map(_alike, old, new))
    if isinstance(old, frozenset) and isinstance(new, frozenset):
        # one of several lists may have
        return all(any(_alike(one, other) for other in new) for one in old) and all(
            any(_alike(one, other) for one in old) for other in new
        )
    return old == new
