"""What loops, comprehensions and unpacking see of a value: its first element, and one of the others."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.graph.model import facts
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Carrier, Unseen, Value
from codemods.graph.model.values import (
    ARRAY,
    NUMBER,
    TEXT,
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
from codemods.graph.python.attributes import Attributes
from codemods.graph.run.contents import ITEMS, KEYS, REST


class Iteration(Attributes):
    """The part of the engine that goes through values."""

    def iterate(self, value: Value, at: ast.AST) -> list[Value]:
        """The values that a loop over ``value`` sees in its two turns: the first element, and one of the others."""
        if isinstance(value, Tuple):
            return self._two(list(value.items))
        if isinstance(value, Sequence):
            items = list(self.s.get((value.oid, ITEMS)) or ())
            rest = self.s.get((value.oid, REST))
            if value.kind == "turns" and len(items) == 2:
                return items
            if value.kind == "modules":
                return [*items, *([rest] if rest is not None else [])]
            if rest is not None:
                items += [rest, rest]
            for item in items:
                self.read(item, Carrier("element", value.oid, ""), at)
            if not items:
                return []
            return self._two(items)
        if isinstance(value, Mapping):
            keys = [k for k in self.mapping_keys(value) if self.s.get((value.oid, k)) is not None]
            found: list[Value] = [Const(k[1]) for k in keys if isinstance(k, tuple)]
            if isinstance(tensors := self.s.get((value.oid, KEYS)), Value):
                return [tensors, tensors]
            return self._two(found) if found else [self.unknown("key", data=True)] * 2
        if isinstance(value, Join):
            per_option = [self.iterate(o, at) for o in value.options if not isinstance(o, (Const,))]
            per_option = [turns for turns in per_option if turns]
            if not per_option:
                return []
            result = []
            for i in range(max(len(t) for t in per_option)):
                joined: Value | None = None
                for turns in per_option:
                    item = turns[min(i, len(turns) - 1)]
                    joined = item if joined is None else self.join(joined, item)
                assert joined is not None
                result.append(joined)
            return result
        if isinstance(value, Module) and value.name in ("ModuleList", "Sequential", "ParameterList"):
            items = list(self.s.get((value.oid, ITEMS)) or ())
            rest = self.s.get((value.oid, REST))
            if not items and rest is None:
                # filled in a way that was not followed
                return [self.lost("layer", "call"), self.lost("layer", "call")]
            return self._two([*items, *([rest, rest] if rest is not None else [])])
        if isinstance(value, Module) and value.name in ("ModuleDict", "ParameterDict"):
            return [TEXT, TEXT]
        if isinstance(value, Parameters):
            element = Parameters(value.owner, element=True)
            made: Value = Tuple((TEXT, element)) if value.named else element
            return [made, made]
        if isinstance(value, Plain):
            return [ARRAY if value.kind == "array" else NUMBER] * 2
        if isinstance(value, Const):
            if isinstance(value.value, str) and len(value.value) >= 1:
                return [TEXT, TEXT]
            return [NUMBER, NUMBER]
        if isinstance(value, Instance):
            return self._iterate_instance(value, at)
        if isinstance(value, Namespace):
            return [Plain("text"), Plain("text")]
        if isinstance(value, (Method, Partial)):
            return [self.taken(at, value), self.taken(at, value)]
        if isinstance(value, Tensor):
            if value.node is None:
                return [Tensor(None, index=value.index, shadow=value.shadow, aliases=value.aliases)] * 2
            return [self.sharing(value, self.tensor_op(at, "getitem", [value], saves=False)) for _ in range(2)]
        if isinstance(value, Unknown):
            if value.node is not None:
                return [self.unknown("item", self.part(at, value, "item")) for _ in range(2)]
            stored = self.s.get((value.oid, "[]"))
            if isinstance(stored, Value):
                return [stored, stored]
            if self.held_in([value]):
                return [self.taken(at, value), self.taken(at, value)]
            first, second = self.unknown("item", data=True), self.unknown("item", data=True)
            # an argument that is gone through is a loader most often; what an unseen call made need not be
            first.shadow = tuple(o for o in value.shadow if isinstance(o, Unseen) and o.kind == "call")
            second.shadow = first.shadow
            return [first, second]
        if isinstance(value, (Library, TreeModule)):
            return [self.unknown("item", data=True), self.unknown("item", data=True)]
        return [Tensor(None), Tensor(None)]

    def _iterate_instance(self, value: Instance, at: ast.AST) -> list[Value]:
        for name in ("__iter__", "__next__", "__getitem__"):
            member = value.cls.find(name)
            if isinstance(member, Function):
                args = Arguments(None, [NUMBER] if name == "__getitem__" else [])
                got = self.call_function(member, args, at, receiver=value)
                if name != "__iter__":
                    return [got, got]
                if got is value or isinstance(got, Instance):
                    turned = got if isinstance(got, Instance) else value
                    following = turned.cls.find("__next__")
                    if isinstance(following, Function):
                        item = self.call_function(following, Arguments(), at, receiver=turned)
                        return [item, item]
                    return [self.handed_out(turned, at)] * 2
                return self.iterate(got, at)
        inner = self.contained(value)
        if inner is None and value.cls.layer in facts.MODULE_CONTAINERS:
            inner = self.layer_of(value)
        if inner is not None:
            return self.iterate(inner, at)
        items = self.s.get((value.oid, ITEMS))
        if items:
            return self._two(list(items))
        return [self.handed_out(value, at), self.handed_out(value, at)]

    def handed_out(self, value: Value, at: ast.AST) -> Value:
        """An element of something that is gone through in a way that is not followed: what lies in it, else data."""
        if self.nodes_of(value) or self.held_in([value]):
            return self.taken(at, value)
        made = self.unknown("item", data=True)
        made.shadow = tuple(o for o in self.shadow_of([value]) if isinstance(o, Unseen) and o.kind != "argument")
        return made

    def _two(self, items: list[Value]) -> list[Value]:
        if len(items) <= 3:
            return items
        last = items[1]
        for item in items[2:]:
            last = self.join(last, item)
        return [items[0], last]

    def columns(self, value: Value, count: int, starred: int | None, at: ast.AST) -> list[Value]:
        """What ``value`` gives each of ``count`` targets; the one at ``starred`` takes a list."""
        items: list[Value] | None = None
        if isinstance(value, Instance) and value.cls.find("__iter__") is None:
            value = self.contained(value) or value
        if isinstance(value, Tuple):
            items = list(value.items)
        elif (
            isinstance(value, Sequence)
            and self.s.get((value.oid, REST)) is None
            and value.kind not in ("turns", "generator")
        ):
            items = list(self.s.get((value.oid, ITEMS)) or ())
        elif isinstance(value, Join):
            per_option = [
                self.columns(o, count, starred, at)
                for o in value.options
                if not (isinstance(o, Const) and o.value is None)
            ]
            if per_option:
                joined = per_option[0]
                for other in per_option[1:]:
                    joined = [self.join(a, b) for a, b in zip(joined, other, strict=True)]
                return joined
        if items is not None:
            if starred is None and len(items) == count:
                return items
            if starred is not None and len(items) >= count - 1:
                tail = count - starred - 1
                middle = items[starred : len(items) - tail]
                return [*items[:starred], self.new_sequence(middle), *items[len(items) - tail :]]
            if items:
                one = self.one_of(items)
                assert one is not None
                return [one] * count
        if isinstance(value, Tensor):
            if value.node is None:
                return [Tensor(None, index=value.index, shadow=value.shadow)] * count
            return [self.tensor_op(at, "getitem", [value], saves=False) for _ in range(count)]
        if isinstance(value, Unknown):
            if value.node is not None:
                return [self.unknown("item", self.part(at, value, f"item {i}")) for i in range(count)]
            if not value.data:
                return [self.unknown_attribute(value, f"[{i}]", at) for i in range(count)]
            return [self.handed_out(value, at) for _ in range(count)]
        if isinstance(value, (Plain, Const)):
            return [value if isinstance(value, Plain) else NUMBER] * count
        turns = self.iterate(value, at)
        if turns:
            found = [turns[min(i, len(turns) - 1)] for i in range(count)]
            if starred is not None:
                found[starred] = self.new_sequence([], rest=self.one_of(turns))
            return found
        return [self.lost() for _ in range(count)]

    def run_turns(self, loop: ast.AST, values: list[Value], body: Callable[[Value], None]) -> None:
        """Run a body once for each of the turns' values."""
        for turn, value in enumerate(values):
            self.frame.loops.append((loop, turn))
            try:
                body(value)
            finally:
                self.frame.loops.pop()
