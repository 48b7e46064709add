"""What loops, comprehensions and unpacking see of a value: its first element, and one of the others."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import MODULE_CONTAINERS
from codemods.graph.model.kinds import CarrierKind, PlainKind, SequenceKind, UnseenKind
from codemods.graph.model.nodes import Carrier, Unseen, Value
from codemods.graph.model.values import (
    ARRAY,
    NUMBER,
    TEXT,
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
    Parameters,
    Partial,
    Plain,
    Sequence,
    Tensor,
    TreeModule,
    Tuple,
    Unknown,
)
from codemods.graph.python.attribute_writes import AttributeWrites
from codemods.graph.python.deferred import later
from codemods.graph.python.enumerations import members_of
from codemods.graph.run.contents import ITEMS, KEYS, REST

_TOLD_APART = 3
"""So many elements are gone through one by one; of more, the first and one of the others."""


class Iteration(AttributeWrites):
    """The part of the engine that goes through values."""

    def iterate(self, value: Value, at: ast.AST) -> list[Value]:
        """The values that a loop over ``value`` sees in its two turns: the first element, and one of the others."""
        turns = _TURNS.get(value.__class__)
        return turns(self, value, at) if turns is not None else [Tensor(None), Tensor(None)]

    def is_counted(self, value: Value) -> bool:
        """Whether :meth:`iterate` gives all that a loop over ``value`` goes through, and nothing for many."""
        if isinstance(value, Join):
            return all(map(self.is_counted, value.options))
        if isinstance(value, Tuple):
            return len(value.items) <= _TOLD_APART
        if isinstance(value, Class):
            return 0 < len(members_of(value)) <= _TOLD_APART and value.info.of_metaclass("__iter__") is None
        if isinstance(value, Sequence):
            few = len(self.run.s.get((value.oid, ITEMS)) or ()) <= _TOLD_APART
            known = value.oid not in self.run.uncounted and value.oid not in self.run.repeated
            listed = value.kind is not SequenceKind.GENERATOR and self.run.s.get((value.oid, REST)) is None
            return few and known and listed
        return isinstance(value, Const) and value.value is None

    def counted_as(self, made: Sequence, *sources: Value) -> Sequence:
        """``made`` out of ``sources``: known as they are, and what is put in may come out turns later."""
        for source in sources:
            if not self.is_counted(source):
                self.run.uncounted.add(made.oid)
            if isinstance(source, Sequence) and source.oid in self.run.repeated:
                self.run.repeated.add(made.oid)
        return made

    def _turns_of_list(self, value: Sequence, at: ast.AST) -> list[Value]:
        items = list(self.run.s.get((value.oid, ITEMS)) or ())
        rest = self.run.s.get((value.oid, REST))
        if value.kind is SequenceKind.TURNS and len(items) == 2:
            return items
        if value.kind is SequenceKind.MODULES:
            return [*items, *([rest] if rest is not None else [])]
        if rest is not None:
            items += [rest, rest]
        items += later(self.run, value, at)
        for item in items:
            self.run.read(item, Carrier(CarrierKind.ELEMENT, value.oid, ""), at)
        return self._two(items)

    def _turns_of_dict(self, value: Mapping, at: ast.AST) -> list[Value]:
        keys = [k for k in self.run.mapping_keys(value) if self.run.s.get((value.oid, k)) is not None]
        found: list[Value] = [Const(k[1]) for k in keys if isinstance(k, tuple)]
        if isinstance(tensors := self.run.s.get((value.oid, KEYS)), Value):
            return [tensors, tensors]
        return self._two(found) if found else [self.run.unknown("key", data=True)] * 2

    def _turns_of_each(self, value: Join, at: ast.AST) -> list[Value]:
        per_option = [self.iterate(o, at) for o in value.options if not isinstance(o, (Const,))]
        per_option = [turns for turns in per_option if turns]
        result = []
        for i in range(max(map(len, per_option), default=0)):
            joined: Value | None = None
            for turns in per_option:
                item = turns[min(i, len(turns) - 1)]
                joined = item if joined is None else self.run.join(joined, item)
            assert joined is not None
            result.append(joined)
        return result

    def _turns_of_module(self, value: Module, at: ast.AST) -> list[Value]:
        if value.name in ("ModuleDict", "ParameterDict"):
            return [TEXT, TEXT]
        if value.within is not None:
            # what unseen code made of a module may hold anything
            return [self.run.lost("layer", UnseenKind.CALL), self.run.lost("layer", UnseenKind.CALL)]
        if not value.name and value.leaf is not None:
            # parts of a module that cannot be seen
            return [Module(self.run.new_oid(), "", value.leaf) for _ in range(2)]
        if value.name not in ("ModuleList", "Sequential", "ParameterList"):
            return [Tensor(None), Tensor(None)]
        items = list(self.run.s.get((value.oid, ITEMS)) or ())
        rest = self.run.s.get((value.oid, REST))
        if not items and rest is None:
            # filled in a way that was not followed
            return [self.run.lost("layer", UnseenKind.CALL), self.run.lost("layer", UnseenKind.CALL)]
        return self._two([*items, *([rest, rest] if rest is not None else [])])

    def _turns_of_parameters(self, value: Parameters, at: ast.AST) -> list[Value]:
        element = Parameters(value.owner, element=True)
        if not value.named:
            return [element, element]
        owner = getattr(value.owner, "oid", 0)
        return [Tuple((self.count(turn, at, owner) if owner else TEXT, element)) for turn in range(2)]

    def _turns_of_plain(self, value: Plain, at: ast.AST) -> list[Value]:
        if value.kind is PlainKind.RANGE and value.turn == 0:
            return [self.count(turn, at) for turn in range(2)]
        self.run.looked_into(value, at)
        return [ARRAY if value.kind is PlainKind.ARRAY else NUMBER] * 2

    def count(self, turn: int, at: ast.AST, owner: int = 0) -> Plain:
        """The number of a turn of what is gone through at ``at``, the same whenever that is; or what an ``owner`` of
        parameters calls that of the turn."""
        kind = PlainKind.TEXT if owner else PlainKind.NUMBER
        return self.run.counts.setdefault((at, owner, turn), Plain(kind, turn=turn, counts=(at, owner)))

    def _turns_of_const(self, value: Const, at: ast.AST) -> list[Value]:
        if isinstance(value.value, str) and len(value.value) >= 1:
            return [TEXT, TEXT]
        return [NUMBER, NUMBER]

    def _turns_of_call(self, value: Method | Partial, at: ast.AST) -> list[Value]:
        return [self.run.taken(at, value), self.run.taken(at, value)]

    def _turns_of_tensor(self, value: Tensor, at: ast.AST) -> list[Value]:
        if value.node is None:
            return [Tensor(None, index=value.index, shadow=value.shadow, aliases=value.aliases)] * 2
        return [self.run.sharing(value, self.run.tensor_op(at, "getitem", [value], saves=False)) for _ in range(2)]

    def _turns_of_unknown(self, value: Unknown, at: ast.AST) -> list[Value]:
        run = self.run
        if value.node is not None:
            return [run.unknown("item", run.part(at, value, "item")) for _ in range(2)]
        stored = run.s.get((value.oid, "[]"))
        if isinstance(stored, Value):
            return [stored, stored]
        if run.held_in([value]):
            return [run.taken(at, value), run.taken(at, value)]
        first, second = run.unknown("item", data=True), run.unknown("item", data=True)
        # an argument that is gone through is a loader most often; what an unseen call made need not be
        first.shadow = tuple(o for o in value.shadow if isinstance(o, Unseen) and o.kind is UnseenKind.CALL)
        second.shadow = first.shadow
        return [first, second]

    def _turns_of_class(self, value: Class, at: ast.AST) -> list[Value]:
        member = value.info.of_metaclass("__iter__")
        if isinstance(member, Function):
            return self.iterate(self.call_function(member, Arguments(), at, receiver=value), at)
        return self._two(members_of(value)) or [Tensor(None), Tensor(None)]

    def _turns_of_name(self, value: Library | TreeModule, at: ast.AST) -> list[Value]:
        return [self.run.unknown("item", data=True), self.run.unknown("item", data=True)]

    def _turns_of_object(self, value: Instance, at: ast.AST) -> list[Value]:
        for name in ("__iter__", "__aiter__", "__next__", "__anext__", "__getitem__"):
            member = value.cls.find(name)
            if isinstance(member, Function):
                args = Arguments(None, [NUMBER] if name == "__getitem__" else [])
                got = self.call_function(member, args, at, receiver=value)
                if name not in ("__iter__", "__aiter__"):
                    return [got, got]
                if got is value or isinstance(got, Instance):
                    turned = got if isinstance(got, Instance) else value
                    following = turned.cls.find("__next__" if name == "__iter__" else "__anext__")
                    if isinstance(following, Function):
                        item = self.call_function(following, Arguments(), at, receiver=turned)
                        return [item, item]
                    return [self.handed_out(turned, at)] * 2
                return self.iterate(got, at)
        inner = self.run.contained(value)
        if inner is None and value.cls.layer in MODULE_CONTAINERS:
            inner = self.torch.layer_of(value)
        if inner is not None:
            return self.iterate(inner, at)
        items = self.run.s.get((value.oid, ITEMS))
        if items:
            return self._two(list(items))
        return [self.handed_out(value, at), self.handed_out(value, at)]

    def handed_out(self, value: Value, at: ast.AST) -> Value:
        """An element of something that is gone through in a way that is not followed: what lies in it, else data."""
        run = self.run
        if run.nodes_of(value) or run.held_in([value]):
            return run.taken(at, value)
        made = run.unknown("item", data=True)
        if run.brings_model([value]):
            run.give_model(made)
        made.shadow = tuple(
            o for o in run.shadow_of([value]) if isinstance(o, Unseen) and o.kind is not UnseenKind.ARGUMENT
        )
        return made

    def _two(self, items: list[Value]) -> list[Value]:
        if len(items) <= _TOLD_APART:
            return items
        last = items[1]
        for item in items[2:]:
            last = self.run.join(last, item)
        return [items[0], last]

    def columns(self, value: Value, count: int, starred: int | None, at: ast.AST) -> list[Value]:
        """What ``value`` gives each of ``count`` targets; the one at ``starred`` takes a list."""
        if isinstance(value, Instance) and value.cls.find("__iter__") is None:
            value = self.run.contained(value) or value
        if isinstance(value, Join):
            joined = self._columns_of_each(value, count, starred, at)
            if joined is not None:
                return joined
        items = self._all_items(value)
        spread = self._spread(items, count, starred) if items is not None else None
        if spread is not None:
            if starred is not None and isinstance(others := spread[starred], Sequence):
                self.counted_as(others, value)
            return spread
        if isinstance(value, (Plain, Const)):
            return [value if isinstance(value, Plain) else NUMBER] * count
        if isinstance(value, Tensor):
            if value.node is None:
                return [Tensor(None, index=value.index, shadow=value.shadow)] * count
            return [self.run.tensor_op(at, "getitem", [value], saves=False) for _ in range(count)]
        if isinstance(value, Unknown):
            return self._columns_of_unknown(value, count, at)
        turns = self.iterate(value, at)
        if turns:
            found = [turns[min(i, len(turns) - 1)] for i in range(count)]
            if starred is not None:
                found[starred] = self.run.new_sequence([], rest=self.run.one_of(turns))
            return found
        return [self.run.lost() for _ in range(count)]

    def _all_items(self, value: Value) -> list[Value] | None:
        """The elements of a container, if each is known by its place; else None."""
        if isinstance(value, Tuple):
            return list(value.items)
        if not isinstance(value, Sequence) or value.kind in (SequenceKind.TURNS, SequenceKind.GENERATOR):
            return None
        return list(self.run.s.get((value.oid, ITEMS)) or ()) if self.run.s.get((value.oid, REST)) is None else None

    def _spread(self, items: list[Value], count: int, starred: int | None) -> list[Value] | None:
        """``items`` spread over targets; where their numbers differ, each may be any. None where there are too few."""
        if starred is None and len(items) == count:
            return items
        if starred is not None and len(items) >= count - 1:
            tail = count - starred - 1
            middle = items[starred : len(items) - tail]
            return [*items[:starred], self.run.new_sequence(middle), *items[len(items) - tail :]]
        one = self.run.one_of(items)
        return None if one is None else [one] * count

    def _columns_of_each(self, value: Join, count: int, starred: int | None, at: ast.AST) -> list[Value] | None:
        per_option = [
            self.columns(o, count, starred, at) for o in value.options if not (isinstance(o, Const) and o.value is None)
        ]
        if not per_option:
            return None
        joined = per_option[0]
        for other in per_option[1:]:
            joined = [self.run.join(a, b) for a, b in zip(joined, other, strict=True)]
        return joined

    def _columns_of_unknown(self, value: Unknown, count: int, at: ast.AST) -> list[Value]:
        if value.node is not None:
            return [self.run.unknown("item", self.run.part(at, value, f"item {i}")) for i in range(count)]
        if not value.data:
            return [self.unknown_attribute(value, f"[{i}]", at) for i in range(count)]
        return [self.handed_out(value, at) for _ in range(count)]


_TURNS: dict[type[Value], Callable[[Iteration, Any, ast.AST], list[Value]]] = {
    Tuple: lambda self, value, at: self._two(list(value.items)),
    Sequence: Iteration._turns_of_list,
    Mapping: Iteration._turns_of_dict,
    Join: Iteration._turns_of_each,
    Module: Iteration._turns_of_module,
    Parameters: Iteration._turns_of_parameters,
    Plain: Iteration._turns_of_plain,
    Const: Iteration._turns_of_const,
    Instance: Iteration._turns_of_object,
    Namespace: lambda self, value, at: [Plain(PlainKind.TEXT), Plain(PlainKind.TEXT)],
    Method: Iteration._turns_of_call,
    Partial: Iteration._turns_of_call,
    Tensor: Iteration._turns_of_tensor,
    Unknown: Iteration._turns_of_unknown,
    Class: Iteration._turns_of_class,
    Library: Iteration._turns_of_name,
    TreeModule: Iteration._turns_of_name,
}
"""What a loop sees of each sort of value; of others, tensors without history."""
