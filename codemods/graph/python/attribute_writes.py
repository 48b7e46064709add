"""Attributes of any value are written."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import MODULE_CONTAINERS
from codemods.graph.model.kinds import Altered, CarrierKind, Escape, Marked, UseKind
from codemods.graph.model.nodes import Carrier, Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.state import BUFFER, PARTLY, SINCE
from codemods.graph.model.values import (
    NONE,
    TEXT,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Namespace,
    Parameters,
    Partial,
    Plain,
    Tensor,
    TreeModule,
    Unknown,
)
from codemods.graph.python.attributes import Attributes, has_attributes
from codemods.graph.python.objects import SAME
from codemods.graph.run.contents import ANY

_OF_TENSORS = frozenset({"requires_grad", "volatile", "grad", "data"})
"""Attributes of tensors whose writing says something of their gradients."""

_CHANGING = frozenset({"__class__", "__bases__", "__defaults__", "__kwdefaults__", "__code__"})
"""Attributes that say what an object is, or what a function does."""

_NO_TENSORS = frozenset({"plain", "module", "lightning", "dataset", "optimizer"})
"""Families of classes of which no object is a tensor."""


class AttributeWrites(Attributes):
    """The part of the engine that writes attributes."""

    def set_attribute(self, receiver: Value, name: str, value: Value, at: ast.AST) -> None:
        run = self.run
        if isinstance(receiver, Join):
            for option in receiver.options:
                if has_attributes(option):
                    self.set_attribute(option, name, value, at)
            return
        if name in _CHANGING:
            # what the object does from here on is not followed
            run.escape_all([value], Escape.STORED_ANYWHERE)
            run.trace.complete = False
        if name in _OF_TENSORS and self._set_of_tensor(receiver, name, value, at):
            return
        if isinstance(receiver, Class):
            # in the state: classes of imported modules outlive a run
            run.class_attributes.add(name)
            run.s.set((receiver.info.oid, name), value)
            run.stored(value, Carrier(CarrierKind.ATTRIBUTE, receiver.info.oid, name), at)
            return
        if isinstance(receiver, Unknown) and receiver.module is not None:
            receiver = receiver.module
        if isinstance(receiver, Instance) and self._set_by_class(receiver, name, value, at):
            return
        if name == "__dict__":
            self._replace_names(receiver, value, at)
            return
        named = isinstance(receiver, (Tensor, Function, Const)) and has_attributes(receiver)
        if isinstance(receiver, Tensor):
            run.alter(receiver, Altered.SHAPE, at)
        oid = run.kept_under(receiver) if named else getattr(receiver, "oid", None)
        if isinstance(receiver, Tensor):
            run.use(receiver, UseKind.IDENTITY, at, name)
        if isinstance(oid, int):
            self._keep_attribute(receiver, oid, name, value, at)
        elif isinstance(receiver, TreeModule):
            self.set_module_member(receiver, name, value, at)
        else:
            self._set_of_library(receiver, value)

    def _set_of_library(self, receiver: Value, value: Value) -> None:
        """Write an attribute of something that is not of the tree."""
        run = self.run
        run.escape_all([value], Escape.STORED_ANYWHERE)
        if not isinstance(receiver, Library):
            return
        # who has it from here on, what torch does with another function, and what the script has, is not followed
        held = bool(run.nodes_of(value) or run.held_in([value]))
        replaced = any(isinstance(option, (Function, Partial)) for option in run.options(value))
        top = canonical(receiver.path).partition(".")[0]
        if held or top == "__main__" or (replaced and top == "torch"):
            run.trace.complete = False

    def _set_of_tensor(self, receiver: Value, name: str, value: Value, at: ast.AST) -> bool:
        """Write what tensors have: ``requires_grad``, ``volatile``, ``grad`` or ``data``; whether nothing is left to
        do."""
        run = self.run
        cleared = name == "grad" and isinstance(value, Const) and value.value is None
        if not cleared:
            run.alter(receiver, Altered.SHAPE if name in ("data", "grad") else Altered(name), at)
        # an object of the tree may call anything its gradient, or its data
        own = isinstance(receiver, Class) or (isinstance(receiver, Instance) and receiver.cls.family in _NO_TENSORS)
        if name == "requires_grad" and not (own or run.is_module(receiver)):
            truth = run.truth(value)
            if truth is not False:
                run.mark(Marked.REQUIRES_GRAD, at)
            owner: Value = receiver.owner if isinstance(receiver, Parameters) else receiver
            run.freeze(owner, None if truth is None else not truth)
            return True
        if name == "grad" and not own:
            run.mark_owned(Marked.CLEARED if cleared else Marked.GRADIENTS_CHANGED, at, receiver)
            if run.nodes_of(value) or run.shadow_of([value]):
                # whoever reads a gradient, under any name of the tensor, may get a graph with it
                run.escape_all([value], Escape.STORED_ANYWHERE)
                run.attached_gradients = True
            return True
        if name == "data" and not isinstance(receiver, (Instance, Class)):
            run.mark(Marked.DATA_WRITTEN, at)
            return True
        return False

    def _keep_attribute(self, receiver: Value, oid: int, name: str, value: Value, at: ast.AST) -> None:
        """Keep an attribute under the identity of what has it."""
        run = self.run
        if run.s.get((oid, f"{BUFFER}{name}")) is not None:
            # a number is refused
            run.use(value, UseKind.METHOD, at, "register_buffer")
        elif id(value) in run.buffers:
            run.s.set((oid, f"{BUFFER}{name}"), NONE)
        run.rebound[oid, name] = run.rebound.get((oid, name), 0) + 1
        if name == ANY:
            # whatever it is called: beside what lies there already
            old = run.s.get((oid, ANY))
            value = run.join(old, value) if isinstance(old, Value) else value
            if not isinstance(old, Value):
                run.named_as.setdefault(oid, [])
            if oid in run.named_as:
                run.named_as[oid].append(run.naming)
        if isinstance(receiver, Unknown):
            run.put_into(receiver, name, value)
        else:
            new = name not in run.attributes.setdefault(oid, {})
            run.s.set((oid, name), value)
            run.s.delete((oid, f"{PARTLY}{name}"))
            self.note_since(oid, name)
            run.attributes[oid][name] = None
            if new and isinstance(receiver, Instance) and receiver.cls.layer in MODULE_CONTAINERS:
                # its parts run in the order in which it got them
                self._put_new_part(receiver, value)
        run.stored(value, Carrier(CarrierKind.ATTRIBUTE, oid, name), at)
        if isinstance(receiver, Unknown) and not receiver.data:
            run.escape(value, Escape.STORED_UNSEEN)

    def note_since(self, oid: int, name: str) -> None:
        """Note that an attribute of an object was written: after what was written under names that are not known, or
        under such a name."""
        run = self.run
        if name == ANY:
            for other in run.attributes.get(oid, ()):
                run.s.delete((oid, f"{SINCE}{other}"))
        elif isinstance(run.s.get((oid, ANY)), Value):
            run.s.set((oid, f"{SINCE}{name}"), NONE)
            run.s.delete((oid, f"{PARTLY}{SINCE}{name}"))

    def _put_new_part(self, container: Instance, value: Value) -> None:
        if self.run.is_module(value):
            self.torch.put_part(container, value)

    def set_named(self, receiver: Value, name: Value, value: Value, at: ast.AST) -> None:
        if isinstance(name, Const) and isinstance(name.value, str):
            self.set_attribute(receiver, name.value, value, at)
            return
        self.run.naming = name if isinstance(name, Plain) else TEXT
        self.set_attribute(receiver, ANY, value, at)
        self.run.naming = TEXT

    def delete_attribute(self, owner: Value, name: str, at: ast.AST) -> None:
        """``del owner.name``."""
        for info in owner.cls.mro() if isinstance(owner, Instance) else ():
            if name in info.deleters:
                self.call_function(info.deleters[name], Arguments(), at, receiver=owner)
                return
        if isinstance(owner, Instance) and self._by_method(owner, "__delattr__", [Const(name)], at) is not None:
            return
        oid = getattr(owner, "oid", None)
        if isinstance(oid, int):
            self.run.s.delete((oid, name))

    def delete_named(self, owner: Value, name: Value, at: ast.AST) -> None:
        """``delattr(owner, name)``."""
        run = self.run
        if isinstance(name, Const) and isinstance(name.value, str):
            self.delete_attribute(owner, name.value, at)
            return
        if not isinstance(owner, Instance):
            return
        for held in [name for name in run.attributes.get(owner.oid, ()) if isinstance(name, str)]:
            of_class, own = owner.cls.find(held), run.s.get((owner.oid, held))
            if of_class is not None and isinstance(own, Value):
                # what the class has may be seen again
                run.s.set((owner.oid, held), run.join(own, of_class))

    def _set_by_class(self, receiver: Instance, name: str, value: Value, at: ast.AST) -> bool:
        """Let the class of an object set an attribute, by a property, a descriptor or ``__setattr__``; whether there is
        nothing left to do."""
        for info in receiver.cls.mro():
            setter = info.setters.get(name)
            if setter is not None:
                if setter.definition in self.run.active:
                    return False
                self.call_function(setter, Arguments(None, [value]), at, receiver=receiver)
                return True
            if name in info.members:
                member = info.members[name]
                if isinstance(member, Instance) and member.cls.find("__set__") is not None:
                    return self._by_method(member, "__set__", [receiver, value], at) is not None
                break
        if "__setattr__" in self.special_names(receiver.cls):
            # it is also read under its own name: whether the method keeps it there is not followed
            self._by_method(receiver, "__setattr__", [Const(name), value], at)
        return False

    def _replace_names(self, receiver: Value, value: Value, at: ast.AST) -> None:
        """``obj.__dict__ = value``: the attributes are what the dict holds, now and later."""
        run = self.run
        for option in run.options(value):
            if isinstance(option, Mapping):
                if run.born.get(option.oid, 0) < run.frame.birth:
                    # a dict of others, by which they share all attributes from here on
                    run.trace.complete = False
                self._names_from(receiver, option, at)
            elif isinstance(option, Instance) and option is receiver:
                # class A(dict): self.__dict__ = self
                run.s.set((option.oid, SAME), NONE)
            elif isinstance(option, Namespace):
                for name, held in self.named_in(option).items():
                    self.set_attribute(receiver, name, held, at)
            else:
                self.set_attribute(receiver, ANY, run.taken(at, option), at)

    def _names_from(self, receiver: Value, mapping: Mapping, at: ast.AST) -> None:
        for key in self.run.mapping_keys(mapping):
            held = self.run.s.get((mapping.oid, key))
            if isinstance(held, Value):
                name = key[1] if isinstance(key, tuple) and isinstance(key[1], str) else ANY
                self.set_attribute(receiver, name, held, at)
