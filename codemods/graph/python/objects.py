"""Attributes of objects of the tree and of modules: kept on them, or given by their classes."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import (
    ALWAYS_WEIGHTED,
    LAYER_SETTINGS,
    MODULE_CONTAINERS,
    MODULE_EVIDENCE,
    NAMED_PARTS,
    TRANSPARENT_MODULE_METHODS,
)
from codemods.graph.model.kinds import CarrierKind, Escape, FunctionKind, UnseenKind
from codemods.graph.model.nodes import Carrier, Node, Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.state import MADE, PARTLY, SINCE
from codemods.graph.model.values import (
    NONE,
    NUMBER,
    Class,
    Const,
    Function,
    Instance,
    Library,
    Method,
    Module,
    Tensor,
    Tuple,
)
from codemods.graph.python.names import Names
from codemods.graph.run.contents import ANY, ITEMS, REST

_WITH_DATA = frozenset({"collections.UserDict", "collections.UserList"})
"""Containers that keep what they hold under ``data``."""

OF_OBJECTS = frozenset({"__setattr__", "__delattr__", "__getattribute__"})
"""Methods that every object has, by which its attributes are read and written."""

SAME = "[same]"
"""Set on a derived dict whose attributes are its elements."""

_OF_MODULES = frozenset({"buffers", "forward", "add_module", "append", "extend"})
"""Methods of modules beside those by which one is known."""


class Objects(Names):
    """The part of the engine that finds attributes of objects."""

    # what the layers above supply

    def call_method(self, receiver: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """Call a method of any value."""
        raise NotImplementedError

    def get_item(self, container: Value, key: Value, at: ast.AST) -> Value:
        """``container[key]``."""
        raise NotImplementedError

    def class_member(self, info: ClassInfo, name: str, at: ast.AST) -> Value | None:
        """What a class or its bases hold under ``name``, as written last."""
        if ANY in self.run.class_attributes:
            known = self._member_named(info, name, at)
            owners = [base.oid for base in info.mro() if name[:2] != "__" and self.may_be_called(base.oid, name)]
            held = [value for oid in owners if isinstance(value := self.run.s.get((oid, ANY)), Value)]
            return self.run.one_of([*([] if known is None else [known]), *held])
        return self._member_named(info, name, at)

    def _member_named(self, info: ClassInfo, name: str, at: ast.AST) -> Value | None:
        found = self._member_as_written(info, name, at)
        return self.run.settled((info.oid, name), found) if self.run.unsettled and found is not None else found

    def _member_as_written(self, info: ClassInfo, name: str, at: ast.AST) -> Value | None:
        if name not in self.run.class_attributes:
            return info.find(name)
        for base in info.mro():
            value = self.run.s.get((base.oid, name))
            if isinstance(value, Value):
                self.run.read(value, Carrier(CarrierKind.ATTRIBUTE, base.oid, name), at)
                return value
            if name in base.members:
                return base.members[name]
        return None

    def _object_attribute(self, receiver: Instance | Module, name: str, at: ast.AST) -> Value:
        anywhere = self.run.s.get((receiver.oid, ANY)) if self.may_be_called(receiver.oid, name) else None
        if isinstance(receiver, Instance) and "__getattribute__" in self.special_names(receiver.cls):
            found = self._by_method(receiver, "__getattribute__", [Const(name)], at)
            if found is not None:
                return found
        value = self.own_attribute(receiver, name)
        if value is not None and name in self.run.class_attributes and isinstance(receiver, Instance):
            member = self.class_member(receiver.cls, name, at)
            if isinstance(member, Function) and member.kind is FunctionKind.PROPERTY:
                # it hides what the object itself holds
                return self._bound(receiver, member, name, at)
        if value is not None:
            self.run.read(value, Carrier(CarrierKind.ATTRIBUTE, receiver.oid, name), at)
            return value
        if isinstance(receiver, Instance):
            found = self._by_class(receiver, name, anywhere, at)
            if found is not None:
                return found
        if self.run.is_module(receiver):
            found = self._of_any_module(receiver, name, at)
            if found is not None:
                return found
        if isinstance(receiver, Module):
            return self._of_layer(receiver, name)
        if receiver.leaf is not None and receiver.cls.layer:
            found = self._layer_attribute(receiver, receiver.leaf, name)
            if found is not None:
                return found
        return self._unlisted_of_object(receiver, name)

    def own_attribute(self, receiver: Instance | Module, name: str) -> Value | None:
        """What an object itself has under a name; None if nothing is known to have been written there."""
        value = self.run.s.get((receiver.oid, name))
        if not isinstance(value, Value):
            return None
        if self.run.unsettled:
            value = self.run.settled((receiver.oid, name), value)
        anywhere = self.run.s.get((receiver.oid, ANY))
        if not isinstance(anywhere, Value) or not self.may_be_called(receiver.oid, name):
            return value
        return value if self._written_since(receiver.oid, name) else self.run.join(value, anywhere)

    def _written_since(self, oid: int, name: str) -> bool:
        """Whether an attribute was written on all paths after all that was written under names that are not known."""
        s = self.run.s
        partly = any(s.get((oid, f"{PARTLY}{since}{name}")) for since in ("", SINCE))
        return bool(s.get((oid, MADE))) and s.get((oid, f"{SINCE}{name}")) is not None and not partly

    def _by_class(self, receiver: Instance, name: str, anywhere: object, at: ast.AST) -> Value | None:
        """What the class of an object says of an attribute that is not its own; None if nothing.

        ``anywhere`` is what was written under names that are not known.
        """
        if name == "__class__":
            return Class(receiver.cls)
        member = self.class_member(receiver.cls, name, at)
        if isinstance(member, Instance) and member.cls.find("__get__") is not None:
            args = [receiver, Class(receiver.cls)]
            return self._by_method(member, "__get__", args, at) or self.run.taken(at, member, name)
        if isinstance(member, Function):
            return self._bound(receiver, member, name, at)
        if isinstance(anywhere, Value):
            self.run.read(anywhere, Carrier(CarrierKind.ATTRIBUTE, receiver.oid, ANY), at)
            return anywhere if member is None else self.run.join(member, anywhere)
        if member is not None:
            return member
        if receiver.cls.find("__getattr__") is not None and not name.startswith("__"):
            return self._by_method(receiver, "__getattr__", [Const(name)], at) or self.run.unknown(name)
        return self._by_container(receiver, name, at)

    def _bound(self, receiver: Instance, member: Function, name: str, at: ast.AST) -> Value:
        """What an object gives for a function of its class."""
        if member.kind is FunctionKind.PROPERTY:
            return self.call_function(member, Arguments(), at, receiver=receiver)
        if member.kind is FunctionKind.STATIC_METHOD:
            return member
        return Method(Class(receiver.cls) if member.kind is FunctionKind.CLASS_METHOD else receiver, member, name)

    def _by_container(self, receiver: Instance, name: str, at: ast.AST) -> Value | None:
        """What the container says of an attribute from which the class of an object is derived."""
        if isinstance(self.run.s.get((receiver.oid, SAME)), Value):
            inner = self.run.contained(receiver)
            return self.get_item(inner, Const(name), at) if inner is not None else self.run.unknown(name)
        if not receiver.cls.container or self.run.is_module(receiver):
            return None
        # a method of the container, or an attribute of its class
        inner = self.run.contained(receiver)
        data = name == "data" and inner is not None and receiver.cls.derives(_WITH_DATA)
        return inner if data and inner is not None else Method(receiver, None, name)

    def _of_any_module(self, receiver: Instance | Module, name: str, at: ast.AST) -> Value | None:
        """An attribute that every ``nn.Module`` has."""
        if name == "module":
            return receiver
        if name == "_modules" and _is_looked_up(self.run.frame.file.parent(at)):
            return self._parts_by_name(receiver)
        if name == "_buffers" and (computed := self._computed_by_name(receiver, at)) is not None:
            return computed
        if name == "training":
            return NUMBER
        known = name in MODULE_EVIDENCE or name in TRANSPARENT_MODULE_METHODS or name in _OF_MODULES
        return Method(receiver, None, name) if known or name.startswith(("register_", "_register_")) else None

    def _of_layer(self, receiver: Module, name: str) -> Value:
        """An attribute of a module of the library, or of one that cannot be seen."""
        if name in ("weight", "bias") and receiver.leaf is not None:
            for use in receiver.leaf.children if receiver.leaf in self.run.renewed else ():
                use.escapes.append(Escape.WEIGHT_LEFT)
            return Tensor(receiver.leaf if not self.run.frozen(receiver.leaf) else None)
        if (part := self.torch.named_part(receiver, name)) is not None:
            return part
        known = NAMED_PARTS.get((receiver.name, name), "")
        if receiver.leaf is None or not (known or not receiver.name):
            return Method(receiver, None, name)
        # part of a module that cannot be seen: most often a submodule with parameters among the module's own
        child = Module(self.run.new_oid(), known, receiver.leaf)
        self.run.s.set((receiver.oid, name), child)
        return child

    def _unlisted_of_object(self, receiver: Instance, name: str) -> Value:
        """An attribute of an object of which nothing is known; remembered, so that what is learned about it is learned
        once."""
        external = receiver.cls.family.startswith("external")
        if name in OF_OBJECTS:
            return Method(receiver, None, name)
        if name.startswith("__") and not external:
            return self.run.unknown(name)
        made = self.run.lost(name, UnseenKind.ATTRIBUTE)
        self.run.s.set((receiver.oid, name), made)
        if not external:
            self.run.attributes.setdefault(receiver.oid, {})[name] = None
        else:
            self.run.guessed.setdefault(receiver.oid, {})[name] = None
        return made

    def _parts_by_name(self, receiver: Instance | Module) -> Value:
        """The dict of the modules in a module."""
        run = self.run
        leaf = receiver.leaf if isinstance(receiver, Module) and not receiver.name else None
        if isinstance(receiver, Module) and receiver.name not in MODULE_CONTAINERS and leaf is None:
            return Method(receiver, None, "_modules")
        made = run.new_mapping()
        if leaf is not None:
            # the parts of a module that cannot be seen
            run.s.set((made.oid, REST), Module(run.new_oid(), "", leaf))
            return made
        seen: set[int] = set()
        named = {name: run.s.get((receiver.oid, name)) for name in run.attributes.get(receiver.oid, ())}
        for name, part in named.items():
            if isinstance(part, Value) and name != ANY and all(map(run.is_module, run.options(part))):
                seen.add(id(part))
                self.torch.put_item(made, Const(name), part)
        for place, part in enumerate(run.s.get((receiver.oid, ITEMS)) or ()):
            if id(part) not in seen:
                self.torch.put_item(made, Const(str(place)), part)
        more = [v for v in (run.s.get((receiver.oid, cell)) for cell in (ANY, REST)) if isinstance(v, Value)]
        if more:
            run.s.set((made.oid, REST), run.one_of(more))
        return made

    def _computed_by_name(self, receiver: Instance | Module, at: ast.AST) -> Value | None:
        """The dict of the buffers of a module, if one of them may hold what was computed."""
        run = self.run
        named = {name: run.s.get((receiver.oid, name)) for name in run.attributes.get(receiver.oid, ())}
        kept = {n: v for n, v in named.items() if isinstance(v, Value) and not run.is_module(v) and run.nodes_of(v)}
        if all(node.leaf for value in kept.values() for node in run.nodes_of(value)):
            return None
        if not _is_looked_up(run.frame.file.parent(at)):
            return run.taken(at, Tuple(tuple(kept.values())), "_buffers")
        made = run.new_mapping()
        for name, value in kept.items():
            self.torch.put_item(made, Const(name), value)
        return made

    def _layer_attribute(self, receiver: Instance, leaf: Node, name: str) -> Value | None:
        """What an object has of the layer that its class derives from."""
        if name in LAYER_SETTINGS:
            return NUMBER
        if name not in ("weight", "bias"):
            return None
        parameter = Tensor(leaf if not self.run.frozen(leaf) else None)
        # there may be none: ``bias=False``, ``affine=False``
        certain = name == "weight" and receiver.cls.layer in ALWAYS_WEIGHTED
        return parameter if certain else self.run.join(parameter, NONE)

    def _by_method(self, receiver: Instance, method: str, given: list[Value], at: ast.AST) -> Value | None:
        """What a special method of an object's class makes of ``given``; None if it is no function of the tree, or is
        running already."""
        found = receiver.cls.find(method)
        if isinstance(found, Library) and receiver.cls.container:
            # __getattr__ = dict.__getitem__
            return self.call_method(receiver, found.path.rpartition(".")[2], Arguments(None, given), at)
        if not isinstance(found, Function) or found.definition in self.run.active:
            return None
        return self.call_function(found, Arguments(None, given), at, receiver=receiver)

    def special_names(self, cls: ClassInfo) -> frozenset[str]:
        """The special methods among ``__getattribute__`` and ``__setattr__`` that a class defines in the tree."""
        return frozenset(name for name in ("__getattribute__", "__setattr__") if cls.find(name) is not None)


def _is_looked_up(user: ast.AST | None) -> bool:
    """Whether a dict is only read where an expression stands that gives it."""
    if isinstance(user, ast.Attribute):
        return user.attr in ("keys", "values", "items", "get")
    return isinstance(user, (ast.For, ast.comprehension)) or (
        isinstance(user, ast.Subscript) and isinstance(user.ctx, ast.Load)
    )
