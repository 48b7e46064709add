"""What objects, and things that cannot be seen, hold: code that gets them may compute with it."""

from __future__ import annotations

from collections.abc import Iterable

from codemods.graph.model.nodes import Node, Value
from codemods.graph.model.values import (
    Const,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Method,
    Module,
    Optimizer,
    Parameters,
    Partial,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.run.contents import ANY, BACKING, Contents

_BARE = frozenset({Tensor, Const, Plain, Library, Module, Function, Parameters, Optimizer})
"""Values that hold no others, or only what their users ask them for."""


class Holding(Contents):
    """The part of the engine that knows what lies in things that cannot be seen."""

    def put_into(self, holder: Unknown, name: str, value: Value) -> None:
        """Keep ``value`` as an attribute, or an element, of something that cannot be seen."""
        self.s.set((holder.oid, name), value)
        self.attributes.setdefault(holder.oid, {})[name] = None
        if self.nodes_of(value):
            self.holders.add(_outermost(holder).oid)

    def held_in(self, values: Iterable[Value]) -> list[Node]:
        """The graphs, not freed yet, that were put into objects and into things that cannot be seen: code that gets
        such a thing may compute with them."""
        found: dict[Node, None] = {}
        stack = [value for value in values if value.__class__ not in _BARE]
        seen: set[int] = set()
        parts: set[int] = set()
        while stack:
            holder = stack.pop()
            if holder.__class__ in _BARE:
                continue
            if isinstance(holder, Unknown) and holder.oid not in parts:
                holder = _outermost(holder)
                if holder.oid not in self.holders:
                    continue
            oid = getattr(holder, "oid", 0)
            if oid in seen:
                continue
            inside: list[Value] = []
            if isinstance(holder, Unknown):
                inside = self._kept_on(oid)
                stack += holder.members.values()
                parts.update(member.oid for member in holder.members.values())
            elif isinstance(holder, Instance):
                # the parts of a module are its own: code that gets it calls it
                inside = [v for v in self._kept_on(oid) if not (holder.cls.is_module and self.is_module(v))]
            elif isinstance(holder, Method):
                stack.append(holder.receiver)
            elif isinstance(holder, Partial):
                stack += [holder.function, *self.given_to(holder)]
            elif isinstance(holder, Join):
                stack += holder.options
            elif isinstance(holder, (Tuple, Sequence, Mapping)):
                stack += self.elements(holder)
            if oid:
                seen.add(oid)
            for value in inside:
                found.update((n, None) for n in self.nodes_of(value) if not n.walks and not n.leaf)
            stack += inside
        return list(found)

    def _kept_on(self, oid: int) -> list[Value]:
        """What an object holds under its names."""
        found = [self.s.get((oid, name)) for name in (*self.attributes.get(oid, ()), BACKING, ANY)]
        return [value for value in found if isinstance(value, Value)]


def _outermost(thing: Unknown) -> Unknown:
    while thing.owner is not None:
        thing = thing.owner
    return thing
