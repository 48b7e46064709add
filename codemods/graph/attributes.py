"""Attributes of any value are read and written."""

from __future__ import annotations

import ast

from codemods.graph import facts
from codemods.graph.arguments import Arguments
from codemods.graph.names import Names, library_member
from codemods.graph.program import ClassInfo
from codemods.graph.values import (
    DATA,
    NUMBER,
    Carrier,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Library,
    Method,
    Module,
    Optimizer,
    Parameters,
    Plain,
    Super,
    Tensor,
    TreeModule,
    Unknown,
    Unseen,
    Value,
)


class Attributes(Names):
    """The part of the engine that finds attributes."""

    def get_attribute(self, receiver: Value, name: str, at: ast.AST) -> Value:
        """Read an attribute of any value."""
        if isinstance(receiver, Join):
            found = [self.get_attribute(o, name, at) for o in receiver.options if not isinstance(o, (Const, Plain))]
            result = self.one_of(found)
            return result if result is not None else self.unknown(name)
        if isinstance(receiver, (Instance, Module)):
            return self._object_attribute(receiver, name, at)
        if isinstance(receiver, Tensor):
            value = self.tensor_attribute(receiver, name, at)
            return value if value is not None else Method(receiver, None, name)
        if isinstance(receiver, Unknown):
            return self.unknown_attribute(receiver, name, at)
        if isinstance(receiver, Library):
            return library_member(receiver.path, name)
        if isinstance(receiver, TreeModule):
            return self.module_member(receiver, name)
        if isinstance(receiver, Class):
            owned = self.class_member(receiver.info, name, at)
            if isinstance(owned, Function) and owned.kind == "classmethod":
                return Method(receiver, owned, name)
            if owned is None and name == "apply" and receiver.info.family == "function":
                return Method(receiver, None, name)
            return owned if owned is not None else self.unknown(name)
        if isinstance(receiver, Super):
            owned = receiver.cls.find(name, after=receiver.cls)
            if isinstance(owned, Function):
                return Method(receiver.receiver, owned, name)
            return Method(receiver, None, name)
        if isinstance(receiver, Optimizer) and name == "param_groups":
            return self.unknown("param_groups")
        if isinstance(receiver, Parameters):
            if name == "data":
                return Tensor(None)
            if name == "grad":
                self.mark_owned("grad-read", at, receiver)
                return DATA
            if name == "requires_grad":
                return NUMBER
        return Method(receiver, None, name)

    def class_member(self, info: ClassInfo, name: str, at: ast.AST) -> Value | None:
        """What a class or its bases hold under ``name``, as written last."""
        if name not in self.class_attributes:
            return info.find(name)
        for base in info.mro():
            value = self.s.get((base.oid, name))
            if isinstance(value, Value):
                self.read(value, Carrier("attribute", base.oid, name), at)
                return value
            if name in base.members:
                return base.members[name]
        return None

    def _object_attribute(self, receiver: Instance | Module, name: str, at: ast.AST) -> Value:
        value = self.s.get((receiver.oid, name))
        if isinstance(value, Value):
            self.read(value, Carrier("attribute", receiver.oid, name), at)
            return value
        if isinstance(receiver, Instance):
            member = self.class_member(receiver.cls, name, at)
            if isinstance(member, Function):
                if member.kind == "property":
                    return self.call_function(member, Arguments(), at, receiver=receiver)
                if member.kind == "staticmethod":
                    return member
                if member.kind == "classmethod":
                    return Method(Class(receiver.cls), member, name)
                return Method(receiver, member, name)
            if member is not None:
                return member
            if receiver.cls.find("__getattr__") is not None:
                return self.unknown(name)
        if self.is_module(receiver):
            if name == "module":
                return receiver
            if name == "training":
                return NUMBER
            if (
                name in facts.MODULE_EVIDENCE
                or name in facts.TRANSPARENT_MODULE_METHODS
                or name in ("buffers", "forward", "add_module", "append", "extend")
                or name.startswith("register_")
            ):
                return Method(receiver, None, name)
            if isinstance(receiver, Module):
                if name in ("weight", "bias") and receiver.leaf is not None:
                    return Tensor(receiver.leaf if not self.frozen(receiver.leaf) else None)
                if not receiver.name and receiver.leaf is not None:
                    # part of a module that cannot be seen: most often a submodule with parameters among the module's
                    # own
                    child = Module(self.new_oid(), "", receiver.leaf)
                    self.s.set((receiver.oid, name), child)
                    return child
                return Method(receiver, None, name)
        if isinstance(receiver, Instance) and receiver.cls.family.startswith("external"):
            made = self.lost(name, "attribute")
            self.s.set((receiver.oid, name), made)
            return made
        if isinstance(receiver, Instance):
            if name.startswith("__"):
                return self.unknown(name)
            made = self.lost(name, "attribute")
            # remembered, so that what is learned about it is learned once
            self.s.set((receiver.oid, name), made)
            self.attributes.setdefault(receiver.oid, {})[name] = None
            return made
        return Method(receiver, None, name)

    def unknown_attribute(self, receiver: Unknown, name: str, at: ast.AST) -> Value:
        """An attribute of something that cannot be seen, or its element under ``[key]``."""
        value = self.s.get((receiver.oid, name))
        if isinstance(value, Value):
            self.read(value, Carrier("attribute", receiver.oid, name), at)
            return value
        if receiver.module is not None:
            return self._object_attribute(receiver.module, name, at)
        if name in ("data", "grad", "grad_fn", "requires_grad", "shape", "dtype", "device", "is_cuda", "ndim"):
            tensor_value = self.tensor_attribute(receiver, name, at)
            if tensor_value is not None:
                return tensor_value
            if name == "data":
                self.use(receiver, "data", at)
                if receiver.node is not None:
                    return self.detached(receiver, scalar=receiver.node.scalar)
        if receiver.node is not None:
            return self.unknown(name, self.part(at, receiver, name))
        member = receiver.members.get(name)
        if member is None:
            held = self.held_in([receiver]) if receiver.data else []
            if held:
                # what wrote it may have computed it of what was put there
                return self.unknown(name, self.node(at, "call", held, certain=False, label=name))
            member = receiver.members[name] = self.unknown(
                f"{receiver.origin}.{name}", data=receiver.data, public=receiver.public
            )
            member.owner = receiver
            # an element of an argument is as attached as the argument; its attributes are settings most often
            inherited = name != "data" and (name.startswith("[") or None)
            unseen = [o for o in receiver.shadow if isinstance(o, Unseen)]
            member.shadow = tuple(o for o in unseen if inherited or (inherited is None and o.kind == "call"))
        return member

    def set_attribute(self, receiver: Value, name: str, value: Value, at: ast.AST) -> None:
        if isinstance(receiver, Join):
            for option in receiver.options:
                if not isinstance(option, (Const, Plain)):
                    self.set_attribute(option, name, value, at)
            return
        if name in ("requires_grad", "volatile", "data"):
            self.alter(receiver, "shape" if name == "data" else name, at)
        if name == "requires_grad":
            truth = self.truth(value)
            if truth is not False:
                self.mark("requires_grad", at)
            owner: Value = receiver.owner if isinstance(receiver, Parameters) else receiver
            self.freeze(owner, None if truth is None else not truth)
            return
        if name == "grad":
            cleared = isinstance(value, Const) and value.value is None
            self.mark_owned("zero_grad" if cleared else "gradients-changed", at, receiver)
            return
        if name == "data" and not isinstance(receiver, (Instance, Class)):
            # of a tensor; an object of the tree may call anything its data
            self.mark("data-written", at)
            return
        if isinstance(receiver, Class):
            # in the state: classes of imported modules outlive a run
            self.class_attributes.add(name)
            self.s.set((receiver.info.oid, name), value)
            self.stored(value, Carrier("attribute", receiver.info.oid, name), at)
            return
        if isinstance(receiver, Unknown) and receiver.module is not None:
            receiver = receiver.module
        oid = getattr(receiver, "oid", None)
        if isinstance(oid, int):
            if isinstance(receiver, Unknown):
                self.put_into(receiver, name, value)
            else:
                self.s.set((oid, name), value)
                self.attributes.setdefault(oid, {})[name] = None
            self.stored(value, Carrier("attribute", oid, name), at)
            if isinstance(receiver, Unknown):
                self.escape(value, "stored on an object that cannot be seen") if not receiver.data else None
        elif isinstance(receiver, TreeModule):
            self.set_module_member(receiver, name, value, at)
        else:
            self.escape_all([value], "stored where it cannot be followed")
