"""Attributes of any value are read and written."""

from __future__ import annotations

import ast

from codemods.graph.model import facts
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import PLAIN
from codemods.graph.model.nodes import Carrier, Node, Unseen, Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.values import (
    DATA,
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
    Method,
    Module,
    Namespace,
    Optimizer,
    Parameters,
    Partial,
    Plain,
    Sequence,
    Super,
    Tensor,
    TreeModule,
    Tuple,
    Unknown,
)
from codemods.graph.python.names import Names, library_member
from codemods.graph.run.contents import ANY, ITEMS, REST

_WITH_DATA = frozenset({"collections.UserDict", "collections.UserList"})
"""Containers that keep what they hold under ``data``."""

SAME = "[same]"
"""Set on a derived dict whose attributes are its elements."""


_NO_TENSORS = frozenset({"plain", "module", "lightning", "dataset", "optimizer"})
"""Families of classes of which no object is a tensor."""


class Attributes(Names):
    """The part of the engine that finds attributes."""

    # what the layers above supply

    def call_method(self, receiver: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """Call a method of any value."""
        raise NotImplementedError

    def get_item(self, container: Value, key: Value, at: ast.AST) -> Value:
        """``container[key]``."""
        raise NotImplementedError

    def get_attribute(self, receiver: Value, name: str, at: ast.AST) -> Value:
        """Read an attribute of any value."""
        if isinstance(receiver, Join):
            options = [o for o in receiver.options if not isinstance(o, (Const, Plain))]
            # where it is a tuple, this raises, and what follows is of the others alone
            options = [o for o in options if not (isinstance(o, Tuple) and o.lacks(name))] or options
            found = [self.get_attribute(o, name, at) for o in options]
            result = self.one_of(found)
            return result if result is not None else self.unknown(name)
        if name == "__dict__" and isinstance(receiver, (Instance, Module, Unknown)):
            return Namespace(receiver.oid, receiver)
        if isinstance(receiver, (Instance, Module)):
            return self._object_attribute(receiver, name, at)
        if self.names_kept and isinstance(receiver, (Tensor, Function)):
            oid = self.names_kept.get(receiver.definition if isinstance(receiver, Function) else receiver, 0)
            kept = self.s.get((oid, name))
            if isinstance(kept, Value):
                self.read(kept, Carrier("attribute", oid, name), at)
                return kept
        if isinstance(receiver, Tensor):
            self.note_attribute(receiver, name, at)
            value = self.tensor_attribute(receiver, name, at)
            return value if value is not None else self._unlisted(receiver, name, at)
        if isinstance(receiver, Tuple):
            if name in receiver.names:
                return receiver.items[receiver.names.index(name)]
            return NONE if receiver.lacks(name) else self._unlisted(receiver, name, at)
        if isinstance(receiver, Unknown):
            return self.unknown_attribute(receiver, name, at)
        if isinstance(receiver, Library):
            return library_member(receiver.path, name)
        if isinstance(receiver, Partial) and name in ("func", "args", "keywords"):
            return self._part_of_partial(receiver, name)
        if isinstance(receiver, TreeModule):
            file = self.importer.file(receiver.path) if name == "__dict__" and receiver.path[-1:] != "/" else None
            if file is not None:
                return Namespace(self.load_module(file), receiver)
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
                if owned.kind == "property":
                    return self.call_function(owned, Arguments(), at, receiver=receiver.receiver)
                return Method(receiver.receiver, owned, name)
            return owned if owned is not None else Method(receiver, None, name)
        if isinstance(receiver, (Optimizer, Sequence, Mapping)):
            kept = self.s.get((receiver.oid, name))
            if isinstance(kept, Value):
                return kept
        if isinstance(receiver, Optimizer) and name in ("param_groups", "state", "defaults"):
            return self.unknown(name)
        if isinstance(receiver, Parameters):
            if name == "data":
                return Tensor(None)
            if name == "grad":
                self.mark_owned("grad-read", at, receiver)
                return DATA
            if name == "requires_grad":
                return NUMBER
            if receiver.element and name in ("T", "mT", "H", "mH", "real", "imag"):
                return self.tensor_op(at, name, [receiver], saves=False)
        return Method(receiver, None, name)

    def _unlisted(self, receiver: Tensor | Tuple, name: str, at: ast.AST) -> Value:
        """An attribute that is in no table: part of what it is asked of."""
        known = facts.BOUND_METHODS if isinstance(receiver, Tensor) else ("index", "count", "_replace", "_asdict")
        writes = name.endswith("_") and not name.endswith("__")
        if writes:
            # whoever gets the method may call it
            self.alter(receiver, "values", at)
        if writes or name in known:
            return Method(receiver, None, name)
        if isinstance(receiver, Tensor) and receiver.node is not None:
            return self.unknown(name, self.part(at, receiver, name))
        return self.opaque(at, name, [receiver]) if self.nodes_of(receiver) else self.lost(name, "attribute")

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

    def kept_under(self, receiver: Tensor | Function) -> int:
        """The identity under which a tensor or a function keeps attributes that code gave it."""
        key = receiver.definition if isinstance(receiver, Function) else receiver
        if key not in self.names_kept:
            self.names_kept[key] = self.new_oid()
        return self.names_kept[key]

    def _part_of_partial(self, receiver: Partial, name: str) -> Value:
        if name == "func":
            return receiver.function
        if name == "args":
            return Tuple(receiver.args)
        made = self.new_mapping()
        for key, value in receiver.kwargs:
            self.put_item(made, Const(key), value)
        return made

    def _object_attribute(self, receiver: Instance | Module, name: str, at: ast.AST) -> Value:
        anywhere = self.s.get((receiver.oid, ANY)) if self.may_be_called(receiver.oid, name) else None
        if isinstance(receiver, Instance) and "__getattribute__" in self.special_names(receiver.cls):
            found = self._by_method(receiver, "__getattribute__", [Const(name)], at)
            if found is not None:
                return found
        value = self.s.get((receiver.oid, name))
        if isinstance(value, Value):
            self.read(value, Carrier("attribute", receiver.oid, name), at)
            return value if not isinstance(anywhere, Value) else self.join(value, anywhere)
        if isinstance(receiver, Instance):
            if name == "__class__":
                return Class(receiver.cls)
            member = self.class_member(receiver.cls, name, at)
            if isinstance(member, Instance) and member.cls.find("__get__") is not None:
                args = [receiver, Class(receiver.cls)]
                return self._by_method(member, "__get__", args, at) or self.taken(at, member, name)
            if isinstance(member, Function):
                if member.kind == "property":
                    return self.call_function(member, Arguments(), at, receiver=receiver)
                if member.kind == "staticmethod":
                    return member
                if member.kind == "classmethod":
                    return Method(Class(receiver.cls), member, name)
                return Method(receiver, member, name)
            if member is not None and not isinstance(anywhere, Value):
                return member
            if isinstance(anywhere, Value):
                self.read(anywhere, Carrier("attribute", receiver.oid, ANY), at)
                return anywhere if member is None else self.join(member, anywhere)
            if receiver.cls.find("__getattr__") is not None and not name.startswith("__"):
                return self._by_method(receiver, "__getattr__", [Const(name)], at) or self.unknown(name)
            if isinstance(self.s.get((receiver.oid, SAME)), Value):
                inner = self.contained(receiver)
                return self.get_item(inner, Const(name), at) if inner is not None else self.unknown(name)
            if receiver.cls.container and not self.is_module(receiver):
                # a method of the container, or an attribute of its class
                inner = self.contained(receiver)
                data = name == "data" and inner is not None and receiver.cls.derives(_WITH_DATA)
                return inner if data and inner is not None else Method(receiver, None, name)
        if self.is_module(receiver):
            if name == "module":
                return receiver
            if name == "_modules" and _is_looked_up(self.frame.file.parent(at)):
                return self._parts_by_name(receiver)
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
                    for use in receiver.leaf.children if receiver.leaf in self.renewed else ():
                        use.escapes.append("its weight stays behind, and is read")
                    return Tensor(receiver.leaf if not self.frozen(receiver.leaf) else None)
                if (part := self.named_part(receiver, name)) is not None:
                    return part
                known = facts.NAMED_PARTS.get((receiver.name, name), "")
                if receiver.leaf is not None and (known or not receiver.name):
                    # part of a module that cannot be seen: most often a submodule with parameters among the module's
                    # own
                    child = Module(self.new_oid(), known, receiver.leaf)
                    self.s.set((receiver.oid, name), child)
                    return child
                return Method(receiver, None, name)
        if isinstance(receiver, Instance) and receiver.leaf is not None and receiver.cls.layer:
            found = self._layer_attribute(receiver, receiver.leaf, name)
            if found is not None:
                return found
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

    def _parts_by_name(self, receiver: Instance | Module) -> Value:
        """The dict of the modules in a module."""
        if isinstance(receiver, Module) and receiver.name not in facts.MODULE_CONTAINERS:
            return Method(receiver, None, "_modules")
        made = self.new_mapping()
        seen: set[int] = set()
        named = {name: self.s.get((receiver.oid, name)) for name in self.attributes.get(receiver.oid, ())}
        for name, part in named.items():
            if isinstance(part, Value) and name != ANY and all(map(self.is_module, self.options(part))):
                seen.add(id(part))
                self.put_item(made, Const(name), part)
        for place, part in enumerate(self.s.get((receiver.oid, ITEMS)) or ()):
            if id(part) not in seen:
                self.put_item(made, Const(str(place)), part)
        more = [v for v in (self.s.get((receiver.oid, cell)) for cell in (ANY, REST)) if isinstance(v, Value)]
        if more:
            self.s.set((made.oid, REST), self.one_of(more))
        return made

    def _layer_attribute(self, receiver: Instance, leaf: Node, name: str) -> Value | None:
        """What an object has of the layer that its class derives from."""
        if name in facts.LAYER_SETTINGS:
            return NUMBER
        if name not in ("weight", "bias"):
            return None
        parameter = Tensor(leaf if not self.frozen(leaf) else None)
        # there may be none: ``bias=False``, ``affine=False``
        certain = name == "weight" and receiver.cls.layer in facts.ALWAYS_WEIGHTED
        return parameter if certain else self.join(parameter, NONE)

    def _by_method(self, receiver: Instance, method: str, given: list[Value], at: ast.AST) -> Value | None:
        """What a special method of an object's class makes of ``given``; None if it is no function of the tree, or is
        running already."""
        found = receiver.cls.find(method)
        if isinstance(found, Library) and receiver.cls.container:
            # __getattr__ = dict.__getitem__
            return self.call_method(receiver, found.path.rpartition(".")[2], Arguments(None, given), at)
        if not isinstance(found, Function) or found.definition in self.active:
            return None
        return self.call_function(found, Arguments(None, given), at, receiver=receiver)

    def special_names(self, cls: ClassInfo) -> frozenset[str]:
        """The special methods among ``__getattribute__`` and ``__setattr__`` that a class defines in the tree."""
        return frozenset(name for name in ("__getattribute__", "__setattr__") if cls.find(name) is not None)

    def unknown_attribute(self, receiver: Unknown, name: str, at: ast.AST) -> Value:
        """An attribute of something that cannot be seen, or its element under ``[key]``."""
        self.note_attribute(receiver, name, at)
        value = self.s.get((receiver.oid, name))
        anywhere = self.s.get((receiver.oid, ANY))
        if isinstance(value, Value):
            self.read(value, Carrier("attribute", receiver.oid, name), at)
            return value if not isinstance(anywhere, Value) else self.join(value, anywhere)
        if isinstance(anywhere, Value):
            self.read(anywhere, Carrier("attribute", receiver.oid, ANY), at)
            if self.nodes_of(anywhere):
                return self.taken(at, receiver, name)
        if receiver.module is not None:
            return self._object_attribute(receiver.module, name, at)
        if name in ("data", "grad", "grad_fn", "requires_grad", "shape", "dtype", "device", "is_cuda", "ndim"):
            if name == "data" and receiver.path in facts.PACKING:
                return self.tensor_op(at, name, [receiver], saves=False)
            tensor_value = self.tensor_attribute(receiver, name, at)
            if tensor_value is not None:
                return tensor_value
            if name == "data":
                self.use(receiver, "data", at)
                if receiver.node is not None:
                    return self.detached(receiver, scalar=receiver.node.scalar)
        if name in PLAIN["Distribution"] and receiver.path.startswith("torch.distributions."):
            return NUMBER
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
            member.shadow = tuple(o for o in unseen if inherited or (inherited is None and o.kind in ("call", "lost")))
        return member

    def set_attribute(self, receiver: Value, name: str, value: Value, at: ast.AST) -> None:
        if isinstance(receiver, Join):
            for option in receiver.options:
                if not isinstance(option, (Const, Plain)):
                    self.set_attribute(option, name, value, at)
            return
        if name in ("requires_grad", "volatile", "data"):
            self.alter(receiver, "shape" if name == "data" else name, at)
        # an object of the tree may call anything its gradient, or its data
        own = isinstance(receiver, Class) or (isinstance(receiver, Instance) and receiver.cls.family in _NO_TENSORS)
        if name == "requires_grad" and not (own or self.is_module(receiver)):
            truth = self.truth(value)
            if truth is not False:
                self.mark("requires_grad", at)
            owner: Value = receiver.owner if isinstance(receiver, Parameters) else receiver
            self.freeze(owner, None if truth is None else not truth)
            return
        if name == "grad" and not own:
            cleared = isinstance(value, Const) and value.value is None
            self.mark_owned("zero_grad" if cleared else "gradients-changed", at, receiver)
            return
        if name == "data" and not isinstance(receiver, (Instance, Class)):
            # of a tensor
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
        if isinstance(receiver, Instance) and self._set_by_class(receiver, name, value, at):
            return
        if name == "__dict__":
            self._replace_names(receiver, value, at)
            return
        oid = getattr(receiver, "oid", None)
        if isinstance(receiver, (Tensor, Function)):
            oid = self.kept_under(receiver)
        if isinstance(oid, int):
            if name == ANY:
                # whatever it is called: beside what lies there already
                old = self.s.get((oid, ANY))
                value = self.join(old, value) if isinstance(old, Value) else value
                if not isinstance(old, Value):
                    self.named_as.setdefault(oid, [])
                if oid in self.named_as:
                    self.named_as[oid].append(self.naming)
            if isinstance(receiver, Unknown):
                self.put_into(receiver, name, value)
            else:
                new = name not in self.attributes.setdefault(oid, {})
                self.s.set((oid, name), value)
                self.attributes[oid][name] = None
                if new and isinstance(receiver, Instance) and receiver.cls.layer in facts.MODULE_CONTAINERS:
                    # its parts run in the order in which it got them
                    self._put_new_part(receiver, value)
            self.stored(value, Carrier("attribute", oid, name), at)
            if isinstance(receiver, Unknown):
                self.escape(value, "stored on an object that cannot be seen") if not receiver.data else None
        elif isinstance(receiver, TreeModule):
            self.set_module_member(receiver, name, value, at)
        else:
            self.escape_all([value], "stored where it cannot be followed")

    def _put_new_part(self, container: Instance, value: Value) -> None:
        if self.is_module(value):
            self.put_part(container, value)

    def set_named(self, receiver: Value, name: Value, value: Value, at: ast.AST) -> None:
        if isinstance(name, Const) and isinstance(name.value, str):
            self.set_attribute(receiver, name.value, value, at)
            return
        self.naming = name if isinstance(name, Plain) else TEXT
        self.set_attribute(receiver, ANY, value, at)
        self.naming = TEXT

    def may_be_called(self, oid: int, name: str) -> bool:
        """Whether what was written to an object under a computed name may lie under ``name``."""
        return oid not in self.named_as or any(text.may_be(name) for text in self.named_as[oid])

    def _set_by_class(self, receiver: Instance, name: str, value: Value, at: ast.AST) -> bool:
        """Let the class of an object set an attribute, by a property, a descriptor or ``__setattr__``; whether there is
        nothing left to do."""
        for info in receiver.cls.mro():
            setter = info.setters.get(name)
            if setter is not None:
                if setter.definition in self.active:
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
        for option in self.options(value):
            if isinstance(option, Mapping):
                self._names_from(receiver, option, at)
            elif isinstance(option, Instance) and option is receiver:
                # class A(dict): self.__dict__ = self
                self.s.set((option.oid, SAME), NONE)
            elif isinstance(option, Namespace):
                for name, held in self.named_in(option).items():
                    self.set_attribute(receiver, name, held, at)
            else:
                self.set_attribute(receiver, ANY, self.taken(at, option), at)

    def _names_from(self, receiver: Value, mapping: Mapping, at: ast.AST) -> None:
        for key in self.mapping_keys(mapping):
            held = self.s.get((mapping.oid, key))
            if isinstance(held, Value):
                name = key[1] if isinstance(key, tuple) and isinstance(key[1], str) else ANY
                self.set_attribute(receiver, name, held, at)


def _is_looked_up(user: ast.AST | None) -> bool:
    """Whether a dict is only read where an expression stands that gives it."""
    if isinstance(user, ast.Attribute):
        return user.attr in ("keys", "values", "items", "get")
    return isinstance(user, (ast.For, ast.comprehension)) or (
        isinstance(user, ast.Subscript) and isinstance(user.ctx, ast.Load)
    )
