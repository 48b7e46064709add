"""What happens to values: who reads, stores and changes them, and which of them code gets that cannot be seen.

Rules ask a node for its uses, stores and escapes; this is where they are noted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from operator import is_, is_not
from typing import Any

from codemods.graph.model.cells import Key
from codemods.graph.model.facts.libraries import is_logging
from codemods.graph.model.kinds import CarrierKind, Marked, NodeKind, UseKind
from codemods.graph.model.nodes import Carrier, Node, Use, Value
from codemods.graph.model.state import FOLLOWED
from codemods.graph.model.trace import Reading
from codemods.graph.model.values import (
    DATA,
    INDEX,
    Join,
    Mapping,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    may_carry,
)
from codemods.graph.run.contents import ITEMS, REST
from codemods.graph.run.joins import Joins

_FOR_PEOPLE = (UseKind.FORMAT, UseKind.TRUTH, UseKind.UNSEEN_CALL)
"""Uses of a text that are no look into it: code that cannot be seen writes or prints what it gets."""


class Uses(Joins):
    """The part of the engine that notes what becomes of values."""

    # readers and carriers

    def use(self, value: Value | None, kind: UseKind, at: ast.AST, name: str = "") -> None:
        """Record that a value was read by something that makes no node of it: the method or function ``name``."""
        if value.__class__ is Plain and value.shows and kind not in _FOR_PEOPLE:
            self.looked_into(value, at, name)
        if not may_carry(value) and value.__class__ is not Tensor and value.__class__ is not Unknown:
            return
        assert value is not None
        for node in self.nodes_of(value):
            node.uses.append(Use(kind, self.place(at), name))
        for origin in self.shadow_of([value]):
            if isinstance(origin, Node):
                origin.uses.append(Use(kind, self.place(at), name, detached=True))

    def text_of(self, made: Value, *parts: Value | None) -> Value:
        """The text ``made`` of other values, as ``str`` makes it of each: it tells of their graphs."""
        shown = {n for part in parts for n in self.nodes_of(part)}
        shown.update(n for part in parts if part for o in self.options(part) if isinstance(o, Plain) for n in o.shows)
        return made if not shown or not isinstance(made, Plain) else replace(made, shows=made.shows | shown)

    def looked_into(self, text: Value, at: ast.AST, name: str = "") -> None:
        """Record that code looks into a text, which is another where a tensor has no graph; logging does not."""
        if isinstance(text, Plain) and not is_logging(name):
            for node in text.shows:
                node.uses.append(Use(UseKind.HISTORY_READ, self.place(at), name))

    def refused(self, value: Value, at: ast.AST) -> None:
        """Record that something is done here that torch refuses for a tensor with a history, if code counts on it."""
        if self.s.grad is not False and (self.trying or self.catching) and self.nodes_of(value):
            self.mark(Marked.ERROR_CAUGHT, at, self.nodes_of(value))
        if self.catching:
            self.use(value, UseKind.REFUSED, at)

    def leaf_refused(self, value: Value, at: ast.AST) -> None:
        """The same where it is changed in place: torch refuses that for a leaf that asks for gradients."""
        bases = value.bases if isinstance(value, Tensor) else ()
        if self.s.grad is not False and any(node.leaf for one in (value, *bases) for node in self.nodes_of(one)):
            self.refused(value, at)

    def stored(self, value: Value | None, carrier: Carrier, at: ast.AST) -> None:
        """Record that a carrier now holds a value."""
        for node in self.nodes_of(value):
            node.stores.append((carrier, self.place(at)))

    def _left_by_a_step(self, nodes: list[Node]) -> bool:
        """Whether one of some nodes was made behind the backward of an earlier turn."""
        now = (*self.frame.around, *self.frame.loops)
        ended = self.trace.walks[-1].place.turns() if self.trace.walks else ()
        for node in nodes if ended else ():
            for (loop, turn), (other, later) in zip(node.place.turns(), now, strict=False):
                if loop is not other:
                    break
                if turn != later:
                    if (loop, turn) in ended:
                        return True
                    break
        return False

    def read(self, value: Value | None, carrier: Carrier, at: ast.AST) -> None:
        """Record that a carrier was read; as a reading of the trace where it holds nodes which a backward has been
        through, or may be in a later step."""
        nodes = self.nodes_of(value)
        if not nodes or value is None:
            return
        place = self.place(at)
        for node in nodes:
            if not node.leaf:
                node.reads.append((carrier, place))
        containers = self.containers_in(value)
        walked = self.trace.walks[-1].place.clock if self.trace.walks else -1
        outlives = (
            containers
            or carrier.kind in (CarrierKind.ATTRIBUTE, CarrierKind.ELEMENT)
            or any(n.birth < walked for n in nodes)
            or self._left_by_a_step(nodes)
        )
        if outlives and not all(n.leaf for n in nodes):
            self.trace.readings.append(Reading(carrier, place, value, tuple(nodes), containers))

    def containers_in(self, value: Value, depth: int = 0) -> frozenset[int]:
        """The identities of the lists and dicts in a value, itself among them."""
        if depth > 3:
            return frozenset()
        if isinstance(value, (Sequence, Mapping)):
            inner = (self.containers_in(v, depth + 1) for v in self.elements(value))
            return frozenset({value.oid}).union(*inner)
        if isinstance(value, Tuple):
            return frozenset().union(*(self.containers_in(v, depth + 1) for v in value.items))
        if isinstance(value, Join):
            return frozenset().union(*(self.containers_in(v, depth + 1) for v in value.options))
        return frozenset()

    def replace_everywhere(self, old: Value, new: Value) -> list[Key]:
        """Something was changed in place: whatever holds ``old`` holds ``new`` now. Returns the cells that do."""
        return self._replace([old], lambda value: new if value is old else value)

    def write_through(self, old: Tensor, new: Tensor, at: ast.AST) -> None:
        """A tensor was changed in place into ``new``: whatever holds it holds that now, and what shares its memory may
        depend on what was written."""
        memory = self.memory(old)
        if not memory:
            return
        mine = frozenset(map(id, memory))
        changed: dict[int, Tensor] = {id(old): replace(new, bases=memory)}

        def rewritten(value: Value) -> Value:
            if not isinstance(value, Tensor) or value is new:
                return value
            if id(value) not in mine and mine.isdisjoint(map(id, value.bases)):
                return value
            if id(value) not in changed:
                node = self.node(
                    at, NodeKind.OP, [*self.nodes_of(value), *self.nodes_of(new)], saves=False, certain=False
                )
                changed[id(value)] = replace(value, node=node, either=(), bases=self.memory(value))
            return changed[id(value)]

        self._replace(memory, rewritten)

    def _replace(self, wanted: Collection[Value], change: Callable[[Value], Value]) -> list[Key]:
        """Change values wherever they are held: those that are ``wanted``, and what shares memory with one. Returns the
        cells that hold something else now."""

        def replaced(value: Value) -> Value:
            if isinstance(value, Tuple):
                items = tuple(replaced(v) for v in value.items)
                return Tuple(items, value.names, value.closed) if any(map(is_not, items, value.items)) else value
            if isinstance(value, Join):
                options = tuple(change(option) for option in value.options)
                return Join(options) if any(map(is_not, options, value.options)) else value
            return change(value)

        written: list[Key] = []
        for key in self._holders(wanted):
            content = self.s.here(key)
            if isinstance(content, tuple):
                changed: Any = tuple(replaced(v) if isinstance(v, Value) else v for v in content)
                if any(a is not b for a, b in zip(changed, content, strict=True)):
                    self.s.set(key, changed)
                    written.append(key)
            else:
                changed = replaced(content)
                if changed is not content:
                    self.s.set(key, changed)
                    written.append(key)
        return written

    def _holders(self, wanted: Collection[Value]) -> list[Key]:
        """The cells that hold one of ``wanted``, or what shares memory with one."""
        for key, content in self.s.written:
            for identity in self._identities_written(key, content):
                self.cells_with.setdefault(identity, {})[key] = None
        self.s.written.clear()
        asked = frozenset(map(id, wanted))
        # whatever was written once: by now, or on this path, there may be something else
        cells: Iterable[Key] = dict.fromkeys(key for v in wanted for key in self.cells_with.get(id(v), ()))
        if any(value.__class__ not in FOLLOWED for value in wanted):
            cells = self.s.cells()
        found = ((key, self.s.here(key)) for key in cells)
        return [
            key for key, content in found if content is not None and not asked.isdisjoint(self._identities(content))
        ]

    def _identities_written(self, key: Key, content: Any) -> Iterable[int]:
        """The identities of what was written into a cell; of a list that grew, of what is new in it."""
        if not isinstance(content, tuple):
            return self._identities(content)
        before = self.lists_written.get(key, ())
        self.lists_written[key] = content
        grown = len(content) >= len(before) and all(map(is_, before, content))
        new = content[len(before) :] if grown else content
        return [identity for v in new if isinstance(v, Value) for identity in self._identities(v)]

    def _identities(self, content: Any) -> frozenset[int]:
        """The identities of what a cell holds, and of what its tensors share memory with."""
        known = self.identities.get(id(content))
        if known is not None:
            return known[1]
        if isinstance(content, tuple):
            found = frozenset[int]().union(*(self._identities(v) for v in content if isinstance(v, Value)))
        elif isinstance(content, (Tuple, Join)):
            inside = content.items if isinstance(content, Tuple) else content.options
            found = frozenset({id(content)}).union(*(self._identities(v) for v in inside))
        else:
            found = frozenset({id(content), *map(id, content.bases if isinstance(content, Tensor) else ())})
        # kept with what it tells of: an identity is free again when its owner is gone
        self.identities[id(content)] = (content, found)
        return found

    def asked(self, old: Tensor | Unknown, new: Tensor, at: ast.AST) -> None:
        """Gradients were asked for of a tensor: by whatever name or container it is read, it is the leaf ``new`` now.

        Where branches met, it is one of several: each of these may be the leaf.
        """
        written: dict[Key, None] = {}
        for one in (old, *(old.either if isinstance(old, Tensor) else ())):
            if one is not DATA and one is not INDEX:
                other = new if one is old else self.join(one, new)
                written |= dict.fromkeys(self.replace_everywhere(one, other))
        for owner, name in written:
            if name in (ITEMS, REST) or isinstance(name, tuple):
                self.stored(new, Carrier(CarrierKind.HELD, owner, ""), at)
            elif owner in self.attributes:
                self.stored(new, Carrier(CarrierKind.ATTRIBUTE, owner, str(name)), at)
            elif owner == self.frame.module_globals:
                self.stored(new, Carrier(CarrierKind.GLOBAL, owner, str(name)), at)
