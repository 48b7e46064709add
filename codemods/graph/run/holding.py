"""What objects, and things that cannot be seen, hold: code that gets them may compute with it."""

from __future__ import annotations

from collections.abc import Iterable

from codemods.graph.model.kinds import UnseenKind
from codemods.graph.model.nodes import Node, Unseen, Value
from codemods.graph.model.values import (
    TRUE,
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
    options_of,
)
from codemods.graph.run.contents import ANY, BACKING, GIVEN
from codemods.graph.run.leaves import Leaves

_BARE = frozenset({Tensor, Const, Plain, Library, Module, Function, Parameters, Optimizer})
"""Values that hold no others, or only what their users ask them for."""
_WITHOUT_MODEL = _BARE - {Module}
"""Those that are no module, either."""


class Holding(Leaves):
    """The part of the engine that knows what lies in things that cannot be seen."""

    def put_into(self, holder: Unknown, name: str, value: Value) -> None:
        """Keep ``value`` as an attribute, or an element, of something that cannot be seen."""
        self.s.set((holder.oid, name), value)
        self.attributes.setdefault(holder.oid, {})[name] = None
        if self.nodes_of(value):
            outermost = _outermost(holder)
            self.holders.add(outermost.oid)
            if any(isinstance(o, Unseen) and o.kind is UnseenKind.LOST for o in outermost.shadow):
                # it is one of the things that are seen, and nobody can say which
                self.trace.complete = False

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
                # who gets an object knows its parameters; an input is there to be computed with
                graphs = [n for n in self.nodes_of(value) if not n.walks]
                found.update((n, None) for n in graphs if not n.leaf or n.label == "input")
            stack += inside
        return list(found)

    def give_model(self, thing: Value) -> None:
        """Note that code of ``thing``, which cannot be seen, got a model: it may keep it there."""
        for option in options_of(thing):
            if isinstance(option, (Unknown, Instance)):
                self.s.set((option.oid, GIVEN), TRUE)

    def brings_model(self, values: Iterable[Value]) -> bool:
        """Whether code that gets ``values`` comes to a module that may have parameters through them."""
        stack, seen = list(values), set[int]()
        while stack:
            value = stack.pop()
            if value.__class__ in _WITHOUT_MODEL:
                continue
            if self.is_module(value):
                if not isinstance(value, Module) or any(True for _ in self._all_leaves(value, set())):
                    return True
            elif isinstance(value, Join):
                stack += value.options
            elif isinstance(value, Partial):
                stack += [value.function, *self.given_to(value)]
            elif isinstance(value, Method):
                # one of the tree is run with what it may get: its results tell what it computes with
                runs = value.function is None or self.is_module(value.receiver)
                stack += [value.receiver] if runs and not _is_setting(value) else []
            elif isinstance(value, Tuple):
                stack += value.items
            elif isinstance(value, (Sequence, Mapping, Instance, Unknown)):
                if value.oid in seen:
                    continue
                seen.add(value.oid)
                if self._got_model(value):
                    return True
                if isinstance(value, (Sequence, Mapping)):
                    stack += self.elements(value)
                    continue
                stack += self._kept_on(value.oid)
        return False

    def _got_model(self, thing: Value) -> bool:
        """Whether it, or what it is a part of, was given a model."""
        holder: Value | None = thing
        while holder is not None:
            if self.s.get((getattr(holder, "oid", 0), GIVEN)) is not None:
                return True
            holder = holder.owner if isinstance(holder, Unknown) else None
        return False

    def _kept_on(self, oid: int) -> list[Value]:
        """What an object holds under its names."""
        found = [self.s.get((oid, name)) for name in (*self.attributes.get(oid, ()), BACKING, ANY)]
        return [value for value in found if isinstance(value, Value)]


def _is_setting(method: Method) -> bool:
    """Whether it is an attribute of a layer of torch that runs none of it: how large it is, how it was made."""
    known = isinstance(method.receiver, Module) and bool(method.receiver.name)
    return known and method.name not in ("forward", "__call__")


def _outermost(thing: Unknown) -> Unknown:
    while thing.owner is not None:
        thing = thing.owner
    return thing
