"""What values hold: the elements of containers, the graph nodes in them, the parameters of modules.

All of it is asked of the state as it is now; nothing here adds to the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codemods.graph.model.kinds import SequenceKind
from codemods.graph.model.nodes import Node, Value
from codemods.graph.model.values import (
    NONE,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Method,
    Module,
    Namespace,
    Optimizer,
    Parameters,
    Partial,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    may_carry,
)
from codemods.graph.run.core import Core
from codemods.source.walking import names_in

ITEMS = "[items]"
REST = "[rest]"
"""Cells of containers; no attribute can be called so."""

RETURNED = "[returned]"
"""Where a generator keeps what it returns."""

SENT = "[sent]"
"""Where a generator keeps what stands for the values that are sent to it."""

KEYS = "[keys]"
"""Where a dict keeps those of its keys that are tensors with a history."""

BACKING = "[backing]"
"""Where an object of a class derived from a list or dict keeps what it holds as such."""

COUNTS = "[counts]"
"""Says of a dict that what is put in by ``update`` is added to what lies there."""

ANY = "*"
"""Where an object keeps what was put on it under a name, or in a way, that cannot be seen."""

GIVEN = "<models>"
"""Says of an unseen object that its own code got a model."""

_MAX_DEPTH = 4

_BARE = frozenset({Tensor, Unknown})
"""Values that carry a node themselves, if any."""
_PLAINLY = frozenset({Const, Plain, Library, Module, Function, Optimizer, Class})
"""Values that carry none and hold none that counts."""


class Contents(Core):
    """The part of the engine that looks into values."""

    # containers

    def new_sequence(
        self, items: list[Value], rest: Value | None = None, kind: SequenceKind = SequenceKind.LIST
    ) -> Sequence:
        """A fresh list, deque or set."""
        made = Sequence(self.new_oid(), kind)
        self.born[made.oid] = self.tick()
        self.s.set((made.oid, ITEMS), tuple(items))
        if rest is not None:
            self.s.set((made.oid, REST), rest)
        return made

    def new_mapping(self) -> Mapping:
        """A fresh dict."""
        made = Mapping(self.new_oid())
        self.born[made.oid] = self.tick()
        self.attributes[made.oid] = {}
        return made

    def elements(self, value: Value) -> list[Value]:
        """What is known to be in a container."""
        if isinstance(value, Tuple):
            return list(value.items)
        if isinstance(value, Sequence):
            items = self.s.get((value.oid, ITEMS)) or ()
            rest = self.s.get((value.oid, REST))
            return [*items, rest] if rest is not None else list(items)
        if isinstance(value, Mapping):
            found = [self.s.get((value.oid, key)) for key in (*self.mapping_keys(value), KEYS)]
            return [v for v in found if v is not None]
        if isinstance(value, Join):
            return [item for option in value.options for item in self.elements(option)]
        if isinstance(value, Namespace):
            return list(self.interpreter.named_in(value).values())
        if isinstance(value, Instance):
            inner = self.contained(value)
            return [] if inner is None else self.elements(inner)
        return []

    def apart(self, value: Value) -> tuple[list[Value], list[Value]]:
        """The same in two parts: what is there once each, and what stands for any number of elements."""
        holder = self.contained(value) or value
        rest = self.s.get((holder.oid, REST)) if isinstance(holder, (Sequence, Mapping)) else None
        several = [rest] if isinstance(rest, Value) else []
        return [item for item in self.elements(holder) if item is not rest], several

    def contained(self, value: Value) -> Value | None:
        """What an object of a class derived from a container holds as such, None for other objects."""
        if not isinstance(value, Instance) or not value.cls.container:
            return None
        if value.cls.container == "record":
            return Tuple(tuple(self.field(value, name) for name in value.cls.fields()))
        found = self.s.get((value.oid, BACKING))
        return found if isinstance(found, Value) else None

    def field(self, value: Instance, name: str) -> Value:
        """A field of an object, or what its class says of it."""
        found = self.s.get((value.oid, name))
        if isinstance(found, Value):
            return found
        return value.cls.find(name) or self.s.get((value.oid, ANY)) or NONE

    def cells_named(self, space: Namespace) -> dict[str, Value]:
        """What cells of a namespace hold, by its name."""
        names = self.attributes.get(space.oid)
        if space.of is None:
            names = {key[1]: None for key in self.s.cells() if key[0] == space.oid}
        found = {name: self.s.get((space.oid, name)) for name in names or () if isinstance(name, str)}
        return {name: value for name, value in found.items() if isinstance(value, Value) and name[:1] != "["}

    def mapping_keys(self, value: Mapping) -> list[object]:
        """The cells of a dict: (``key``, constant) each, and the rest."""
        return [*self.attributes.get(value.oid, ()), REST]

    def flat(self, value: Value | None) -> list[Value]:
        """The elements of a container, or the value itself where it is none or nothing is known of them."""
        if value is None:
            return []
        inner = self.elements(value)
        return inner or [value]

    def nodes_of(self, value: Value | None, depth: int = 0) -> list[Node]:
        """The graph nodes in a value, through containers."""
        # asked for nearly every value of a run: the commonest first, by class
        kind = value.__class__
        if kind is Tensor or kind is Unknown:
            return [value.node] if value.node is not None else []  # type: ignore[union-attr]
        if value is None or not may_carry(value):
            return []
        if depth > _MAX_DEPTH or kind is Namespace:
            return self._nodes_below(value)
        if isinstance(value, Join):
            return self._nodes_in(value.options, depth)
        if isinstance(value, (Tuple, Sequence, Mapping, Instance)):
            items = self.elements(value)
            self.spent += len(items) >> 2
            return self._nodes_in(items, depth)
        if isinstance(value, Parameters):
            return self.parameter_leaves(value.owner)
        if isinstance(value, Method):
            return self.nodes_of(value.receiver, depth + 1)
        if isinstance(value, Partial):
            return self._nodes_in(self.given_to(value), depth)
        return []

    def _nodes_in(self, values: Iterable[Value], depth: int) -> list[Node]:
        """The graph nodes in what a value at ``depth`` holds; most of it holds nothing, and is not asked."""
        found: list[Node] = []
        for value in values:
            if value.__class__ in _BARE:
                if value.node is not None:
                    found.append(value.node)
            elif value.__class__ not in _PLAINLY:
                found += self.nodes_of(value, depth + 1)
        return found

    def reach(self, values: Iterable[Value], *, asked: bool = False) -> list[Node]:
        """The graph nodes that code may come to which gets ``values``: through containers, attributes and closures.

        Parameters are none of them; tensors that were asked for their gradients are with ``asked``: their ``.grad`` may
        be read.
        """
        found: dict[Node, None] = {}
        seen: set[object] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            key = getattr(value, "oid", None) or id(value)
            if key in seen or isinstance(value, (Const, Plain)):
                continue
            seen.add(key)
            if value.node is not None and (not value.node.leaf or (asked and value.node.label == "input")):
                found[value.node] = None
            if isinstance(value, Join):
                stack.extend(value.options)
            elif isinstance(value, (Tuple, Sequence, Mapping, Namespace)):
                stack.extend(self.elements(value))
            elif isinstance(value, (Instance, Module, Unknown)):
                stack.extend(self._held_by(value))
            elif isinstance(value, Method):
                stack.append(value.receiver)
            elif isinstance(value, Partial):
                stack.extend((value.function, *value.args, *(given for _, given in value.kwargs)))
            elif isinstance(value, Function):
                stack.extend((*value.defaults, *(given for _, given in value.kw_defaults), *self._closed_over(value)))
        return list(found)

    def _held_by(self, value: Value) -> Iterator[Value]:
        yield from self.children_of(value)
        if isinstance(value, Instance) and (inner := self.contained(value)) is not None:
            yield inner
        if isinstance(value, Unknown):
            yield from value.members.values()
            for name in self.attributes.get(value.oid, ()):
                content = self.s.peek((value.oid, name))
                if isinstance(content, Value):
                    yield content

    def _closed_over(self, function: Function) -> Iterator[Value]:
        """What the frames around a function hold under names that it reads."""
        fid = function.closure
        names = function.file.once(names_in, function.definition) if fid else frozenset()
        while fid:
            for name in names:
                content = self.s.peek((fid, name))
                if isinstance(content, Value):
                    yield content
            fid = self.closures.get(fid, 0)

    def _nodes_below(self, value: Value) -> list[Node]:
        """The graph nodes in a value that lies deep, each container looked at once: it may hold itself."""
        found: dict[Node, None] = {}
        seen: set[tuple[type, int]] = set()
        stack = [value]
        while stack:
            one = stack.pop()
            if isinstance(one, (Sequence, Mapping, Instance, Namespace)):
                if (one.__class__, one.oid) in seen:
                    continue
                seen.add((one.__class__, one.oid))
            if isinstance(one, (Tensor, Unknown)):
                found.update([(one.node, None)] if one.node is not None else [])
            elif isinstance(one, Join):
                stack += one.options
            elif isinstance(one, Method):
                stack.append(one.receiver)
            elif isinstance(one, Parameters):
                found.update((leaf, None) for leaf in self.parameter_leaves(one.owner))
            else:
                stack += self.given_to(one) if isinstance(one, Partial) else self.elements(one)
        self.spent += len(seen) >> 2
        return list(found)

    @staticmethod
    def given_to(partial: Partial) -> list[Value]:
        """The arguments that a partial call has already."""
        return [*partial.args, *(value for _, value in partial.kwargs)]

    def parameter_leaves(self, owner: Value) -> list[Node]:
        """The leaves of all trainable parameters of a module, through its children."""
        raise NotImplementedError

    def children_of(self, owner: Value) -> Iterator[Value]:
        """The values in the attributes and elements of an object."""
        if isinstance(owner, Unknown):
            if owner.module is not None:
                yield owner.module
            return
        if not isinstance(owner, (Module, Instance)):
            return
        for name in list(self.attributes.get(owner.oid, ())):
            value = self.s.get((owner.oid, name))
            if isinstance(value, Value):
                yield value
        yield from self.s.get((owner.oid, ITEMS)) or ()
        rest = self.s.get((owner.oid, REST))
        if isinstance(rest, Value):
            yield rest
