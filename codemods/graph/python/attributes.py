"""Attributes of any value are read."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import PLAIN
from codemods.graph.model.facts.layers import PACKING
from codemods.graph.model.facts.operations import BOUND_METHODS
from codemods.graph.model.kinds import CarrierKind, FunctionKind, Marked, NodeKind, UnseenKind, UseKind
from codemods.graph.model.nodes import Carrier, Unseen, Value
from codemods.graph.model.values import (
    NONE,
    NUMBER,
    Class,
    Const,
    EnumMember,
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
from codemods.graph.python.names import library_member
from codemods.graph.python.objects import OF_OBJECTS, Objects
from codemods.graph.run.contents import ANY
from codemods.graph.run.core import known_as
from codemods.terms.words import words


def has_attributes(value: Value) -> bool:
    """Whether code may give a value attributes: of constants only members of enumerations."""
    return isinstance(value.value, EnumMember) if isinstance(value, Const) else not isinstance(value, Plain)


class Attributes(Objects):
    """The part of the engine that reads attributes."""

    def get_attribute(self, receiver: Value, name: str, at: ast.AST) -> Value:
        """Read an attribute of any value."""
        if name in _SHOWING:
            self.run.trace.complete = False
        read = _READ.get(receiver.__class__)
        return read(self, receiver, name, at) if read is not None else Method(receiver, None, name)

    def _attribute_of_each(self, receiver: Join, name: str, at: ast.AST) -> Value:
        options = [o for o in receiver.options if has_attributes(o)]
        # where it is a tuple, this raises, and what follows is of the others alone
        options = [o for o in options if not (isinstance(o, Tuple) and o.lacks(name))] or options
        # and so does a module of a file that has none
        options = [o for o in options if not (isinstance(o, TreeModule) and not self.has_member(o, name))] or options
        result = self.run.one_of([self.get_attribute(o, name, at) for o in options])
        return result if result is not None else self.run.unknown(name)

    def _attribute_of_object(self, receiver: Instance | Module, name: str, at: ast.AST) -> Value:
        if name == "__dict__":
            return Namespace(receiver.oid, receiver)
        return self._object_attribute(receiver, name, at)

    def _attribute_of_unknown(self, receiver: Unknown, name: str, at: ast.AST) -> Value:
        if name == "__dict__":
            variables = receiver.oid in (self.run.frame.module_globals, self.script)
            return Namespace(receiver.oid, None if variables else receiver)
        if receiver.oid in (self.run.frame.module_globals, self.script):
            return self.get_item(Namespace(receiver.oid), Const(name), at)
        return self.unknown_attribute(receiver, name, at)

    def _attribute_of_tensor(self, receiver: Tensor, name: str, at: ast.AST) -> Value:
        kept = self._given_by_code(receiver, name, at)
        if kept is not None:
            return kept
        self.run.note_attribute(receiver, name, at)
        value = self.torch.tensor_attribute(receiver, name, at)
        return value if value is not None else self._unlisted(receiver, name, at)

    def _attribute_of_function(self, receiver: Function, name: str, at: ast.AST) -> Value:
        if name == "__dict__":
            return Namespace(self.run.kept_under(receiver), receiver)
        kept = self._given_by_code(receiver, name, at)
        if kept is None and name == "__defaults__" and receiver.defaults:
            # what lies in them is changed for later calls
            return Tuple(tuple(receiver.defaults))
        return kept if kept is not None else Method(receiver, None, name)

    def _given_by_code(self, receiver: Tensor | Function | Const, name: str, at: ast.AST) -> Value | None:
        """An attribute that code gave a tensor, a function or a member of an enumeration."""
        if not self.run.names_kept:
            return None
        oid = self.run.names_kept.get(known_as(receiver), 0)
        kept = self.run.s.get((oid, name))
        if not isinstance(kept, Value):
            return None
        self.run.read(kept, Carrier(CarrierKind.ATTRIBUTE, oid, name), at)
        return kept

    def _attribute_of_constant(self, receiver: Const, name: str, at: ast.AST) -> Value:
        member = receiver.value
        if not isinstance(member, EnumMember):
            return Method(receiver, None, name)
        kept = self._given_by_code(receiver, name, at)
        if kept is not None:
            return kept
        if name in ("name", "_name_"):
            return Const(member.key[2])
        if name in ("value", "_value_"):
            return member.of
        found = self.class_member(member.cls, name, at)
        if isinstance(found, Function) and found.kind is FunctionKind.PROPERTY:
            return self.call_function(found, Arguments(), at, receiver=receiver)
        return Method(receiver, found if isinstance(found, Function) else None, name)

    def _attribute_of_tuple(self, receiver: Tuple, name: str, at: ast.AST) -> Value:
        if name in receiver.names:
            return receiver.items[receiver.names.index(name)]
        return NONE if receiver.lacks(name) else self._unlisted(receiver, name, at)

    def _attribute_of_partial(self, receiver: Partial, name: str, at: ast.AST) -> Value:
        if name == "func":
            return receiver.function
        if name == "args":
            return Tuple(receiver.args)
        if name != "keywords":
            return Method(receiver, None, name)
        made = self.run.new_mapping()
        for key, value in receiver.kwargs:
            self.torch.put_item(made, Const(key), value)
        return made

    def _attribute_of_file(self, receiver: TreeModule, name: str, at: ast.AST) -> Value:
        file = self.importer.file(receiver.path) if name == "__dict__" and receiver.path[-1:] != "/" else None
        if file is not None:
            return Namespace(self.load_module(file), receiver)
        return self.module_member(receiver, name)

    def _attribute_of_class(self, receiver: Class, name: str, at: ast.AST) -> Value:
        if name == "__dict__":
            return Namespace(receiver.info.oid, receiver)
        owned = self.class_member(receiver.info, name, at)
        if isinstance(owned, Function) and owned.kind is FunctionKind.CLASS_METHOD:
            return Method(receiver, owned, name)
        if owned is None and name == "apply" and receiver.info.family == "function":
            return Method(receiver, None, name)
        if owned is None and receiver.info.calls_differently:
            # what a metaclass gives is not followed
            return self.run.unseen_call(self.run.unknown(name), name)
        if owned is None:
            owned = self._by_metaclass(receiver, name, at)
        if owned is None and receiver.info.container in ("dict", "list", "set", "deque") and name in _OF_CONTAINERS:
            return Library(f"builtins.{receiver.info.container}.{name}")
        if owned is None and name in OF_OBJECTS:
            return Library(f"builtins.object.{name}")
        return owned if owned is not None else self.run.unknown(name)

    def _by_metaclass(self, receiver: Class, name: str, at: ast.AST) -> Value | None:
        """An attribute that a class has of its metaclass."""
        owned = receiver.info.of_metaclass(name)
        if isinstance(owned, Function):
            if owned.kind is FunctionKind.PROPERTY:
                return self.call_function(owned, Arguments(), at, receiver=receiver)
            return Method(receiver, owned, name)
        found = receiver.info.of_metaclass("__getattr__") if owned is None and not name.startswith("__") else None
        if isinstance(found, Function):
            return self.call_function(found, Arguments(None, [Const(name)]), at, receiver=receiver)
        return owned

    def _attribute_of_super(self, receiver: Super, name: str, at: ast.AST) -> Value:
        owned = receiver.cls.find(name, after=receiver.cls)
        if isinstance(owned, Function):
            if owned.kind is FunctionKind.PROPERTY:
                return self.call_function(owned, Arguments(), at, receiver=receiver.receiver)
            return Method(receiver.receiver, owned, name)
        return owned if owned is not None else Method(receiver, None, name)

    def _attribute_of_container(self, receiver: Sequence | Mapping, name: str, at: ast.AST) -> Value:
        kept = self.run.s.get((receiver.oid, name))
        return kept if isinstance(kept, Value) else Method(receiver, None, name)

    def _attribute_of_optimizer(self, receiver: Optimizer, name: str, at: ast.AST) -> Value:
        kept = self.run.s.get((receiver.oid, name))
        if isinstance(kept, Value):
            return kept
        if name not in ("param_groups", "state", "defaults"):
            return Method(receiver, None, name)
        # what is put into it is still there when it is asked for again
        made = self.run.unknown(name)
        groups = (
            self.run.new_sequence([], rest=self.run.unknown("group", data=True)) if name == "param_groups" else made
        )
        self.run.s.set((receiver.oid, name), groups)
        return groups

    def _attribute_of_parameters(self, receiver: Parameters, name: str, at: ast.AST) -> Value:
        if name == "data":
            return Tensor(None)
        if name == "grad":
            self.run.mark_owned(Marked.GRADIENT_READ, at, receiver)
            return self.run.gradient()
        if name == "requires_grad":
            return NUMBER
        if receiver.element and name in ("T", "mT", "H", "mH", "real", "imag"):
            return self.run.tensor_op(at, name, [receiver], saves=False)
        return Method(receiver, None, name)

    def _unlisted(self, receiver: Tensor | Tuple, name: str, at: ast.AST) -> Value:
        """An attribute that is in no table: part of its object."""
        run = self.run
        known = BOUND_METHODS if isinstance(receiver, Tensor) else ("index", "count", "_replace", "_asdict")
        writes = name.endswith("_") and not name.endswith("__")
        if writes:
            # whoever gets the method may call it
            run.alter(receiver, run.altered_by(name), at, sure=False)
        if writes or name in known:
            return Method(receiver, None, name)
        if isinstance(receiver, Tensor) and receiver.node is not None:
            return run.unknown(name, run.part(at, receiver, name))
        return run.opaque(at, name, [receiver]) if run.nodes_of(receiver) else run.lost(name, UnseenKind.ATTRIBUTE)

    def unknown_attribute(self, receiver: Unknown, name: str, at: ast.AST) -> Value:
        """An attribute of something that cannot be seen, or its element under ``[key]``."""
        run = self.run
        run.note_attribute(receiver, name, at)
        value = run.s.get((receiver.oid, name))
        anywhere = run.s.get((receiver.oid, ANY))
        if isinstance(value, Value):
            value = run.settled((receiver.oid, name), value)
            run.read(value, Carrier(CarrierKind.ATTRIBUTE, receiver.oid, name), at)
            return value if not isinstance(anywhere, Value) else run.join(value, anywhere)
        if isinstance(anywhere, Value):
            run.read(anywhere, Carrier(CarrierKind.ATTRIBUTE, receiver.oid, ANY), at)
            if run.nodes_of(anywhere):
                return run.taken(at, receiver, name)
            if any(isinstance(origin, Unseen) for origin in run.shadow_of([anywhere])):
                return run.lost(name)
        if receiver.module is not None:
            return self._object_attribute(receiver.module, name, at)
        if name in _OF_TENSORS:
            if name == "data" and receiver.path in PACKING:
                return run.tensor_op(at, name, [receiver], saves=False)
            tensor_value = self.torch.tensor_attribute(receiver, name, at)
            if tensor_value is not None:
                return tensor_value
            if name == "data":
                run.use(receiver, UseKind.DATA, at)
                if receiver.node is not None:
                    return run.detached(receiver, scalar=receiver.node.scalar)
        if name in PLAIN["Distribution"] and receiver.path.startswith("torch.distributions."):
            return NUMBER
        if receiver.node is not None:
            return run.unknown(name, run.part(at, receiver, name))
        member = receiver.members.get(name)
        if member is None:
            held = run.held_in([receiver]) if receiver.data else []
            if held:
                # what wrote it may have computed it of what was put there
                return run.unknown(name, run.node(at, NodeKind.CALL, held, certain=False, label=name))
            member = receiver.members[name] = run.unknown(
                f"{receiver.origin}.{name}", data=receiver.data, public=receiver.public
            )
            member.owner = receiver
            # an element of an argument is as attached as the argument; its attributes are settings most often
            inherited = name != "data" and (name.startswith("[") or None)
            unseen = [o for o in receiver.shadow if isinstance(o, Unseen)]
            member.shadow = tuple(
                o for o in unseen if inherited or (inherited is None and o.kind in (UnseenKind.CALL, UnseenKind.LOST))
            )
        return member


_SHOWING = words("f_locals f_globals __closure__")
"""Attributes that show the variables of a function (docs: inspect)."""

_OF_CONTAINERS = frozenset({*dir(dict), *dir(list), *dir(set)}) - frozenset(dir(object))
"""Methods of containers that a class derived from one hands out."""

_OF_TENSORS = words("data grad grad_fn _saved_tensors requires_grad is_leaf shape dtype device is_cuda ndim")
"""Attributes of tensors whose names few other things use."""

_READ: dict[type[Value], Callable[[Attributes, Any, str, ast.AST], Value]] = {
    Const: Attributes._attribute_of_constant,
    Join: Attributes._attribute_of_each,
    Instance: Attributes._attribute_of_object,
    Module: Attributes._attribute_of_object,
    Unknown: Attributes._attribute_of_unknown,
    Tensor: Attributes._attribute_of_tensor,
    Function: Attributes._attribute_of_function,
    Tuple: Attributes._attribute_of_tuple,
    Library: lambda self, receiver, name, at: library_member(receiver.path, name),
    Partial: Attributes._attribute_of_partial,
    TreeModule: Attributes._attribute_of_file,
    Class: Attributes._attribute_of_class,
    Super: Attributes._attribute_of_super,
    Sequence: Attributes._attribute_of_container,
    Mapping: Attributes._attribute_of_container,
    Optimizer: Attributes._attribute_of_optimizer,
    Parameters: Attributes._attribute_of_parameters,
}
"""How an attribute of each sort of value is read; of others it is a method of theirs."""
