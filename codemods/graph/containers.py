"""Lists, deques, sets, tuples and dicts: their items and methods."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.arguments import Arguments
from codemods.graph.contents import ITEMS, REST
from codemods.graph.iteration import Iteration
from codemods.graph.state import CLEARED
from codemods.graph.trace import Storing
from codemods.graph.values import (
    ARRAY,
    NONE,
    NUMBER,
    TEXT,
    Carrier,
    Const,
    Function,
    Instance,
    Join,
    Mapping,
    Module,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    Value,
)


class Containers(Iteration):
    """The part of the engine that knows containers."""

    # items

    def get_item(self, container: Value, key: Value, at: ast.AST) -> Value:
        """``container[key]``."""
        if isinstance(container, Join):
            options = [o for o in container.options if not (isinstance(o, Const) and o.value is None)]
            # where it is an empty list this raises
            options = [o for o in options if not self._is_empty_list(o)] or options
            found = [self.get_item(o, key, at) for o in options]
            result = self.one_of(found)
            return result if result is not None else self.lost()
        if isinstance(container, Tuple):
            if (
                isinstance(key, Const)
                and isinstance(key.value, int)
                and -len(container.items) <= key.value < len(container.items)
            ):
                return container.items[key.value]
            return self.one_of(list(container.items)) or self.lost()
        if isinstance(container, (Sequence, Module)) and not (isinstance(container, Module) and not container.name):
            items = self.s.get((container.oid, ITEMS)) or ()
            rest = self.s.get((container.oid, REST))
            if (
                isinstance(key, Const)
                and isinstance(key.value, int)
                and -len(items) <= key.value < len(items)
                and rest is None
            ):
                value = items[key.value]
            else:
                value = self.one_of([*items, *([rest] if rest is not None else [])])
            if isinstance(value, Value):
                self.read(value, Carrier("element", container.oid, ""), at)
                return value
            return self.lost()
        if isinstance(container, Mapping):
            value = None
            if isinstance(key, Const):
                value = self.s.get((container.oid, ("key", key.value)))
                if value is None:
                    value = self.s.get((container.oid, REST))
            else:
                value = self.one_of(self.elements(container))
            if value is None:
                factory = self.s.get((container.oid, "factory"))
                if factory is not None:
                    value = self.call_value(factory, Arguments(), at)
                    self.put_item(container, key, value)
            if isinstance(value, Value):
                self.read(value, Carrier("element", container.oid, str(getattr(key, "value", ""))), at)
                return value
            return self.lost()
        if isinstance(container, Tensor):
            return self.tensor_op(at, "getitem", [container], saves=False)
        if isinstance(container, Unknown):
            if container.node is not None:
                return self.unknown("item", self.part(at, container, "item"))
            name = f"[{key.value!r}]" if isinstance(key, Const) else "[]"
            return self.unknown_attribute(container, name, at)
        if isinstance(container, Instance):
            member = container.cls.find("__getitem__")
            if isinstance(member, Function):
                return self.call_function(member, Arguments(None, [key]), at, receiver=container)
            items = self.s.get((container.oid, ITEMS))
            if items:
                return self.one_of(list(items)) or self.unknown("item")
        if isinstance(container, Parameters):
            return replace(container, element=True)
        if isinstance(container, (Const, Plain)):
            return NUMBER if not (isinstance(container, Plain) and container.kind == "array") else ARRAY
        return self.unknown("item")

    def _is_empty_list(self, value: Value) -> bool:
        return (
            isinstance(value, Sequence)
            and value.kind == "list"
            and self.s.get((value.oid, ITEMS)) == ()
            and self.s.get((value.oid, REST)) is None
        )

    def set_item(self, container: Value, key: Value, value: Value, at: ast.AST, expression: ast.expr | None) -> None:
        """``container[key] = value``."""
        if isinstance(container, Join):
            for option in container.options:
                if not isinstance(option, (Const, Plain)):
                    self.set_item(option, key, value, at, expression)
            return
        if isinstance(container, (Mapping, Sequence)):
            self.stored(value, Carrier("element", container.oid, str(getattr(key, "value", ""))), at)
        if isinstance(container, Mapping):
            self.put_item(container, key, value)
            self.note_storing(container, expression, value, "[]", at)
        elif isinstance(container, Sequence):
            items = self.s.get((container.oid, ITEMS)) or ()
            if isinstance(key, Const) and isinstance(key.value, int) and -len(items) <= key.value < len(items):
                changed = list(items)
                changed[key.value] = value
                self.s.set((container.oid, ITEMS), tuple(changed))
            else:
                rest = self.s.get((container.oid, REST))
                self.s.set((container.oid, REST), value if rest is None else self.join(rest, value))
            self.note_storing(container, expression, value, "[]", at)
        elif isinstance(container, Instance):
            member = container.cls.find("__setitem__")
            if isinstance(member, Function):
                self.call_function(member, Arguments(None, [key, value]), at, receiver=container)
        elif isinstance(container, Unknown):
            # an element of something unseen: later reads of it may find this value
            name = f"[{key.value!r}]" if isinstance(key, Const) else "[]"
            old = self.s.get((container.oid, name))
            joined = value if old is None or isinstance(key, Const) else self.join(old, value)
            self.put_into(container, name, joined)
            self.stored(value, Carrier("element", container.oid, name), at)
            if not container.data:
                for node in self.nodes_of(value):
                    node.uses.append(("stored-unseen:[]", self.place(at)))
            if expression is not None:
                self.trace.storings.append(Storing(self.place(at), container, expression, value, "[]", self.s.grad))

    # methods

    def container_method(self, container: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of a list, deque, set, tuple or dict."""
        given = args.positional
        if isinstance(container, Sequence):
            items = self.s.get((container.oid, ITEMS)) or ()
            if name in ("append", "add", "appendleft", "insert", "extend", "extendleft", "update"):
                if not given:
                    return NONE
                value = given[-1]
                new = self.elements(value) if name in ("extend", "extendleft", "update") else [value]
                if not new and name in ("extend", "update"):
                    new = [self.unknown("item", self.part(at, value, "item"))] if value.node is not None else []
                for v in new:
                    self.stored(v, Carrier("element", container.oid, ""), at)
                if len(items) < 12:
                    self.s.set((container.oid, ITEMS), (*items, *new))
                else:
                    rest = self.s.get((container.oid, REST))
                    joined = self.one_of([*([rest] if rest is not None else []), *new])
                    if joined is not None:
                        self.s.set((container.oid, REST), joined)
                if isinstance(at, ast.Call) and at.args:
                    self.note_storing(container, at.args[-1], value, name, at)
                elif isinstance(at, ast.AugAssign):
                    self.note_storing(container, at.value, value, name, at)
                return NONE
            if name in ("clear", "pop", "popleft", "remove"):
                self.trace.emptied.append((container.oid, self.clock))
            if name == "clear":
                self.s.set((container.oid, ITEMS), ())
                self.s.delete((container.oid, REST))
                self.s.set((container.oid, CLEARED), self.tick())
                return NONE
            if name in ("pop", "popleft", "popitem"):
                rest = self.s.get((container.oid, REST))
                if items and rest is None:
                    at_front = name == "popleft" or bool(given and isinstance(given[0], Const) and given[0].value == 0)
                    self.s.set((container.oid, ITEMS), items[1:] if at_front else items[:-1])
                    popped: Value = items[0] if at_front else items[-1]
                    self.read(popped, Carrier("element", container.oid, ""), at)
                    return popped
                return self.one_of(self.elements(container)) or self.lost()
            if name == "copy":
                return self.new_sequence(list(items), self.s.get((container.oid, REST)))
            if name in ("sort", "reverse", "remove", "index", "count"):
                return NUMBER if name in ("index", "count") else NONE
        if isinstance(container, Mapping):
            if name in ("values", "items", "keys", "copy"):
                return self.mapping_view(container, name)
            if name in ("get", "setdefault", "pop"):
                cell = ("key", given[0].value) if given and isinstance(given[0], Const) else None
                stored = (
                    self.s.get((container.oid, cell)) if cell is not None else self.one_of(self.elements(container))
                )
                default = given[1] if len(given) > 1 else NONE
                if name == "pop" and cell is not None:
                    self.s.delete((container.oid, cell))
                if isinstance(stored, Value):
                    self.read(stored, Carrier("element", container.oid, ""), at)
                    return stored
                if name == "setdefault" and given:
                    self.put_item(container, given[0], default)
                return default
            if name == "update":
                for value in given:
                    if isinstance(value, Mapping):
                        for key in self.mapping_keys(value):
                            found = self.s.get((value.oid, key))
                            if found is None:
                                continue
                            if isinstance(key, tuple):
                                self.put_item(container, Const(key[1]), found)
                            else:
                                self.s.set((container.oid, REST), found)
                for key_name, value in args.keywords.items():
                    self.put_item(container, Const(key_name), value)
                return NONE
            if name == "clear":
                self.trace.emptied.append((container.oid, self.clock))
                for key in self.mapping_keys(container):
                    self.s.delete((container.oid, key))
                return NONE
        if isinstance(container, Tuple) and name in ("index", "count"):
            return NUMBER
        if isinstance(container, Tuple) and name == "_replace":
            return container
        return self.opaque(at, name, args.all())

    def mapping_view(self, container: Mapping, name: str) -> Value:
        """``keys``, ``values``, ``items`` or a ``copy`` of a dict."""
        if name == "copy":
            made = self.new_mapping()
            for key in self.mapping_keys(container):
                value = self.s.get((container.oid, key))
                if value is not None:
                    self.s.set((made.oid, key), value)
                    if key != REST:
                        self.attributes[made.oid][key] = None
            return made
        found: list[Value] = []
        for key in self.mapping_keys(container):
            value = self.s.get((container.oid, key))
            if value is None:
                continue
            label: Value = Const(key[1]) if isinstance(key, tuple) else TEXT
            found.append({"values": value, "keys": label, "items": Tuple((label, value))}[name])
        return self.new_sequence(found)
