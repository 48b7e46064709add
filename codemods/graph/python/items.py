"""Lists, deques, sets, tuples and dicts: their items are read and written."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import MODULE_CONTAINERS
from codemods.graph.model.facts.libraries import SOME
from codemods.graph.model.kinds import CarrierKind, Escape, PlainKind, SequenceKind, UseKind
from codemods.graph.model.nodes import Carrier, Use, Value
from codemods.graph.model.trace import NAMED, Storing
from codemods.graph.model.values import (
    NUMBER,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Module,
    Namespace,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.python.enumerations import members_of
from codemods.graph.python.namespaces import Namespaces
from codemods.graph.run.contents import ANY, ITEMS, REST


class Items(Namespaces):
    """The part of the engine that knows what lies in containers."""

    # what the layers above supply

    def container_method(self, container: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of a list, deque, set, tuple or dict, or of a namespace."""
        raise NotImplementedError

    def binary(self, name: str, left: Value, right: Value, at: ast.AST) -> Value:
        """An arithmetic operation."""
        raise NotImplementedError

    # items

    def get_item(self, container: Value, key: Value, at: ast.AST) -> Value:
        """``container[key]``."""
        if isinstance(container, Class) and container.info.calls_differently:
            # what a metaclass gives is not followed
            return self.run.unseen_call(self.run.taken(at, container), "[]")
        read = _READ.get(container.__class__)
        return read(self, container, key, at) if read is not None else self.run.taken(at, container)

    def _item_of_each(self, container: Join, key: Value, at: ast.AST) -> Value:
        options = [o for o in container.options if not (isinstance(o, Const) and o.value is None)]
        # where it is an empty list, or a dict without that key, this raises
        options = [o for o in options if not (self._is_empty_list(o) or self._has_no(o, key))] or options
        found = [self.get_item(o, key, at) for o in options]
        result = self.run.one_of(found)
        return result if result is not None else self.run.lost()

    def _item_of_tuple(self, container: Tuple, key: Value, at: ast.AST) -> Value:
        place = _place(key, len(container.items))
        if place is not None:
            return container.items[place]
        return self.run.one_of(list(container.items)) or self.run.lost()

    def _item_of_module(self, container: Module, key: Value, at: ast.AST) -> Value:
        part = self.torch.named_part(container, key.value) if isinstance(key, Const) else None
        if part is not None:
            return part
        if container.name:
            return self._item_of_list(container, key, at)
        # a part of a module that cannot be seen
        return (
            self.run.taken(at, container) if container.leaf is None else Module(self.run.new_oid(), "", container.leaf)
        )

    def _item_of_list(self, container: Sequence | Module, key: Value, at: ast.AST) -> Value:
        run = self.run
        items = run.s.get((container.oid, ITEMS)) or ()
        rest = run.s.get((container.oid, REST))
        place = _place(key, len(items))
        if place is not None and rest is None and container.oid not in run.displaced:
            value = items[place]
        elif isinstance(key, Plain) and self._counts_to(container, key, items):
            value = self._item_in_turn(container, key, items, rest)
        elif (before := self.torch.put_before(container, key)) is not None:
            value = before
        else:
            value = run.one_of([*items, *([rest] if rest is not None else [])])
        if not isinstance(value, Value):
            return run.lost()
        run.read(value, Carrier(CarrierKind.ELEMENT, container.oid, ""), at)
        return value

    def _counts_to(self, container: Sequence | Module, key: Plain, items: tuple[Value, ...]) -> bool:
        """Whether a loop counts to one of ``items``, of which it is known where each lies, and that it is no number or
        None that only holds a place."""
        known = key.turn is not None and key.turn < len(items) and container.oid not in self.run.displaced
        return known and not any(isinstance(o, (Const, Plain)) for item in items for o in self.run.options(item))

    def _item_in_turn(
        self, container: Sequence | Module, key: Plain, items: tuple[Value, ...], rest: Value | None
    ) -> Value | None:
        """What lies where a loop counts to: what an earlier turn of the same number put there, else one of those that
        it may come to."""
        turn, known = key.turn or 0, self.torch.put_in_turns(container, key)
        if turn < len(known) and known[turn] is not None:
            return known[turn]
        if rest is not None:
            return self.run.one_of([*items, rest])
        # the last turn that is run stands for those behind it
        return items[0] if turn == 0 else self.run.one_of([*items[turn:]])

    def _set_in_turn(self, container: Sequence, key: Plain, items: tuple[Value, ...], value: Value) -> None:
        """Put a value where a loop counts to: it may end before it comes to what lies behind the first."""
        turn = key.turn or 0
        changed = (
            (*items[:turn], *(self.run.join(item, value) for item in items[turn:])) if turn else (value, *items[1:])
        )
        self.torch.put_in_turn(container, key, value, items=changed)

    def _item_of_dict(self, container: Mapping, key: Value, at: ast.AST) -> Value:
        self.fill_registry(container.oid)
        value = self.under(container, key)
        if value is None:
            factory = self.run.s.get((container.oid, "factory"))
            if factory is not None:
                value = self.call_value(factory, Arguments(), at)
                self.torch.put_item(container, key, value)
        if not isinstance(value, Value):
            return self.run.lost()
        self.run.read(value, Carrier(CarrierKind.ELEMENT, container.oid, str(getattr(key, "value", ""))), at)
        return value

    def under(self, container: Mapping, key: Value) -> Value | None:
        """What a dict may hold under a key; None if nothing."""
        if not isinstance(key, Const):
            if (before := self.torch.put_before(container, key)) is not None:
                return before
            known = self.torch.put_in_turns(container, key)
            turn = key.turn if isinstance(key, Plain) and key.turn is not None else len(known)
            return (known[turn] if turn < len(known) else None) or self.run.one_of(self.run.elements(container))
        value: Value | None = self.run.s.get((container.oid, ("key", key.value)))
        rest = self.run.s.get((container.oid, REST))
        if isinstance(rest, Value):
            # under a key that was not seen: perhaps this one
            return self.run.join(value, rest) if isinstance(value, Value) else rest
        return self.run.settled((container.oid, key.value), value) if isinstance(value, Value) else value

    def _item_of_unknown(self, container: Unknown, key: Value, at: ast.AST) -> Value:
        if container.node is not None:
            return self.run.unknown("item", self.run.part(at, container, "item"))
        name = f"[{key.value!r}]" if isinstance(key, Const) else "[]"
        return self.unknown_attribute(container, name, at)

    def _item_of_object(self, container: Instance, key: Value, at: ast.AST) -> Value:
        member = container.cls.find("__getitem__")
        if isinstance(member, Function):
            return self.call_function(member, Arguments(None, [key]), at, receiver=container)
        inner = self.run.contained(container)
        if inner is not None:
            return self._item_of_derived(container, inner, key, at)
        if container.cls.layer in MODULE_CONTAINERS and (layer := self.torch.layer_of(container)) is not None:
            return self.get_item(layer, key, at)
        items = self.run.s.get((container.oid, ITEMS))
        if items:
            return self.run.one_of(list(items)) or self.run.unknown("item")
        return self.run.taken(at, container)

    def _item_of_library(self, container: Library, key: Value, at: ast.AST) -> Value:
        if container.path == "sys.modules":
            return self._module_named(key)
        if not container.path.endswith(".__dict__"):
            return self.run.taken(at, container)
        name = key.value if isinstance(key, Const) else SOME
        return Library(f"{container.path.removesuffix('__dict__')}{name}")

    def _module_named(self, key: Value) -> Value:
        """``sys.modules[name]``: of the own module what has its globals as attributes."""
        run = self.run
        own = run.s.get((run.frame.module_globals, "__name__"))
        if isinstance(key, Const) and isinstance(own, Const) and key.value == own.value:
            return Unknown(run.frame.module_globals, "module", data=True)
        return self.import_named(Arguments(None, [key])) or run.lost("module")

    def _item_of_class(self, container: Class, key: Value, at: ast.AST) -> Value:
        member = container.info.of_metaclass("__getitem__") or container.info.find("__class_getitem__")
        if isinstance(member, Function):
            return self.call_function(member, Arguments(None, [key]), at, receiver=container)
        members = members_of(container)
        named = container.info.find(str(key.value)) if isinstance(key, Const) else None
        return named if named is not None and named in members else self.run.one_of(members) or container

    def _item_of_plain(self, container: Const | Plain, key: Value, at: ast.AST) -> Value:
        self.run.looked_into(container, at)
        # part of an array shares its memory
        return container if isinstance(container, Plain) and container.kind is PlainKind.ARRAY else NUMBER

    def _item_of_derived(self, container: Instance, inner: Value, key: Value, at: ast.AST) -> Value:
        """An item of an object of a class derived from a container: it lies there, or ``__missing__`` makes it."""
        missing = container.cls.find("__missing__")
        there = (
            isinstance(inner, Mapping) and isinstance(key, Const) and self.run.s.get((inner.oid, ("key", key.value)))
        )
        if isinstance(there, Value) or not isinstance(missing, Function):
            return self.get_item(inner, key, at)
        made = self.call_function(missing, Arguments(None, [key]), at, receiver=container)
        return self.run.join(self.get_item(inner, key, at), made) if self.run.elements(inner) else made

    def _has_no(self, value: Value, key: Value) -> bool:
        """Whether it is a dict that surely has nothing under a key."""
        return (
            isinstance(value, Mapping)
            and isinstance(key, Const)
            and self.under(value, key) is None
            and self.run.s.get((value.oid, "factory")) is None
        )

    def _is_empty_list(self, value: Value) -> bool:
        return (
            isinstance(value, Sequence)
            and value.kind is SequenceKind.LIST
            and self.run.s.get((value.oid, ITEMS)) == ()
            and self.run.s.get((value.oid, REST)) is None
        )

    def set_item(self, container: Value, key: Value, value: Value, at: ast.AST, expression: ast.expr | None) -> None:
        """``container[key] = value``."""
        write = _WRITTEN.get(container.__class__)
        if write is not None:
            write(self, container, key, value, at, expression)
        elif isinstance(container, Plain) and container.kind is PlainKind.ARRAY:
            # an array of objects
            self.run.escape(value, Escape.INTO_ARRAY)
            self.run.array_written(container, at)
        elif isinstance(container, Library) and container.path == "sys.modules":
            # what an import gives from here on is not followed
            self.run.trace.complete = False
        elif isinstance(container, (Library, Parameters)):
            # an object of a module that cannot be seen; a list of parameters, in which another value takes a place
            self.run.escape(value, Escape.STORED_UNSEEN)

    def _set_in_each(self, container: Join, key: Value, value: Value, at: ast.AST, expression: ast.expr | None) -> None:
        for option in container.options:
            if not isinstance(option, (Const, Plain)):
                self.set_item(option, key, value, at, expression)

    def _set_in_dict(
        self, container: Mapping, key: Value, value: Value, at: ast.AST, expression: ast.expr | None
    ) -> None:
        self.run.use(key, UseKind.IDENTITY, at, "[]")
        self.run.stored(value, Carrier(CarrierKind.ELEMENT, container.oid, str(getattr(key, "value", ""))), at)
        self.torch.put_item(container, key, value)
        named = isinstance(key, Const) and isinstance(key.value, str)
        self.torch.note_storing(container, expression, value, NAMED if named else "[]", at)

    def _set_in_list(
        self, container: Sequence, key: Value, value: Value, at: ast.AST, expression: ast.expr | None
    ) -> None:
        run = self.run
        if isinstance(at, ast.Subscript) and isinstance(at.slice, ast.Slice):
            # c[1:2] = values
            value = run.one_of(run.elements(value)) or value
            run.lengths.pop(container.oid, None)
        run.stored(value, Carrier(CarrierKind.ELEMENT, container.oid, str(getattr(key, "value", ""))), at)
        items = run.s.get((container.oid, ITEMS)) or ()
        place = _place(key, len(items))
        if place is not None:
            changed = list(items)
            changed[place] = value
            run.s.set((container.oid, ITEMS), tuple(changed))
        elif isinstance(key, Plain) and self._counts_to(container, key, items):
            self._set_in_turn(container, key, items, value)
        elif isinstance(key, Plain) and key.turn is not None and all(isinstance(i, (Const, Plain)) for i in items):
            # each turn of the loop comes to its own place, where nothing lay
            rest = run.s.get((container.oid, REST))
            self.torch.put_in_turn(container, key, value, rest=value if rest is None else run.join(rest, value))
        else:
            self.mix(container, value)
        self.torch.note_storing(container, expression, value, "[]", at)

    def mix(self, container: Sequence, *more: Value) -> None:
        """Put ``more`` among the elements of a list: from here on each of them may lie at any place."""
        run = self.run
        one = run.one_of([*run.elements(container), *more])
        if one is not None:
            items, rest = run.s.get((container.oid, ITEMS)) or (), run.s.get((container.oid, REST))
            # what is put in is there for certain, wherever it lies
            added = run.one_of([*([rest] if isinstance(rest, Value) else []), *more])
            run.s.set((container.oid, ITEMS), (one,) * len(items))
            run.s.set((container.oid, REST), added or one)

    def _set_in_object(
        self, container: Instance, key: Value, value: Value, at: ast.AST, expression: ast.expr | None
    ) -> None:
        member = container.cls.find("__setitem__")
        inner = self.run.contained(container)
        if isinstance(member, Function):
            self.call_function(member, Arguments(None, [key, value]), at, receiver=container)
        elif inner is not None:
            self.set_item(inner, key, value, at, expression)
        else:
            self.set_attribute(container, ANY, value, at)

    def _set_in_module(
        self, container: Module, key: Value, value: Value, at: ast.AST, expression: ast.expr | None
    ) -> None:
        if container.name in MODULE_CONTAINERS:
            self._put_part(container, key, value)

    def _set_in_unknown(
        self, container: Unknown, key: Value, value: Value, at: ast.AST, expression: ast.expr | None
    ) -> None:
        run = self.run
        # an element of something unseen: later reads of it may find this value
        name = f"[{key.value!r}]" if isinstance(key, Const) else "[]"
        old = run.s.get((container.oid, name))
        joined = value if old is None or isinstance(key, Const) else run.join(old, value)
        run.put_into(container, name, joined)
        run.stored(value, Carrier(CarrierKind.ELEMENT, container.oid, name), at)
        if not container.data:
            for node in run.nodes_of(value):
                node.uses.append(Use(UseKind.STORED_UNSEEN, run.place(at), "[]"))
        if expression is not None:
            run.trace.storings.append(Storing(run.place(at), container, expression, value, "[]", run.s.grad))

    def _put_part(self, modules: Module, key: Value, value: Value) -> None:
        """``modules[key] = value`` of a ``ModuleList`` or ``ModuleDict``: replaces one, or adds one."""
        items = list(self.run.s.get((modules.oid, ITEMS)) or ())
        place = _place(key, len(items))
        if place is not None:
            items[place] = value
            self.run.s.set((modules.oid, ITEMS), tuple(items))
        else:
            self.torch.put_named(modules, key, value)


def _place(key: Value, count: int) -> int | None:
    """The index of one of ``count`` items; None if it is not known, or there is no such item."""
    index = key.value if isinstance(key, Const) else None
    return index if isinstance(index, int) and -count <= index < count else None


_READ: dict[type[Value], Callable[[Items, Any, Value, ast.AST], Value]] = {
    Join: Items._item_of_each,
    Tuple: Items._item_of_tuple,
    Module: Items._item_of_module,
    Sequence: Items._item_of_list,
    Mapping: Items._item_of_dict,
    Tensor: lambda self, container, key, at: self.run.tensor_op(at, "getitem", [container], saves=False),
    Unknown: Items._item_of_unknown,
    Instance: Items._item_of_object,
    Namespace: Items.named_item,
    Library: Items._item_of_library,
    Class: Items._item_of_class,
    Parameters: lambda self, container, key, at: replace(container, element=True),
    Const: Items._item_of_plain,
    Plain: Items._item_of_plain,
}
"""How an item is read of each sort of value; of others something is taken that may be any part of them."""

_WRITTEN: dict[type[Value], Callable[[Items, Any, Value, Value, ast.AST, ast.expr | None], None]] = {
    Join: Items._set_in_each,
    Mapping: Items._set_in_dict,
    Sequence: Items._set_in_list,
    Instance: Items._set_in_object,
    Module: Items._set_in_module,
    Namespace: Items.set_named_item,
    Unknown: Items._set_in_unknown,
}
"""How an item of each sort of value is written; others have none that are followed."""
