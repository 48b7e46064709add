"""Calls of methods: told apart by what the receiver is, and left to the part that knows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.gradients import BACKWARD_METHODS, HOOKING_METHODS
from codemods.graph.model.facts.layers import WRAPPING_LAYERS
from codemods.graph.model.facts.libraries import BAR_METHODS
from codemods.graph.model.facts.memory import ARRAY_CHANGES, ARRAY_VIEWS
from codemods.graph.model.facts.python import OF_COROUTINES
from codemods.graph.model.kinds import CarrierKind, Escape, FunctionKind, Marked, NodeKind, PlainKind, UseKind
from codemods.graph.model.nodes import Carrier, Unseen, Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.spelled import written_by
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
    formatted,
)
from codemods.graph.python.builtins.names import read_named, registered
from codemods.graph.python.objects import OF_OBJECTS
from codemods.graph.python.standard import Standard
from codemods.graph.run.contents import ANY, BACKING
from codemods.graph.torch.own_backward import is_linear
from codemods.source import walking
from codemods.terms.words import words

_ASKS = re.compile(r"\{\w*[.\[]")
_LAID_OUT = words("ljust rjust center strip lstrip rstrip expandtabs upper lower __str__ __format__")
"""Methods of a text that only change how it looks."""
_THREADS = frozenset({"threading.Thread", "multiprocessing.Process"})

_OF_SCHEDULERS = frozenset({"step", "get_lr", "get_last_lr", "print_lr", "state_dict", "load_state_dict"})

_MAPPINGS = frozenset({"collections.abc.Mapping", "collections.abc.MutableMapping", "typing.MutableMapping"})
"""What gives a class the methods of a dict (docs: collections.abc)."""


class MethodCalls(Standard):
    """The part of the engine that calls methods."""

    def call_method(self, receiver: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """Call a method of any value."""
        if name in BAR_METHODS and self._is_bar(receiver):
            for value in args.all():
                self.run.use(value, UseKind.CALL, at, f"tqdm.tqdm.{name}")
            return NONE
        if name in OF_COROUTINES and self.run.nodes_of(receiver):
            self.run.stops_with(receiver)
        call = _METHODS_OF.get(receiver.__class__)
        return (call or MethodCalls._method_of_other)(self, receiver, name, args, at)

    def _method_of_other(self, receiver: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        results = self.run.run_callbacks(args, at)
        return self.run.opaque(at, name, [*args.all(), receiver, *results], of=receiver)

    def _method_of_constant(self, receiver: Const, name: str, args: Arguments, at: ast.AST) -> Value:
        member = self.get_attribute(receiver, name, at)
        if isinstance(member, Method) and member.function is None:
            return self._method_of_plain(receiver, name, args, at)
        return self.call_value(member, args, at)

    def _method_of_layer(self, receiver: Module, name: str, args: Arguments, at: ast.AST) -> Value:
        stored = self.run.s.get((receiver.oid, name)) or self.torch.named_part(receiver, name)
        if isinstance(stored, Value):
            return self.call_value(stored, args, at)
        return self.torch.module_method(receiver, name, args, at)

    def _method_of_file(self, receiver: TreeModule, name: str, args: Arguments, at: ast.AST) -> Value:
        return self.call_value(self.get_attribute(receiver, name, at), args, at)

    def _method_of_class(self, receiver: Class, name: str, args: Arguments, at: ast.AST) -> Value:
        member = self.get_attribute(receiver, name, at)
        if receiver.info.container == "record" and name == "_make" and args.positional:
            fields = self.flat_or_turns(args.positional[0], at)
            return self.instantiate(receiver.info, Arguments(args.call, fields), at)
        if isinstance(member, (Unknown, Method)):
            if name == "apply" and receiver.info.family == "function":
                return self._apply_function(receiver.info, args, at)
            if name == "__init__":
                self.torch.begin_base(args, at)
                return NONE
            if name == "__new__" and args.positional and isinstance(args.positional[0], Class):
                return self.new_object(args.positional[0].info)
            if name == "load_from_checkpoint":
                return self.instantiate(receiver.info, Arguments(args.call), at)
        return self.call_value(member, args, at)

    def _method_of_tuple(self, receiver: Tuple, name: str, args: Arguments, at: ast.AST) -> Value:
        return NONE if receiver.lacks(name) else self.container_method(receiver, name, args, at)

    def _method_of_parameters(self, receiver: Parameters, name: str, args: Arguments, at: ast.AST) -> Value:
        if name == "requires_grad_":
            on = args.get(0, "requires_grad")
            truth = True if on is None else self.run.truth(on)
            self.run.freeze(receiver.owner, None if truth is None else not truth)
        elif name in HOOKING_METHODS:
            self.run.mark_owned(Marked.HOOK, at, receiver)
            self.run.run_callbacks(args, at)
        elif name.endswith("_") and not name.startswith("_"):
            self.run.mark_owned(Marked.PARAMETERS_CHANGED, at, receiver)
        return self.torch.tensor_method(receiver, name, args, at) if receiver.element else receiver

    def _method_of_plain(self, receiver: Const | Plain, name: str, args: Arguments, at: ast.AST) -> Value:
        if name == "format":
            # "{0.shape}" asks for more than digits
            text = receiver.value if isinstance(receiver, Const) else None
            plain = isinstance(text, str) and not _ASKS.search(text)
            for value in args.all():
                self.run.use(value, UseKind.FORMAT if plain else UseKind.PASSED, at, "" if plain else name)
            shown = [v for v in args.all() if not isinstance(v, Tensor)]
            return self.run.text_of(formatted(receiver, "{", args.all()), receiver, *shown)
        if name == "join":
            inside = [e for v in args.all() for e in self.run.elements(v) or self.iterate(v, at)]
            return self.run.text_of(TEXT, receiver, *inside)
        if isinstance(receiver, Plain) and receiver.shows:
            if name in _LAID_OUT:
                return receiver
            self.run.looked_into(receiver, at)
        if isinstance(receiver, Plain) and receiver.kind is PlainKind.ARRAY:
            for value in args.all():
                self.run.use(value, UseKind.METHOD, at, name)
            if name in ARRAY_CHANGES:
                self.run.array_written(receiver, at)
            return receiver if name in ARRAY_VIEWS else ARRAY
        made = self.run.opaque(at, name, args.all())
        made.data = made.node is None and not made.shadow
        return made

    def _method_of_method(self, receiver: Method, name: str, args: Arguments, at: ast.AST) -> Value:
        if receiver.function is not None:
            return self._method_of_other(receiver, name, args, at)
        # e.g. optimizer.state_dict().items() on something unseen
        return self.run.opaque(at, name, [*args.all(), receiver])

    def _method_of_function(self, receiver: Function, name: str, args: Arguments, at: ast.AST) -> Value:
        if name not in ("register", "cache_clear"):
            kept = self.get_attribute(receiver, name, at)
            if not isinstance(kept, Method):
                return self.call_value(kept, args, at)
        return self._method_of_other(receiver, name, args, at)

    def _is_bar(self, receiver: Value) -> bool:
        """Whether a progress bar was put around what the receiver is, or nothing else can have such a method."""
        plain = isinstance(receiver, (Plain, Tuple, Sequence, Mapping)) or (
            isinstance(receiver, Unknown) and receiver.data and receiver.public
        )
        return plain or getattr(receiver, "oid", 0) in self.run.bars

    def _method_of_each(self, receiver: Join, name: str, args: Arguments, at: ast.AST) -> Value:
        options = [o for o in receiver.options if not (isinstance(o, Const) and o.value is None)]
        options = [o for o in options if not (isinstance(o, Tuple) and o.lacks(name))] or options
        if len(options) == 1:
            return self.call_method(options[0], name, args, at)
        if name == "backward":
            # one walk over what may be there
            tensors = [o for o in options if not isinstance(o, (Const, Plain))]
            graphs = [o for o in tensors if self.run.nodes_of(o)]
            if graphs or not tensors:
                self.torch.backward_method(Join(tuple(graphs)) if graphs else receiver, args, at)
                return NONE
        found = self.run.one_of([self.call_method(option, name, args, at) for option in options], at)
        return found if found is not None else self.run.unknown(name)

    def _method_of_object(self, receiver: Instance, name: str, args: Arguments, at: ast.AST) -> Value:
        stored = self.own_attribute(receiver, name)
        if stored is not None:
            return self.call_value(stored, args, at)
        member = self.class_member(receiver.cls, name, at)
        if member is not None:
            return self._call_member(receiver, member, args, at)
        inner = self.run.contained(receiver)
        if inner is not None and not receiver.cls.is_module:
            return self._method_of_derived(receiver, inner, name, args, at)
        if name in OF_OBJECTS:
            return self._of_objects(receiver, name, args, at)
        if receiver.cls.is_module:
            if name == "__setstate__":
                return self.container_method(Namespace(receiver.oid, receiver), "update", args, at)
            if name == "__getattr__" and len(args.positional) == 1:
                found = registered(self, receiver, args.positional[0], at)
                return self.run.unknown("attribute") if found is None else found
            if name in ("manual_backward", "backward"):
                return self.torch.wrapped_backward(args, at)
            return self.torch.module_method(receiver, name, args, at)
        if name in BACKWARD_METHODS:
            return self.torch.wrapped_backward(args, at)
        return self._inherited_method(receiver, name, args, at)

    def _of_objects(self, receiver: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that every object has, by which its attributes are read and written."""
        given = args.positional
        if name == "__setattr__" and len(given) == 2:
            self.set_named(receiver, given[0], given[1], at)
            return NONE
        if name == "__delattr__" and len(given) == 1:
            self.delete_named(receiver, given[0], at)
            return NONE
        if name == "__getattribute__" and len(given) == 1:
            return read_named(self, [receiver, *given], at)
        self.set_attribute(receiver, ANY, self.run.opaque(at, name, args.all()), at)
        return NONE

    def _call_member(self, receiver: Instance, member: Value, args: Arguments, at: ast.AST) -> Value:
        """Call what the class of an object has under the name of a method."""
        if isinstance(member, Function):
            if member.kind is FunctionKind.PROPERTY:
                return self.call_value(self.call_function(member, Arguments(), at, receiver=receiver), args, at)
            if member.kind is FunctionKind.STATIC_METHOD:
                return self.call_function(member, args, at)
            return self._call_bound(member, receiver, args, at)
        if isinstance(member, Partial) and member.method:
            given = [receiver, *member.args, *args.positional]
            args = Arguments(args.call, given, {**dict(member.kwargs), **args.keywords}, args.more)
            return self.call_value(member.function, args, at)
        if isinstance(member, Unknown):
            args = Arguments(args.call, args.positional, args.keywords, [*args.more, receiver])
        return self.call_value(member, args, at)

    def _inherited_method(self, receiver: Instance, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of an object that its class has of a base that cannot be seen, if at all."""
        run = self.run
        results = run.run_callbacks(args, at)
        if name in ("start", "run") and receiver.cls.derives(_THREADS):
            body = self.class_member(receiver.cls, "run", at)
            return self.call_value(Method(receiver, body, "run"), args, at) if isinstance(body, Function) else NONE
        if receiver.cls.derives(_MAPPINGS) and (made := self.by_items(receiver, name, args, at)) is not None:
            return made
        if receiver.cls.schedules() and name in _OF_SCHEDULERS:
            return self._of_scheduler(name, args, at)
        if path := receiver.cls.distribution():
            return self._of_distribution(path, receiver, name, args, at)
        if receiver.cls.family.startswith("external"):
            for value in args.all():
                run.escape(value, Escape.BASE_METHOD)
            self._may_bind_anew(receiver)
            return run.unseen_call(run.opaque(at, name, [*args.all(), receiver, *results]), name)
        found = self.get_attribute(receiver, name, at)
        if not isinstance(found, Method) and run.nodes_of(found):
            return self.call_value(found, args, at)
        return run.opaque(at, name, [*args.all(), receiver, *results])

    def _may_bind_anew(self, receiver: Instance) -> None:
        """A method that cannot be seen may give the attributes that it has there other tensors."""
        for name in self.run.guessed.get(receiver.oid, ()):
            held = self.run.s.get((receiver.oid, name))
            if isinstance(held, Unknown) and held.node is not None and held.module is None:
                self.run.s.delete((receiver.oid, name))

    def _of_scheduler(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that an object has of torch's schedulers."""
        for value in args.all():
            self.run.use(value, UseKind.SCHEDULER, at)
        return NONE if name == "step" else self.run.unknown(name, data=True)

    def _of_distribution(self, path: str, receiver: Instance, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that an object has of torch's distribution ``path``."""
        drawn = self.drawn_from(receiver, name, at)
        if drawn is not None:
            return drawn
        return self.run.opaque(at, f"{path}.{name}", [receiver, *args.all()], public=True)

    def _method_of_derived(self, receiver: Instance, inner: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that an object has of the container that its class is derived from."""
        if name == "_replace":
            made = self.copied(receiver)
            for field, value in args.keywords.items():
                self.set_attribute(made, field, value, at)
            return made
        if name == "_asdict":
            mapping = self.run.new_mapping()
            for field in receiver.cls.fields():
                self.torch.put_item(mapping, Const(field), self.run.field(receiver, field))
            return mapping
        if name == "copy":
            return self.copied(receiver)
        if name == "__init__":
            self.run.s.set((receiver.oid, BACKING), self.call_value(self._kind_of(inner), args, at))
            return NONE
        return self.container_method(inner, name, args, at)

    @staticmethod
    def _kind_of(inner: Value) -> Library:
        return Library("builtins.dict" if isinstance(inner, Mapping) else "builtins.list")

    def _call_bound(self, method: Function, receiver: Value, args: Arguments, at: ast.AST) -> Value:
        """Enter a method of an object: a forward, if that is a module and none is being run."""
        run = self.run
        first, grad, known = run.clock + 1, run.s.grad, len(run.trace.frames)
        result = self.call_function(method, args, at, receiver=receiver)
        if isinstance(receiver, Instance) and receiver.cls.is_module and not run.frame.inside_module:
            entered = run.trace.frames[known : known + 1]
            returned = run.nodes_of(result) or any(isinstance(o, Unseen) for o in run.shadow_of([result]))
            out = returned or not entered or entered[0].left or entered[0].held
            name = getattr(method.definition, "name", "")
            self.torch.forwarded(at, receiver, first, grad, name, args, None if out else method)
        return result

    def _super_method(self, receiver: Super, name: str, args: Arguments, at: ast.AST) -> Value:
        target = receiver.receiver
        found = receiver.cls.find(name, after=receiver.cls)
        if isinstance(target, Instance):
            order = target.cls.mro()
            if receiver.cls in order:
                found = target.cls.find(name, after=receiver.cls)
        if isinstance(found, Function):
            return self.call_function(found, args, at, receiver=target)
        if name == "__call__" and isinstance(target, Class):
            return self.instantiate(target.info, args, at, plainly=True)
        if name == "__new__":
            made = args.get(0, "cls")
            cls = made if isinstance(made, Class) else target
            return self.new_object(cls.info) if isinstance(cls, Class) else self.run.opaque(at, name, args.all())
        if name == "__setattr__" and len(args.positional) > 1:
            self.set_directly(target, args.positional[0], args.positional[1], at)
            return NONE
        if (
            isinstance(target, Instance)
            and not target.cls.is_module
            and (inner := self.run.contained(target)) is not None
        ):
            return self._method_of_derived(target, inner, name, args, at)
        if isinstance(target, Instance) and target.cls.schedules():
            return NONE if name == "__init__" else self._inherited_method(target, name, args, at)
        if name == "__init__" and isinstance(target, Instance):
            self._begin_unseen(target, args, at)
        if name in ("__init__", "__setattr__", "__init_subclass__"):
            return NONE
        if isinstance(target, Instance) and target.cls.is_module:
            return self._method_of_base(target, name, args, at)
        if name in ("__getattr__", "__getattribute__") and isinstance(target, Instance) and args.positional:
            return read_named(self, [target, args.positional[0]], at)
        return self.run.opaque(at, name, [*args.all(), target])

    def _method_of_base(self, target: Instance, name: str, args: Arguments, at: ast.AST) -> Value:
        """``super().name(...)`` of a module, where that is torch's."""
        layer = self.torch.layer_of(target)
        if name in ("forward", "__call__") and layer is not None:
            return self.torch.layer_output(layer, args, at)
        if name in ("forward", "__call__") and self.wraps(target):
            return self.wrapped_forward(target, args, at)
        if name == "__getitem__" and layer is not None and args.positional:
            return self.get_item(layer, args.positional[0], at)
        if name == "forward":
            nodes = [n for v in args.all() for n in self.run.nodes_of(v)] + self.run.parameter_leaves(target)
            return self.run.unknown("forward", self.run.node(at, NodeKind.MODULE, nodes, label="forward"))
        if name == "__getattr__" and args.positional:
            return self.run.unknown("attribute")
        return self.torch.module_method(target, name, args, at)

    @staticmethod
    def wraps(model: Instance) -> bool:
        """Whether an object is of a class derived from ``DataParallel`` that leaves how the copies run to that."""
        info = model.cls
        return info.layer in WRAPPING_LAYERS and info.find("replicate") is None and info.find("parallel_apply") is None

    def wrapped_forward(self, wrapper: Instance, args: Arguments, at: ast.AST) -> Value:
        """The forward of such an object: that of its model, on parts of the batch that are gathered then."""
        scatter, gather = wrapper.cls.find("scatter"), wrapper.cls.find("gather")
        if isinstance(scatter, Function):
            unseen = self.run.taken(at, Tuple((*args.keywords.values(), *args.more)), "scatter")
            inputs: list[Value] = [Tuple(tuple(args.positional)), unseen, NUMBER]
            parts = self.call_function(scatter, Arguments(None, inputs), at, receiver=wrapper)
            args = Arguments(args.call, more=[self.run.taken(at, Tuple((*args.all(), parts)), "scatter")])
        result = self.call_value(self.get_attribute(wrapper, "module", at), args, at)
        if isinstance(gather, Function):
            outputs: list[Value] = [Tuple((result,)), NUMBER]
            return self.call_function(gather, Arguments(None, outputs), at, receiver=wrapper)
        return result

    def _begin_unseen(self, target: Instance, args: Arguments, at: ast.AST) -> None:
        """``super().__init__(...)`` where that is not in the tree."""
        if self.run.brings_model(args.all()):
            self.run.give_model(target)
        self.torch.begin_layer(target, args, at)
        self.torch.keep_anywhere(target, args.all(), at)

    def set_directly(self, target: Value, name: Value, value: Value, at: ast.AST) -> None:
        """``object.__setattr__(target, name, value)``."""
        run = self.run
        known = name.value if isinstance(name, Const) and isinstance(name.value, str) else ANY
        if isinstance(target, Instance) and not target.cls.is_module:
            old = run.s.get((target.oid, known)) if known == ANY else None
            run.s.set((target.oid, known), run.join(old, value) if isinstance(old, Value) else value)
            run.rebound[target.oid, known] = run.rebound.get((target.oid, known), 0) + 1
            run.attributes.setdefault(target.oid, {})[known] = None
            self.note_since(target.oid, known)
            if known == ANY:
                run.named_as.setdefault(target.oid, []).append(TEXT)
            run.stored(value, Carrier(CarrierKind.ATTRIBUTE, target.oid, known), at)
        else:
            self.set_attribute(target, known, value, at)

    def _apply_function(self, info: ClassInfo, args: Arguments, at: ast.AST) -> Value:
        """``autograd.Function.apply``: its backward is a derivative unless more is seen in it."""
        run = self.run
        nodes = [n for v in args.all() for n in run.nodes_of(v)]
        run.mark(Marked.CUSTOM_FUNCTION, at, nodes)
        forward = info.find("forward")
        if isinstance(forward, Function) and forward.file.once(_asks_for_gradients, forward.definition):
            run.mark(Marked.REQUIRES_GRAD_READ, at, nodes)
        backward = info.find("backward")
        seen = backward.definition if isinstance(backward, Function) else None
        if seen is None or isinstance(seen, ast.Lambda) or not is_linear(seen):
            run.mark(Marked.OWN_BACKWARD, at, nodes)
        if isinstance(backward, Function):
            run.unsettle(written_by(backward.file, backward.definition))
        made = run.unknown(info.name, run.node(at, NodeKind.OP, nodes, label="custom-function"))
        made.shadow = run.shadow_of(args.all())
        return made


_METHODS_OF: dict[type[Value], Callable[[MethodCalls, Any, str, Arguments, ast.AST], Value]] = {
    Const: MethodCalls._method_of_constant,
    Join: MethodCalls._method_of_each,
    Tensor: lambda self, receiver, name, args, at: self.torch.tensor_method(receiver, name, args, at),
    Unknown: MethodCalls.unknown_method,
    Instance: MethodCalls._method_of_object,
    Module: MethodCalls._method_of_layer,
    Optimizer: lambda self, receiver, name, args, at: self.torch.optimizer_method(receiver, name, args, at),
    Library: lambda self, receiver, name, args, at: self.call_value(Library(f"{receiver.path}.{name}"), args, at),
    TreeModule: MethodCalls._method_of_file,
    Class: MethodCalls._method_of_class,
    Super: MethodCalls._super_method,
    Tuple: MethodCalls._method_of_tuple,
    Sequence: MethodCalls.container_method,
    Mapping: MethodCalls.container_method,
    Namespace: MethodCalls.container_method,
    Parameters: MethodCalls._method_of_parameters,
    Plain: MethodCalls._method_of_plain,
    Method: MethodCalls._method_of_method,
    Function: MethodCalls._method_of_function,
}
"""How a method of each sort of value is called; of others it may do anything with what it is given."""


def _asks_for_gradients(forward: ast.AST) -> bool:
    """Whether the forward of an ``autograd.Function`` asks ``ctx.needs_input_grad``: without gradients it is false."""
    return any(isinstance(node, ast.Attribute) and node.attr == "needs_input_grad" for node in walking.walk(forward))
