"""Lists, deques, sets, tuples and dicts: their items and methods."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model import facts
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Carrier, Value
from codemods.graph.model.state import CLEARED
from codemods.graph.model.trace import Storing
from codemods.graph.model.values import (
    ARRAY,
    NONE,
    NUMBER,
    TEXT,
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
    TreeModule,
    Tuple,
    Unknown,
)
from codemods.graph.python.iteration import Iteration
from codemods.graph.run.contents import ANY, ITEMS, KEYS, REST, SENT
from codemods.graph.run.joins import MAX_MODULES

_APART = 12
"""So many elements of a list are told apart; with more in it, each may be any of them."""


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
        part = self.named_part(container, key.value) if isinstance(key, Const) else None
        if part is not None:
            return part
        if isinstance(container, Module) and not container.name and container.leaf is not None:
            # a part of a module that cannot be seen
            return Module(self.new_oid(), "", container.leaf)
        if isinstance(container, (Sequence, Module)) and not (isinstance(container, Module) and not container.name):
            items = self.s.get((container.oid, ITEMS)) or ()
            rest = self.s.get((container.oid, REST))
            if (
                isinstance(key, Const)
                and isinstance(key.value, int)
                and -len(items) <= key.value < len(items)
                and rest is None
                and container.oid not in self.displaced
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
                rest = self.s.get((container.oid, REST))
                if isinstance(rest, Value):
                    # under a key that was not seen: perhaps this one
                    value = self.join(value, rest) if isinstance(value, Value) else rest
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
            inner = self.contained(container)
            if inner is not None:
                return self._item_of_derived(container, inner, key, at)
            if container.cls.layer in facts.MODULE_CONTAINERS and (layer := self.layer_of(container)) is not None:
                return self.get_item(layer, key, at)
            items = self.s.get((container.oid, ITEMS))
            if items:
                return self.one_of(list(items)) or self.unknown("item")
            return self.taken(at, container)
        if isinstance(container, Namespace):
            return self._named(container, key, at)
        if isinstance(container, Library) and container.path.endswith(".__dict__"):
            name = key.value if isinstance(key, Const) else facts.SOME
            return Library(f"{container.path.removesuffix('__dict__')}{name}")
        if isinstance(container, Class):
            member = container.info.find("__class_getitem__")
            if isinstance(member, Function):
                return self.call_function(member, Arguments(None, [key]), at, receiver=container)
            return container
        if isinstance(container, Parameters):
            return replace(container, element=True)
        if isinstance(container, (Const, Plain)):
            return NUMBER if not (isinstance(container, Plain) and container.kind == "array") else ARRAY
        return self.taken(at, container)

    def _item_of_derived(self, container: Instance, inner: Value, key: Value, at: ast.AST) -> Value:
        """An item of an object of a class derived from a container: it lies there, or ``__missing__`` makes it."""
        missing = container.cls.find("__missing__")
        if not isinstance(missing, Function):
            return self.get_item(inner, key, at)
        made = self.call_function(missing, Arguments(None, [key]), at, receiver=container)
        there = self.elements(inner)
        return self.join(self.get_item(inner, key, at), made) if there else made

    def _named(self, space: Namespace, key: Value, at: ast.AST) -> Value:
        """What a namespace holds under a name."""
        if not isinstance(key, Const) or not isinstance(key.value, str):
            chosen = self.defined_in(space)
            if chosen is not None:
                return chosen
            made = self.taken(at, space)
            made.shadow = (*self.lost().shadow, *made.shadow)
            return made
        if isinstance(space.of, TreeModule):
            return self.module_member(space.of, key.value)
        if space.of is not None:
            return self.get_attribute(space.of, key.value, at)
        found = self.s.get((space.oid, key.value))
        return self.load_name(key.value, at) if not isinstance(found, Value) else found

    def defined_in(self, space: Namespace) -> Value | None:
        """What ``models.__dict__[name]`` may be: a function or a class that a module of the tree holds. None where
        there are too many, or graphs beside them."""
        if not isinstance(space.of, TreeModule):
            return None
        found = [self.module_member(space.of, n) for n in self.modules.globals.get(space.oid, ()) if n[:1] != "_"]
        defined: list[Value] = list(dict.fromkeys(v for v in found if isinstance(v, (Function, Class))))
        return None if len(defined) > MAX_MODULES or any(map(self.nodes_of, found)) else self.one_of(defined)

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
        if isinstance(at, ast.Subscript) and isinstance(at.slice, ast.Slice) and isinstance(container, Sequence):
            # c[1:2] = values
            value = self.one_of(self.elements(value)) or value
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
            inner = self.contained(container)
            if isinstance(member, Function):
                self.call_function(member, Arguments(None, [key, value]), at, receiver=container)
            elif inner is not None:
                self.set_item(inner, key, value, at, expression)
            else:
                self.set_attribute(container, ANY, value, at)
        elif isinstance(container, Module) and container.name in facts.MODULE_CONTAINERS:
            self._put_part(container, key, value)
        elif isinstance(container, Namespace):
            named = key.value if isinstance(key, Const) and isinstance(key.value, str) else ANY
            if space_of := container.of:
                self.set_attribute(space_of, named, value, at)
            else:
                self.s.set((container.oid, named), value)
                self.stored(value, Carrier("global", container.oid, named), at)
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

    def _put_part(self, modules: Module, key: Value, value: Value) -> None:
        """``modules[key] = value`` of a ``ModuleList`` or ``ModuleDict``: in the place of another, or one more."""
        items = list(self.s.get((modules.oid, ITEMS)) or ())
        place = key.value if isinstance(key, Const) and isinstance(key.value, int) else None
        if place is not None and -len(items) <= place < len(items):
            items[place] = value
            self.s.set((modules.oid, ITEMS), tuple(items))
        else:
            self.put_named(modules, key, value)

    # methods

    def ordered_by(self, args: Arguments, values: list[Value], at: ast.AST) -> None:
        """The key function of ``sort``, ``sorted``, ``min`` and ``max`` gets each of the values."""
        key = args.keywords.get("key")
        for value in values if key is not None and not self.is_none(key) else ():
            assert key is not None
            self.call_value(key, Arguments(None, [value]), at)

    def container_method(self, container: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of a list, deque, set, tuple or dict, or of a namespace."""
        given = args.positional
        if name in ("__getitem__", "__setitem__", "__iter__", "__reversed__") and isinstance(at, ast.AST):
            return self._special(container, name, given, at)
        if isinstance(container, Namespace):
            return self._method_of_names(container, name, args, at)
        if isinstance(container, Sequence):
            items = self.s.get((container.oid, ITEMS)) or ()
            if container.kind == "generator" and name == "send" and given:
                # what runs behind the ``yield`` gets it, at a time of its own
                self.escape_all(given, "sent to a generator")
                sent = self.taken(at, Tuple(tuple(given)), "sent")
                for received in self.s.get((container.oid, SENT)) or ():
                    self.replace_everywhere(received, self.join(received, sent))
                return self.one_of([*self.elements(container), sent]) or NONE
            if name in ("append", "add", "appendleft", "insert", "extend", "extendleft", "update"):
                if not given:
                    return NONE
                value = given[-1]
                new = [value]
                if name in ("extend", "extendleft", "update"):
                    new, several = self.apart(value)
                    # any number of them: twice, as a loop over them would put them there
                    new += several * 2
                    new = new or self._turns_of(value, at)
                for v in new:
                    self.stored(v, Carrier("element", container.oid, ""), at)
                place = self._place(given[0], items) if name == "insert" and len(given) > 1 else None
                if place is not None and len(items) < _APART:
                    self.s.set((container.oid, ITEMS), (*items[:place], *new, *items[place:]))
                elif name in ("appendleft", "extendleft") and len(items) < _APART:
                    self.s.set((container.oid, ITEMS), (*reversed(new), *items))
                elif name != "insert" and len(items) < _APART and len(new) <= 16:
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
                if items and rest is None and container.oid not in self.displaced:
                    place = self._popped(name, given, len(items))
                    if place is None:
                        # one of them goes, and which stay is not followed
                        self.s.set((container.oid, REST), self.one_of(list(items)))
                        return self.one_of(list(items)) or self.lost()
                    popped: Value = items[place]
                    self.s.set((container.oid, ITEMS), (*items[:place], *items[place + 1 :]))
                    self.read(popped, Carrier("element", container.oid, ""), at)
                    return popped
                return self.one_of(self.elements(container)) or self.lost()
            if name == "copy":
                return self.new_sequence(list(items), self.s.get((container.oid, REST)))
            if name == "sort":
                self.ordered_by(args, self.elements(container), at)
            if name in ("sort", "reverse", "rotate", "remove"):
                # where each of them lies is not followed
                if items and (name != "remove" or len(items) > 1):
                    self.s.set((container.oid, REST), self.one_of(self.elements(container)))
                return NONE
            if name in ("index", "count"):
                return NUMBER
            if name in ("union", "difference", "intersection", "symmetric_difference"):
                others = [v for other in given for v in self.elements(other) or self._turns_of(other, at)]
                return self.new_sequence([], rest=self.one_of([*self.elements(container), *others]), kind="set")
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
            if name in ("update", "__ior__"):
                for value in given:
                    self.fill_mapping(container, value, at)
                for key_name, value in args.keywords.items():
                    self.put_item(container, Const(key_name), value)
                for value in args.more:
                    self.fill_mapping(container, value, at)
                return NONE
            if name == "popitem":
                return Tuple((TEXT, self.one_of(self.elements(container)) or self.lost()))
            if name == "move_to_end":
                cell = ("key", given[0].value) if given and isinstance(given[0], Const) else None
                names = self.attributes.get(container.oid, {})
                if cell in names:
                    names[cell] = names.pop(cell)
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
        return self.opaque(at, name, [*args.all(), container])

    @staticmethod
    def _popped(name: str, given: list[Value], count: int) -> int | None:
        """The place of what ``pop`` takes from ``count`` elements, None if that cannot be seen."""
        if name == "popleft" or not given:
            return 0 if name == "popleft" else count - 1
        index = given[0].value if isinstance(given[0], Const) else None
        return index % count if isinstance(index, int) and -count <= index < count else None

    @staticmethod
    def _place(index: Value, items: tuple[Value, ...]) -> int | None:
        """Where ``insert`` puts a value, None if that cannot be seen."""
        if not isinstance(index, Const) or not isinstance(index.value, int):
            return None
        return min(index.value, len(items)) if index.value >= 0 else max(len(items) + index.value, 0)

    def _turns_of(self, value: Value, at: ast.AST) -> list[Value]:
        """What goes into a container that is filled from ``value``, of which no elements are known."""
        if isinstance(value, (Tuple, Sequence, Mapping, Const, Plain)):
            return []
        if isinstance(value, Unknown) and not (value.node is not None or value.shadow or self.held_in([value])):
            return []
        return self.iterate(value, at)

    def fill_mapping(self, mapping: Mapping, value: Value, at: ast.AST) -> None:
        """``mapping.update(value)``: a dict, pairs, or something that cannot be seen."""
        for option in self.options(value):
            source = self.contained(option) or option
            if isinstance(source, Mapping):
                for key in self.mapping_keys(source):
                    found = self.s.get((source.oid, key))
                    if isinstance(found, Value):
                        self.put_item(mapping, Const(key[1]) if isinstance(key, tuple) else TEXT, found)
            elif isinstance(source, Namespace):
                for name, held in self.named_in(source).items():
                    self.put_item(mapping, Const(name), held)
                if isinstance(source.of, Unknown):
                    self.put_item(mapping, TEXT, self.taken(at, source.of))
            elif isinstance(source, (Const, Plain)):
                continue
            elif isinstance(source, (Sequence, Tuple)):
                for pair in self.elements(source):
                    if isinstance(pair, Tuple) and len(pair.items) == 2:
                        self.put_item(mapping, *pair.items)
                    else:
                        self.put_item(mapping, TEXT, self.taken(at, pair))
            else:
                self.put_item(mapping, TEXT, self.taken(at, source))

    def _special(self, container: Value, name: str, given: list[Value], at: ast.AST) -> Value:
        """A special method of a container that is called by its name."""
        if name == "__getitem__" and given:
            return self.get_item(container, given[0], at)
        if name == "__setitem__" and len(given) > 1:
            self.set_item(container, given[0], given[1], at, None)
            return NONE
        return self.new_sequence(list(self.iterate(container, at)), kind="turns")

    def _method_of_names(self, space: Namespace, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of ``vars(obj)``: read from a copy, written to the object itself."""
        given = args.positional
        if name == "update":
            copied = self.new_mapping()
            self.container_method(copied, "update", args, at)
            for key in self.mapping_keys(copied):
                value = self.s.get((copied.oid, key))
                if isinstance(value, Value):
                    self.set_item(space, Const(key[1]) if isinstance(key, tuple) else TEXT, value, at, None)
            return NONE
        if name == "setdefault" and len(given) > 1:
            self.set_item(space, given[0], given[1], at, None)
        if name in ("get", "pop", "setdefault") and given and isinstance(given[0], Const):
            if given[0].value in self.named_in(space) or len(given) < 2:
                return self._named(space, given[0], at)
            return self.join(self._named(space, given[0], at), given[1])
        copied = self.new_mapping()
        self.fill_mapping(copied, space, at)
        return self.container_method(copied, name, args, at)

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
        rest: Value | None = None
        for key in self.mapping_keys(container):
            value = self.s.get((container.oid, key))
            if value is None:
                continue
            label: Value = Const(key[1]) if isinstance(key, tuple) else self.s.get((container.oid, KEYS)) or TEXT
            shown = {"values": value, "keys": label, "items": Tuple((label, value))}[name]
            if isinstance(key, tuple):
                found.append(shown)
            else:
                # under keys that are not known there may be many
                rest = shown
        return self.new_sequence(found, rest)
