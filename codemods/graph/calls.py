"""Calls: functions of the tree are entered, objects are made, attributes found, builtins understood."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from codemods.graph import facts
from codemods.graph.arguments import Arguments
from codemods.graph.core import ITEMS, MAX_DEPTH, MAX_RECURSION, REST
from codemods.graph.memo import Memo, Origin, nodes_in, origin, rebuild, signature, simple
from codemods.graph.program import ClassInfo
from codemods.graph.state import CLEARED, Key, State, written_since
from codemods.graph.torch_model import TorchModel
from codemods.graph.trace import Frame, Storing
from codemods.graph.values import (
    ARRAY,
    DATA,
    NONE,
    NUMBER,
    TEXT,
    Carrier,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Method,
    Module,
    Node,
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
    Unseen,
    Value,
)

KERNELS = frozenset(
    {"LSTM", "GRU", "MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer", "Transformer"}
)


class Calls(TorchModel):
    """The part of the engine that enters code."""

    returns: list[tuple[State, Value]]
    breaks: list[State]
    continues: list[State]
    raises: list[State]
    raises_here: bool

    # what the layers above supply

    def execute(self, statements: list[ast.stmt]) -> None:
        """Run statements."""
        raise NotImplementedError

    def evaluate(self, expression: ast.expr) -> Value:
        """Evaluate an expression."""
        raise NotImplementedError

    def load_name(self, name: str, at: ast.AST) -> Value:
        """Read a variable."""
        raise NotImplementedError

    def module_member(self, module: TreeModule, name: str) -> Value:
        """What a module of the tree calls ``name``."""
        raise NotImplementedError

    def set_module_member(self, module: TreeModule, name: str, value: Value, at: ast.AST) -> None:
        """Write a global of a module of the tree."""
        raise NotImplementedError

    # calling

    def call_value(self, function: Value, args: Arguments, at: ast.AST) -> Value:
        if isinstance(function, Join):
            return self._call_each(function, args, at)
        if isinstance(function, Function):
            return self.call_function(function, args, at)
        if isinstance(function, Method):
            if function.function is not None:
                return self.call_function(function.function, args, at, receiver=function.receiver)
            return self.call_method(function.receiver, function.name, args, at)
        if isinstance(function, Partial):
            combined = Arguments(
                args.call,
                [*function.args, *args.positional],
                {**dict(function.kwargs), **args.keywords},
                args.more,
            )
            return self.call_value(function.function, combined, at)
        if isinstance(function, Class):
            return self.instantiate(function.info, args, at)
        if isinstance(function, Library):
            if function.path.startswith("builtins."):
                return self.builtin(function.path.removeprefix("builtins."), args, at)
            return self.call_library(function.path, args, at)
        if isinstance(function, Instance):
            return self.call_instance(function, args, at)
        if isinstance(function, Module):
            return self.call_module(function, args, at)
        if isinstance(function, Unknown):
            if function.module is not None:
                return self.call_module(function.module, args, at, owner=function)
            self._poison(args, at)
            self.run_callbacks(args, at)
            made = self.opaque(at, function.origin, [*args.all(), function])
            return made if function.data else self.unseen_call(made, function.origin)
        self.run_callbacks(args, at)
        return self.opaque(at, "call", args.all())

    def _call_each(self, function: Join, args: Arguments, at: ast.AST) -> Value:
        callable_options = [o for o in function.options if not isinstance(o, (Const, Plain))]
        if not callable_options:
            return self.opaque(at, "call", args.all())
        # one after the other, not on paths of their own: what one does to itself does not touch the others, and a path
        # on which it did not run would keep what it held before
        results = [self.call_value(option, args, at) for option in callable_options]
        result = self._one_of(results)
        assert result is not None
        return result

    def _poison(self, args: Arguments, at: ast.AST) -> None:
        for value in args.all():
            for node in self.nodes_of(value):
                node.uses.append(("call:unseen", self.place(at)))

    def call_instance(self, instance: Instance, args: Arguments, at: ast.AST) -> Value:
        """``obj(...)``: ``forward`` of a module, else ``__call__``."""
        member = instance.cls.find("__call__")
        if member is None and instance.cls.is_module:
            member = self._class_member(instance.cls, "forward", at)
            first = self.clock + 1
            grad = self.s.grad
            for hook in self.s.get((instance.oid, "pre-hooks")) or ():
                self.call_value(hook, Arguments(None, [instance, Tuple(tuple(args.positional))]), at)
            if isinstance(member, Function):
                result = self.call_function(member, args, at, receiver=instance)
            else:
                nodes = [n for v in args.all() for n in self.nodes_of(v)] + self.parameter_leaves(instance)
                result = self.unknown(instance.cls.name, self.node(at, "module", nodes, label=instance.cls.name))
            self.forwarded(at, instance, first, grad, "forward", args)
            return result
        if isinstance(member, Function):
            return self.call_function(member, args, at, receiver=instance)
        self.run_callbacks(args, at)
        return self.opaque(at, instance.cls.name, args.all())

    def call_function(self, function: Function, args: Arguments, at: ast.AST, receiver: Value | None = None) -> Value:
        """Enter a function of the tree; what it returns on all its paths, joined."""
        definition = function.definition
        caller = self.frame
        if self.tired or caller.depth >= MAX_DEPTH or self.active.count(definition) >= MAX_RECURSION:
            if self.tired:
                self.trace.notes.append(f"{function.file.path}:{definition.lineno}: not entered, the budget is spent")
            for value in args.all():
                self.escape(value, "a call that was not entered")
            return self.opaque(at, "unentered", args.all())
        self.entered[definition] = function.file
        key = self._memo_key(function, args, receiver) if caller.inside_module else None
        if key is not None:
            remembered = self._recall(key, args, receiver, at)
            if remembered is not None:
                self.called[definition] = function.file
                return remembered
        place = self.place(at)
        frame = Frame(self.new_oid(), function.file, function, place, caller.depth + 1)
        frame.inside_module = caller.inside_module or (
            receiver is not None and self.is_module(receiver) and not self.entering_root
        )
        frame.root, self.entering_root = self.entering_root, False
        if not frame.root and definition not in self.active:
            # a function that only calls itself is called by nobody
            self.called[definition] = function.file
        frame.receiver = receiver
        frame.module_globals = function.module_globals
        frame.birth = self.tick()
        saved_grad = self.s.grad
        self.trace.frames.append(frame)
        bound = [receiver] if receiver is not None and function.kind != "staticmethod" else []
        self._bind(function, frame, Arguments(args.call, [*bound, *args.positional], args.keywords, args.more), at)
        if function.grad_mode != "":
            self.s.grad = function.grad_mode  # type: ignore[assignment]
        elif (
            function.cls is not None
            and function.cls.family == "lightning"
            and getattr(definition, "name", "") in facts.FRAMEWORK_EVALUATION
        ):
            self.s.grad = False
        frame.grad = self.s.grad
        if key is None:
            result = self._run(frame, definition)
        else:
            result = self._run_and_remember(key, args, receiver, frame, definition)
        marker = self._cache_of(definition)
        if marker is not None:
            result = self._kept(result, marker)
        frame.end = self.tick()
        if function.grad_mode != "" or self.s.grad is not saved_grad:
            self._leave_grad(function, saved_grad)
        return result

    def _cache_of(self, definition: ast.AST) -> Unseen | None:
        """What stands for the results of a function whose decorator hands the same result out again."""
        if definition not in self.caches:
            texts = [ast.unparse(d) for d in getattr(definition, "decorator_list", ())]
            again = any("cache" in text or "memo" in text for text in texts)
            self.caches[definition] = Unseen("call", getattr(definition, "name", "")) if again else None
        return self.caches[definition]

    def _kept(self, value: Value, marker: Unseen) -> Value:
        """A result that later calls may give again."""
        for node in self.nodes_of(value):
            if not node.leaf:
                node.shadow = (marker, *node.shadow)
        if isinstance(value, Tensor):
            return replace(value, shadow=(marker, *value.shadow))
        if isinstance(value, Unknown):
            value.shadow = (marker, *value.shadow)
        if isinstance(value, Tuple):
            return Tuple(tuple(self._kept(item, marker) for item in value.items))
        return value

    # remembered calls

    def _memo_key(self, function: Function, args: Arguments, receiver: Value | None) -> Any:
        if args.more or function.closure or function.grad_mode != "" or self._cache_of(function.definition) is not None:
            return None
        parts = [signature(v) for v in args.positional] + [(k, signature(v)) for k, v in sorted(args.keywords.items())]
        if None in parts or any(isinstance(p, tuple) and p[-1] is None for p in parts):
            return None
        return (id(function.definition), getattr(receiver, "oid", None), self.s.grad, tuple(parts))

    def _recall(self, key: Any, args: Arguments, receiver: Value | None, at: ast.AST) -> Value | None:
        memo = self.memos.get(key)
        if memo is None:
            return None
        peek = self.s.peek
        if any(peek(cell) is not value for cell, value in memo.reads.items()):
            return None
        if self.s.reads is not None:
            for cell, value in memo.reads.items():
                self.s.reads.setdefault(cell, value)
        arguments = [n for v in args.all() for n in nodes_in(v)]
        fresh: dict[Node, Node] = {}
        for node, came_from in memo.origins.items():
            if node in fresh:
                continue
            parents = [arguments[i] for i in came_from.arguments if i < len(arguments)]
            if len(came_from.arguments) == 1 and not came_from.fixed and node.kind == "argument":
                fresh[node] = parents[0]
                continue
            made = self.node(
                at,
                "module" if came_from.layers else "op",
                [*parents, *came_from.fixed],
                certain=node.certain,
                scalar=node.scalar,
                label=came_from.kernel or node.label,
            )
            if made is None:
                return None
            made.shadow = self.shadow_of(args.all())
            fresh[node] = made
        return rebuild(memo.result, fresh, tuple(o for o in self.shadow_of(args.all()) if isinstance(o, Unseen)))

    def _run_and_remember(
        self, key: Any, args: Arguments, receiver: Value | None, frame: Frame, definition: ast.AST
    ) -> Value:
        born, first_oid = self.clock, frame.fid
        trace = self.trace
        events = (len(trace.walks), len(trace.marks), len(trace.steps), len(trace.storings))
        sums = len(trace.accumulations)
        outer_reads = self.s.reads
        reads: dict[Key, Any] = {}
        self.s.reads = reads
        result = self._run(frame, definition)
        self.s.reads = outer_reads
        if outer_reads is not None:
            for cell, value in reads.items():
                outer_reads.setdefault(cell, value)
        written = self.written
        after = (len(trace.walks), len(trace.marks), len(trace.steps), len(trace.storings))
        if any(a.carrier is None or a.carrier.owner < first_oid for a in trace.accumulations[sums:]):
            return result
        if events != after or not simple(result) or self.s.grad is not frame.grad:
            return result
        given = {id(o) for o in self.shadow_of(args.all())}
        if any(isinstance(o, Unseen) and id(o) not in given for o in self.shadow_of([result])):
            # it made something that cannot be seen, which is another thing each time
            return result
        peek = self.s.peek
        if any(0 < cell[0] < first_oid and (cell not in reads or peek(cell) is not reads[cell]) for cell in written):
            return result
        kept = {cell: value for cell, value in reads.items() if cell[0] < first_oid}
        for value in kept.values():
            if isinstance(value, (Tensor, Unknown)) and value.node is not None and not value.node.leaf:
                return result
        arguments = [n for v in args.all() for n in nodes_in(v)]
        origins: dict[Node, Origin] = {}
        for node in nodes_in(result):
            if node in arguments:
                return result
            came_from = origin(node, born, arguments, KERNELS)
            if came_from is None:
                return result
            origins[node] = came_from
        self.memos[key] = Memo(kept, result, origins)
        return result

    def _leave_grad(self, function: Function, saved: bool | None) -> None:
        # a statement torch.set_grad_enabled(...) in a callee stays in force; a decorator or context does not
        if function.grad_mode != "" or (function.cls is not None and function.cls.family == "lightning"):
            self.s.grad = saved

    def _run(self, frame: Frame, definition: ast.AST) -> Value:
        caller, was_dead = self.frame, self.dead
        self.frame = frame
        self.active.append(definition)
        returns: list[tuple[State, Value]] = []
        outer_returns = self.returns
        outer_breaks, outer_continues, outer_raises = self.breaks, self.continues, self.raises
        self.returns, self.breaks, self.continues, self.raises = returns, [], [], []
        try:
            if isinstance(definition, ast.Lambda):
                return self.evaluate(definition.body)
            assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
            base = self.s
            self.s = base.fork()
            self.execute(definition.body)
            ends = [state for state, _ in returns]
            self.written = {cell for state in [*ends, self.s] for cell in written_since(state, base.log)}
            values = [value for _, value in returns]
            if not self.dead:
                ends.append(self.s)
                if not frame.yields:
                    values.append(NONE)
            if not ends:
                # every path raises: the call does not come back
                self.s = base
                self.raises_here = True
                return NONE
            self.meet(ends, base)
            if frame.file.once(_yields, definition) or frame.yields:
                return self.new_sequence(frame.yields[:8], kind="generator")
            result = values[0]
            for value in values[1:]:
                result = self.join(result, value)
            return result
        finally:
            self.active.pop()
            self.returns, self.breaks, self.continues, self.raises = (
                outer_returns,
                outer_breaks,
                outer_continues,
                outer_raises,
            )
            self.frame = caller
            self.dead = was_dead
            if not frame.captured:
                for name in frame.names:
                    self.s.cells.pop((frame.fid, name), None)

    def _bind(self, function: Function, frame: Frame, args: Arguments, at: ast.AST) -> None:
        spec = function.definition.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        defaults = dict(zip(names[len(names) - len(function.defaults) :], function.defaults, strict=False))
        positional = list(args.positional)
        keywords = dict(args.keywords)
        more = self._one_of([v for value in args.more for v in (self.elements(value) or [value])])

        def put(name: str, value: Value) -> None:
            frame.names.add(name)
            self.s.set((frame.fid, name), value)
            for node in self.nodes_of(value):
                node.stores.append((Carrier("local", frame.fid, name), frame.call or self.place(at)))

        for i, name in enumerate(names):
            if i < len(positional):
                put(name, positional[i])
            elif name in keywords:
                put(name, keywords.pop(name))
            elif more is not None and name not in defaults:
                put(name, more)
            elif name in defaults:
                put(name, defaults[name])
            else:
                put(name, more if more is not None else self.argument(name))
        if spec.vararg is not None:
            rest = positional[len(names) :]
            put(spec.vararg.arg, Tuple(tuple(rest)) if more is None else self.new_sequence(rest, rest=more))
        kw_defaults = dict(function.kw_defaults)
        for arg in spec.kwonlyargs:
            if arg.arg in keywords:
                put(arg.arg, keywords.pop(arg.arg))
            else:
                put(arg.arg, kw_defaults.get(arg.arg) or self.argument(arg.arg))
        if spec.kwarg is not None:
            rest_mapping = self.new_mapping()
            for name, value in keywords.items():
                self.put_item(rest_mapping, Const(name), value)
            if more is not None:
                self.s.set((rest_mapping.oid, REST), more)
            put(spec.kwarg.arg, rest_mapping)

    def argument(self, name: str) -> Unknown:
        """An argument that nobody in the tree passes: it may be attached outside."""
        made = self.unknown(name)
        made.shadow = (Unseen("argument", name),)
        return made

    def instantiate(self, info: ClassInfo, args: Arguments, at: ast.AST) -> Value:
        """``Class(...)``: a new object, its ``__init__`` entered."""
        if info.family == "function":
            return self.unknown(info.name)
        if info.family == "optimizer":
            return self.make_optimizer(args, at, info)
        leaf = None
        if info.is_module and info.find("__init__") is None and not any(isinstance(b, Class) for b in info.bases):
            leaf = None
        elif info.family == "external-module":
            leaf = self.leaf(at, info.name)
        made = Instance(self.new_oid(), info, leaf)
        self.attributes[made.oid] = {}
        init = info.find("__init__")
        if isinstance(init, Function):
            self.call_function(init, args, at, receiver=made)
        else:
            fields = info.fields()
            for name, factory in info.factories.items():
                if name not in args.keywords and name not in fields[: len(args.positional)]:
                    self.set_attribute(made, name, self.call_value(factory, Arguments(), at), at)
            for name, value in zip(fields, args.positional, strict=False):
                self.set_attribute(made, name, value, at)
            for name, value in args.keywords.items():
                self.set_attribute(made, name, value, at)
        return made

    # attributes

    def get_attribute(self, receiver: Value, name: str, at: ast.AST) -> Value:
        if isinstance(receiver, Join):
            found = [self.get_attribute(o, name, at) for o in receiver.options if not isinstance(o, (Const, Plain))]
            result = self._one_of(found)
            return result if result is not None else self.unknown(name)
        if isinstance(receiver, (Instance, Module)):
            return self._object_attribute(receiver, name, at)
        if isinstance(receiver, Tensor):
            value = self.tensor_attribute(receiver, name, at)
            return value if value is not None else Method(receiver, None, name)
        if isinstance(receiver, Unknown):
            return self._unknown_attribute(receiver, name, at)
        if isinstance(receiver, Library):
            return Library(f"{receiver.path}.{name}")
        if isinstance(receiver, TreeModule):
            return self.module_member(receiver, name)
        if isinstance(receiver, Class):
            owned = self._class_member(receiver.info, name, at)
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
                return DATA
            if name == "grad":
                self.mark_owned("grad-read", at, receiver)
                return DATA
            if name == "requires_grad":
                return NUMBER
        return Method(receiver, None, name)

    def _class_member(self, info: ClassInfo, name: str, at: ast.AST) -> Value | None:
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
            member = self._class_member(receiver.cls, name, at)
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

    def _unknown_attribute(self, receiver: Unknown, name: str, at: ast.AST) -> Value:
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
            member = receiver.members[name] = self.unknown(f"{receiver.origin}.{name}", data=receiver.data)
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
            self.s.set((oid, name), value)
            self.attributes.setdefault(oid, {})[name] = None
            self.stored(value, Carrier("attribute", oid, name), at)
            if isinstance(receiver, Unknown):
                self.escape(value, "stored on an object that cannot be seen") if not receiver.data else None
        elif isinstance(receiver, TreeModule):
            self.set_module_member(receiver, name, value, at)
        elif isinstance(receiver, Library):
            self.escape(value, "stored on a module")

    # methods

    def call_method(self, receiver: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        if isinstance(receiver, Join):
            return self._method_of_each(receiver, name, args, at)
        if isinstance(receiver, Tensor):
            return self.tensor_method(receiver, name, args, at)
        if isinstance(receiver, Unknown):
            return self._unknown_method(receiver, name, args, at)
        if isinstance(receiver, Instance):
            return self._instance_method(receiver, name, args, at)
        if isinstance(receiver, Module):
            stored = self.s.get((receiver.oid, name))
            if isinstance(stored, Value):
                return self.call_value(stored, args, at)
            return self.module_method(receiver, name, args, at)
        if isinstance(receiver, Optimizer):
            return self.optimizer_method(receiver, name, args, at)
        if isinstance(receiver, Library):
            return self.call_value(Library(f"{receiver.path}.{name}"), args, at)
        if isinstance(receiver, (TreeModule, Class)):
            member = self.get_attribute(receiver, name, at)
            if isinstance(receiver, Class) and isinstance(member, (Unknown, Method)):
                if name == "apply" and receiver.info.family == "function":
                    return self._apply_function(receiver.info, args, at)
                if name == "__init__":
                    return NONE
                if name == "load_from_checkpoint":
                    return self.instantiate(receiver.info, Arguments(args.call), at)
            return self.call_value(member, args, at)
        if isinstance(receiver, Super):
            return self._super_method(receiver, name, args, at)
        if isinstance(receiver, (Sequence, Mapping, Tuple)):
            return self.container_method(receiver, name, args, at)
        if isinstance(receiver, Parameters):
            if name in ("requires_grad_",):
                on = args.get(0, "requires_grad")
                truth = True if on is None else self.truth(on)
                self.freeze(receiver.owner, None if truth is None else not truth)
            if name == "register_hook":
                self.mark_owned("hook", at, receiver)
            elif name.endswith("_") and not name.startswith("_") and name != "requires_grad_":
                self.mark_owned("parameter-changed", at, receiver)
            return self.tensor_op(at, name, [receiver]) if receiver.element else receiver
        if isinstance(receiver, (Const, Plain)):
            if name == "format":
                for value in args.all():
                    self.use(value, "format", at)
                return TEXT
            if name == "join":
                return TEXT
            if isinstance(receiver, Plain) and receiver.kind == "array":
                for value in args.all():
                    self.use(value, f"method:{name}", at)
                return ARRAY
            return self.opaque(at, name, args.all())
        if isinstance(receiver, Method) and receiver.function is None:
            # e.g. optimizer.state_dict().items() on something unseen
            return self.opaque(at, name, args.all())
        self.run_callbacks(args, at)
        return self.opaque(at, name, args.all())

    def _method_of_each(self, receiver: Join, name: str, args: Arguments, at: ast.AST) -> Value:
        options = [o for o in receiver.options if not (isinstance(o, Const) and o.value is None)]
        if len(options) == 1:
            return self.call_method(options[0], name, args, at)
        if name == "backward":
            # one walk over what may be there
            tensors = [o for o in options if not isinstance(o, (Const, Plain))]
            graphs = [o for o in tensors if self.nodes_of(o)]
            if graphs or not tensors:
                self.backward_method(Join(tuple(graphs)) if graphs else receiver, args, at)
                return NONE
        found = self._one_of([self.call_method(option, name, args, at) for option in options])
        return found if found is not None else self.unknown(name)

    def _instance_method(self, receiver: Instance, name: str, args: Arguments, at: ast.AST) -> Value:
        stored = self.s.get((receiver.oid, name))
        if isinstance(stored, Value):
            return self.call_value(stored, args, at)
        member = self._class_member(receiver.cls, name, at)
        if isinstance(member, Function):
            if member.kind == "property":
                return self.call_value(self.call_function(member, Arguments(), at, receiver=receiver), args, at)
            if member.kind == "staticmethod":
                return self.call_function(member, args, at)
            if receiver.cls.is_module and not self.frame.inside_module:
                first = self.clock + 1
                grad = self.s.grad
                result = self.call_function(member, args, at, receiver=receiver)
                self.forwarded(at, receiver, first, grad, name, args)
                return result
            return self.call_function(member, args, at, receiver=receiver)
        if member is not None:
            return self.call_value(member, args, at)
        if receiver.cls.is_module:
            if name in ("manual_backward", "backward"):
                return self._wrapped_backward(args, at)
            return self.module_method(receiver, name, args, at)
        if name in facts.BACKWARD_METHODS:
            return self._wrapped_backward(args, at)
        self.run_callbacks(args, at)
        if receiver.cls.family.startswith("external"):
            for value in args.all():
                self.escape(value, "a method of a base that cannot be seen")
            return self.unseen_call(self.opaque(at, name, args.all()), name)
        return self.opaque(at, name, args.all())

    def _wrapped_backward(self, args: Arguments, at: ast.AST) -> Value:
        if isinstance(at, ast.Call) and args.positional:
            rest = Arguments(args.call, args.positional[1:], args.keywords, args.more)
            self._walk_with(at, args.positional[:1], rest, "backward", retain_at=99, create_at=99)
        return NONE

    def _super_method(self, receiver: Super, name: str, args: Arguments, at: ast.AST) -> Value:
        target = receiver.receiver
        found = receiver.cls.find(name, after=receiver.cls)
        if isinstance(target, Instance):
            order = target.cls.mro()
            if receiver.cls in order:
                found = target.cls.find(name, after=receiver.cls)
        if isinstance(found, Function):
            return self.call_function(found, args, at, receiver=target)
        if name in ("__init__", "__setattr__", "__init_subclass__"):
            return NONE
        if isinstance(target, Instance) and target.cls.is_module:
            if name == "forward":
                nodes = [n for v in args.all() for n in self.nodes_of(v)] + self.parameter_leaves(target)
                return self.unknown("forward", self.node(at, "module", nodes, label="forward"))
            if name == "__getattr__" and args.positional:
                return self.unknown("attribute")
            return self.module_method(target, name, args, at)
        return self.opaque(at, name, args.all())

    def _apply_function(self, info: ClassInfo, args: Arguments, at: ast.AST) -> Value:
        """``autograd.Function.apply``: its backward is its own business."""
        nodes = [n for v in args.all() for n in self.nodes_of(v)]
        self.mark("custom-function", at, nodes)
        return self.unknown(info.name, self.node(at, "op", nodes, label=info.name))

    def _unknown_method(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        stored = self.s.get((receiver.oid, name))
        if isinstance(stored, Value):
            return self.call_value(stored, args, at)
        if receiver.module is not None:
            return self.module_method_of_unknown(receiver, name, args, at)
        if name == "backward":
            if (
                args.positional
                and receiver.node is None
                and (self.nodes_of(args.positional[0]) or (len(args.positional) == 1 and not _looks_like_gradient(at)))
            ):
                return self._wrapped_backward(args, at)
            return self.backward_method(receiver, args, at)
        if name in facts.BACKWARD_METHODS:
            return self._wrapped_backward(args, at)
        if name in (
            "eval",
            "train",
            "parameters",
            "named_parameters",
            "load_state_dict",
            "named_modules",
            "requires_grad_",
        ) and (receiver.node is None and (not receiver.data or name in ("parameters", "named_parameters"))):
            receiver.module = Module(self.new_oid(), "", self.leaf(at, receiver.origin))
            return self.module_method_of_unknown(receiver, name, args, at)
        if name == "step" and receiver.origin.startswith("torch.optim.lr_scheduler"):
            for value in args.all():
                # ReduceLROnPlateau compares it with earlier ones
                self.use(value, "call:scheduler.step", at)
            return NONE
        if name == "step" and (args.empty or any(isinstance(v, (Function, Method)) for v in args.all())):
            return self.optimizer_method(receiver, "step", args, at)
        if name == "zero_grad":
            self.mark("zero_grad", at, by=receiver)
            return NONE
        if name in ("items", "keys", "values") and args.empty and receiver.node is not None:
            return self.unknown(name, self.part(at, receiver, name))
        if name in facts.LOGGING_METHODS:
            for value in args.all():
                self.use(value, f"call:{name}", at)
            return NONE
        if receiver.node is not None:
            return self._opaque_tensor_method(receiver, name, args, at)
        if name in ("data_ptr", "item", "numpy", "tolist", "size", "dim", "numel"):
            return ARRAY if name in ("numpy", "tolist") else NUMBER
        if name in facts.DETACHING:
            return DATA
        if name == "requires_grad_":
            return self.tensor_method(Tensor(None), name, args, at)
        if name in (
            "cuda",
            "to",
            "cpu",
            "float",
            "long",
            "double",
            "contiguous",
            "clone",
            "half",
            "int",
            "byte",
            "bool",
            "type",
        ):
            if name in ("cuda", "to", "cpu"):
                return receiver
            return Tensor(None, shadow=receiver.shadow) if receiver.shadow else DATA
        if name == "scale" and args.positional:
            return self.scaled(args.positional[0], at)
        if name in ("prepare", "setup", "setup_module", "distribute"):
            values = args.positional
            return values[0] if len(values) == 1 else Tuple(tuple(values))
        if name in ("get", "pop", "setdefault"):
            return (
                self._unknown_attribute(receiver, f"[{name}]", at)
                if not args.positional[1:]
                else self.opaque(at, name, args.all())
            )
        if name in ("append", "add", "put", "push", "store", "update", "extend", "insert", "appendleft"):
            self._store_in_unknown(receiver, name, args, at)
        elif not receiver.data:
            for value in args.all():
                self.use(value, f"call:{name}", at)
        self.run_callbacks(args, at)
        made = self.opaque(at, f"{receiver.origin}.{name}", [*args.all(), receiver])
        if receiver.data:
            made.data = made.node is None
            return made
        return self.unseen_call(made, name)

    def _store_in_unknown(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> None:
        for value in args.all():
            for node in self.nodes_of(value):
                node.uses.append((f"stored-unseen:{name}", self.place(at)))
        for i, value in enumerate(args.positional):
            if self.nodes_of(value) and isinstance(at, ast.Call) and i < len(at.args):
                self.trace.storings.append(Storing(self.place(at), receiver, at.args[i], value, name, self.s.grad))

    def module_method_of_unknown(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of something that behaves like a module: itself where a module would return itself."""
        assert receiver.module is not None
        if name == "module":
            return self.call_value(receiver, args, at)
        result = self.module_method(receiver.module, name, args, at)
        if receiver.origin == "torch.load" and self.s.get((receiver.module.oid, "mode")) is None:
            self.s.set((receiver.module.oid, "mode"), "loaded")
        return receiver if result is receiver.module else result

    def _opaque_tensor_method(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        if name in ("item", "numpy", "tolist", "size", "dim", "numel", "stride", "nelement"):
            self.use(receiver, f"method:{name}", at)
            return ARRAY if name in ("numpy", "tolist") else NUMBER
        return self.tensor_method(receiver, name, args, at)

    # containers

    def put_item(self, mapping: Mapping, key: Value, value: Value) -> None:
        """``mapping[key] = value``."""
        names = self.attributes.setdefault(mapping.oid, {})
        if isinstance(key, Const):
            cell = ("key", key.value)
            names[cell] = None
            self.s.set((mapping.oid, cell), value)
        else:
            old = self.s.get((mapping.oid, REST))
            self.s.set((mapping.oid, REST), value if old is None else self.join(old, value))

    def get_item(self, container: Value, key: Value, at: ast.AST) -> Value:
        """``container[key]``."""
        if isinstance(container, Join):
            options = [o for o in container.options if not (isinstance(o, Const) and o.value is None)]
            found = [self.get_item(o, key, at) for o in options]
            result = self._one_of(found)
            return result if result is not None else self.lost()
        if isinstance(container, Tuple):
            if (
                isinstance(key, Const)
                and isinstance(key.value, int)
                and -len(container.items) <= key.value < len(container.items)
            ):
                return container.items[key.value]
            return self._one_of(list(container.items)) or self.lost()
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
                value = self._one_of([*items, *([rest] if rest is not None else [])])
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
                value = self._one_of(self.elements(container))
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
            return self._unknown_attribute(container, name, at)
        if isinstance(container, Instance):
            member = container.cls.find("__getitem__")
            if isinstance(member, Function):
                return self.call_function(member, Arguments(None, [key]), at, receiver=container)
            items = self.s.get((container.oid, ITEMS))
            if items:
                return self._one_of(list(items)) or self.unknown("item")
        if isinstance(container, Parameters):
            return replace(container, element=True)
        if isinstance(container, (Const, Plain)):
            return NUMBER if not (isinstance(container, Plain) and container.kind == "array") else ARRAY
        return self.unknown("item")

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
            self._note_storing(container, expression, value, "[]", at)
        elif isinstance(container, Sequence):
            items = self.s.get((container.oid, ITEMS)) or ()
            if isinstance(key, Const) and isinstance(key.value, int) and -len(items) <= key.value < len(items):
                changed = list(items)
                changed[key.value] = value
                self.s.set((container.oid, ITEMS), tuple(changed))
            else:
                rest = self.s.get((container.oid, REST))
                self.s.set((container.oid, REST), value if rest is None else self.join(rest, value))
            self._note_storing(container, expression, value, "[]", at)
        elif isinstance(container, Instance):
            member = container.cls.find("__setitem__")
            if isinstance(member, Function):
                self.call_function(member, Arguments(None, [key, value]), at, receiver=container)
        elif isinstance(container, Unknown):
            # an element of something unseen: later reads of it may find this value
            name = f"[{key.value!r}]" if isinstance(key, Const) else "[]"
            old = self.s.get((container.oid, name))
            joined = value if old is None or isinstance(key, Const) else self.join(old, value)
            self.s.set((container.oid, name), joined)
            self.stored(value, Carrier("element", container.oid, name), at)
            if not container.data:
                for node in self.nodes_of(value):
                    node.uses.append(("stored-unseen:[]", self.place(at)))
            if expression is not None:
                self.trace.storings.append(Storing(self.place(at), container, expression, value, "[]", self.s.grad))

    def _note_storing(
        self, container: Value, expression: ast.expr | None, value: Value, method: str, at: ast.AST
    ) -> None:
        """Record that a container of the program got a value."""
        if expression is None:
            return
        self.tick()
        nodes = tuple(dict.fromkeys(self.nodes_of(value)))
        held = tuple(dict.fromkeys(self.nodes_of(container))) if nodes else ()
        parts = tuple(self.parts_of(expression)) if nodes else ()
        self.trace.storings.append(
            Storing(
                self.place(at),
                container,
                expression,
                value,
                method,
                self.s.grad,
                nodes,
                held,
                parts,
                self.born.get(getattr(container, "oid", 0), self.clock),
            )
        )

    def note_element(self, target: ast.Subscript, expression: ast.expr | None, value: Value, changed: Tensor) -> None:
        """Record that a tensor got a value in one of its elements; ``changed`` is the tensor afterwards."""
        nodes = tuple(dict.fromkeys(self.nodes_of(value)))
        if expression is not None and nodes and changed.node is not None:
            self.trace.storings.append(
                Storing(
                    self.place(target),
                    changed,
                    expression,
                    value,
                    "element",
                    self.s.grad,
                    nodes,
                    (changed.node,),
                    tuple(self.parts_of(expression)),
                    self.clock,
                )
            )

    def parts_of(self, expression: ast.expr) -> list[tuple[ast.expr, Value]]:
        """The smallest expressions in ``expression`` that carry a graph into it, as evaluated last, and their
        values."""
        if isinstance(expression, (ast.Tuple, ast.List)):
            return [part for inner in expression.elts for part in self.parts_of(inner)]
        if isinstance(expression, ast.Dict):
            return [part for inner in expression.values for part in self.parts_of(inner)]
        value = self.values.get(expression)
        if value is None or not self.nodes_of(value):
            return []
        if isinstance(expression, ast.UnaryOp):
            return self.parts_of(expression.operand) or [(expression, value)]
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
            sides = [s for s in (expression.left, expression.right) if self.nodes_of(self.values.get(s))]
            if len(sides) == 1 and not (isinstance(expression.op, ast.Div) and sides[0] is expression.right):
                return self.parts_of(sides[0])
        return [(expression, value)]

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
                    joined = self._one_of([*([rest] if rest is not None else []), *new])
                    if joined is not None:
                        self.s.set((container.oid, REST), joined)
                if isinstance(at, ast.Call) and at.args:
                    self._note_storing(container, at.args[-1], value, name, at)
                elif isinstance(at, ast.AugAssign):
                    self._note_storing(container, at.value, value, name, at)
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
                return self._one_of(self.elements(container)) or self.lost()
            if name == "copy":
                return self.new_sequence(list(items), self.s.get((container.oid, REST)))
            if name in ("sort", "reverse", "remove", "index", "count"):
                return NUMBER if name in ("index", "count") else NONE
        if isinstance(container, Mapping):
            if name in ("values", "items", "keys", "copy"):
                return self._mapping_view(container, name)
            if name in ("get", "setdefault", "pop"):
                cell = ("key", given[0].value) if given and isinstance(given[0], Const) else None
                stored = (
                    self.s.get((container.oid, cell)) if cell is not None else self._one_of(self.elements(container))
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

    def _mapping_view(self, container: Mapping, name: str) -> Value:
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

    # builtins

    def builtin(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A call of a builtin."""
        given = args.positional
        first = given[0] if given else None
        if name in ("float", "int", "bool", "complex"):
            self.use(first, f"call:{name}", at)
            if isinstance(first, Const) and isinstance(first.value, (int, float)):
                return first
            return NUMBER
        if name in ("str", "repr", "format", "ascii", "chr", "hex"):
            for value in given:
                self.use(value, "format", at)
            return TEXT
        if name == "print":
            for value in args.all():
                self.use(value, "format", at)
            return NONE
        if name in ("len", "id", "hash", "ord", "input", "open", "callable", "issubclass", "time"):
            return NUMBER
        if name == "isinstance":
            return self._isinstance(given)
        if name == "hasattr":
            return self._hasattr(given)
        if name == "getattr" and len(given) >= 2:
            if isinstance(given[1], Const) and isinstance(given[1].value, str):
                return self.get_attribute(given[0], given[1].value, at)
            return self.lost("getattr")
        if name == "setattr" and len(given) >= 3:
            if isinstance(given[1], Const) and isinstance(given[1].value, str):
                self.set_attribute(given[0], given[1].value, given[2], at)
            else:
                self.set_attribute(given[0], "*", given[2], at)
            return NONE
        if name == "super":
            return self._super(given)
        if name in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"):
            if first is None:
                return self.new_sequence([], kind=name)
            return self._as_sequence(first, name, at)
        if name == "dict":
            made = self.new_mapping()
            if isinstance(first, Mapping):
                return self._mapping_view(first, "copy")
            if isinstance(first, (Sequence, Tuple)):
                for pair in self.iterate(first, at):
                    if isinstance(pair, Tuple) and len(pair.items) == 2:
                        self.put_item(made, *pair.items)
            for key, value in args.keywords.items():
                self.put_item(made, Const(key), value)
            return made
        if name == "sum" and first is not None:
            elements = self.elements(first) if not isinstance(first, (Tensor, Unknown)) else [first]
            start = [given[1]] if len(given) > 1 else []
            if not any(self.nodes_of(v) for v in (*elements, *start)):
                if not elements or all(isinstance(v, (Plain, Const)) for v in elements):
                    return NUMBER
                total = self.unknown("sum")
                total.shadow = self.shadow_of([*elements, *start])
                return total
            scalar = all(self.is_scalar(v) for v in (*elements, *start)) and not isinstance(first, (Tensor, Unknown))
            return self.tensor_op(at, "sum", [*elements, *start], saves=False, scalar=scalar)
        if name in ("max", "min"):
            values = given if len(given) > 1 else (self.elements(first) if first is not None else [])
            for value in values:
                self.use(value, "compare", at)
            return self._one_of(list(values)) or NUMBER
        if name in ("abs", "pow", "round", "divmod"):
            if first is not None and self.nodes_of(first):
                return self.tensor_op(at, name, given, scalar=self.is_scalar(first))
            shadow = self.shadow_of(given)
            return Tensor(None, shadow=shadow) if any(isinstance(o, Unseen) for o in shadow) else NUMBER
        if name in ("range",):
            return self.unknown("range", data=True) if not given else Plain("range")
        if name in ("enumerate", "zip", "map", "filter", "next"):
            return self._iteration_builtin(name, args, at)
        if name in ("vars", "locals", "globals"):
            return self.lost(name)
        if name == "dir":
            return self.unknown(name)
        if name in ("any", "all"):
            self.use(first, "truth", at)
            return NUMBER
        if name == "type":
            return self.unknown("type")
        if name == "slice":
            return NUMBER
        if name in ("eval", "exec", "__import__", "compile"):
            return self.unknown(name)
        self.run_callbacks(args, at)
        return self.opaque(at, name, args.all())

    def _iteration_builtin(self, name: str, args: Arguments, at: ast.AST) -> Value:
        given = args.positional
        first = given[0] if given else None
        if name == "enumerate" and first is not None:
            turns = self.iterate(first, at)
            return self.new_sequence([Tuple((NUMBER, value)) for value in turns], kind="turns")
        if name == "zip":
            columns = [self.iterate(value, at) for value in given]
            if args.more or not columns:
                return self.unknown("zip", data=True)
            turns = []
            for i in range(2):
                row = [column[min(i, len(column) - 1)] if column else self.unknown("item") for column in columns]
                turns.append(Tuple(tuple(row)))
            return self.new_sequence(list(turns), kind="turns")
        if name in ("map", "filter") and len(given) > 1:
            turns = self.iterate(given[1], at)
            if name == "filter":
                return given[1] if isinstance(given[1], Parameters) else self.new_sequence(list(turns))
            if isinstance(given[0], Library) and given[0].path in ("builtins.float", "builtins.int", "builtins.str"):
                return self.new_sequence([], rest=NUMBER)
            return self.new_sequence([self.call_value(given[0], Arguments(args.call, [v]), at) for v in turns])
        if name == "next" and first is not None:
            turns = self.iterate(first, at)
            return self._one_of(turns) or self.unknown("next", data=True)
        return self.unknown(name)

    def _as_sequence(self, value: Value, kind: str, at: ast.AST) -> Value:
        if isinstance(value, Parameters):
            return value
        if isinstance(value, Tuple) and kind == "tuple":
            return value
        if isinstance(value, Mapping):
            return self._mapping_view(value, "keys")
        if isinstance(value, (Tuple, Sequence)):
            rest = self.s.get((value.oid, REST)) if isinstance(value, Sequence) else None
            items = list(value.items) if isinstance(value, Tuple) else list(self.s.get((value.oid, ITEMS)) or ())
            if kind == "tuple" and rest is None:
                return Tuple(tuple(items))
            return self.new_sequence(items, rest, kind="list" if kind != "iter" else "turns")
        if isinstance(value, Module) and value.name in facts.MODULE_CONTAINERS:
            return self.new_sequence(list(self.s.get((value.oid, ITEMS)) or ()), self.s.get((value.oid, REST)))
        if isinstance(value, Plain):
            return value
        if isinstance(value, (Tensor, Unknown)) and value.node is not None:
            return self.new_sequence([], rest=self.unknown("item", self.part(at, value, "item")))
        made = self.unknown(kind, data=isinstance(value, Unknown) and value.data)
        made.shadow = self.shadow_of([value])
        return made

    def _isinstance(self, given: list[Value]) -> Value:
        if len(given) < 2:
            return NUMBER
        value, kinds = given[0], given[1]
        wanted = [kinds] if not isinstance(kinds, Tuple) else list(kinds.items)
        paths = {w.path for w in wanted if isinstance(w, Library)}
        if isinstance(value, Tensor):
            if paths & {"torch.Tensor", "torch.autograd.Variable", "torch.FloatTensor", "torch.cuda.FloatTensor"}:
                return Const(True)
            if paths and all(p.startswith("builtins.") for p in paths) and len(paths) == len(wanted):
                return Const(False)
        if isinstance(value, (Tuple, Sequence)):
            kind = "builtins.tuple" if isinstance(value, Tuple) else f"builtins.{value.kind}"
            if kind in paths:
                return Const(True)
            if len(paths) == len(wanted) and all(p.startswith(("builtins.", "torch.")) for p in paths):
                return Const(False)
        if isinstance(value, Mapping) and "builtins.dict" in paths:
            return Const(True)
        if isinstance(value, (Instance, Module)):
            answers = {self._is_of(value, w) for w in wanted}
            if True in answers:
                return Const(True)
            if answers == {False}:
                return Const(False)
        return NUMBER

    @staticmethod
    def _is_of(value: Instance | Module, kind: Value) -> bool | None:
        """Whether an object is of a class, None where that cannot be seen."""
        if isinstance(value, Module):
            if isinstance(kind, Class):
                return False if value.name else None
            if isinstance(kind, Library) and value.name:
                return True if kind.path == "torch.nn.Module" else kind.path == f"torch.nn.{value.name}" or None
            return None
        order = value.cls.mro()
        if isinstance(kind, Class):
            if kind.info in order:
                return True
            return None if value.cls.family.startswith("external") else False
        return None

    def _hasattr(self, given: list[Value]) -> Value:
        if len(given) == 2 and isinstance(given[0], Instance) and isinstance(given[1], Const):
            owner = given[0]
            if isinstance(self.s.get((owner.oid, given[1].value)), Value) or owner.cls.find(str(given[1].value)):
                return Const(True)
        return NUMBER

    def _super(self, given: list[Value]) -> Value:
        frame: Frame | None = self.frame
        if len(given) == 2 and isinstance(given[0], Class):
            return Super(given[0].info, given[1])
        while frame is not None and (frame.function is None or frame.function.cls is None):
            frame = frame.call.frame if frame.call is not None else None
        if frame is None or frame.receiver is None or frame.function is None or frame.function.cls is None:
            return self.unknown("super")
        return Super(frame.function.cls, frame.receiver)


def _yields(definition: ast.AST) -> bool:
    stack = list(ast.iter_child_nodes(definition))
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _looks_like_gradient(at: ast.AST) -> bool:
    """``x.backward(torch.ones(...))`` or ``x.backward(grad)`` on something unseen, rather than
    ``engine.backward(loss)``."""
    if not isinstance(at, ast.Call) or not at.args:
        return False
    given = at.args[0]
    return isinstance(given, (ast.Call, ast.Constant)) or (
        isinstance(given, ast.Name) and ("grad" in given.id or given.id in ("one", "mone", "ones"))
    )
