"""Calls of any value: told apart by what it is, and left to the part that knows it."""

from __future__ import annotations

import ast

from codemods.graph.libraries.torch_gradients import decorated
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import FunctionKind, ModuleMode, NodeKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import (
    Class,
    Const,
    Function,
    GradMode,
    Instance,
    Join,
    Library,
    Method,
    Module,
    Partial,
    Plain,
    Reference,
    Tensor,
    Unknown,
)
from codemods.graph.python.method_calls import MethodCalls
from codemods.graph.run.contents import ANY

_MAKING = ("torchvision.transforms.", "torchvision.io.", "torchaudio.load.")
"""How the public names begin of what makes tensors of files (docs)."""


class Calls(MethodCalls):
    """The part of the engine that calls."""

    def call_value(self, function: Value, args: Arguments, at: ast.AST) -> Value:
        run = self.run
        if isinstance(function, Join):
            return self._call_each(function, args, at)
        if isinstance(function, Function):
            return self.call_function(function, args, at)
        if isinstance(function, Method):
            if function.function is not None:
                return self._call_bound(function.function, function.receiver, args, at)
            return self.call_method(function.receiver, function.name, args, at)
        if isinstance(function, Partial):
            combined = Arguments(
                args.call,
                [*function.args, *args.positional],
                {**dict(function.kwargs), **args.keywords},
                args.more,
            )
            return self.call_value(function.function, combined, at)
        if isinstance(function, Reference):
            return function.target
        if isinstance(function, Class):
            return self.instantiate(function.info, args, at)
        if isinstance(function, GradMode) and args.positional:
            return decorated(args.positional[0], function.enabled)
        if isinstance(function, Library):
            if function.path.startswith("builtins."):
                return self.builtin(function.path.removeprefix("builtins."), args, at)
            return self.call_library(function.path, args, at)
        if isinstance(function, Instance):
            return self.call_instance(function, args, at)
        if isinstance(function, Module):
            own = run.s.get((function.oid, "forward"))
            if isinstance(own, Value) and not isinstance(own, Method):
                return self.call_value(own, args, at)
            return self.torch.call_module(function, args, at)
        if isinstance(function, Unknown):
            return self._call_unknown(function, args, at)
        results = run.run_callbacks(args, at)
        return run.opaque(at, "call", [*args.all(), function, *results], of=function)

    def _call_unknown(self, function: Unknown, args: Arguments, at: ast.AST) -> Value:
        run = self.run
        if function.module is None and function.node is None and self._is_loaded_model(function, args):
            run.s.set((run.show_module(function, at, "torch.load").oid, "mode"), ModuleMode.LOADED)
        if function.module is not None:
            return self.torch.call_module(function.module, args, at, owner=function)
        run.poison(args, at)
        results = run.run_callbacks(args, at)
        made = run.opaque(at, function.origin, [*args.all(), function, *results], public=function.public)
        run.may_be_put(args, made, at)
        self.may_put_away(function, args, at)
        return made if function.data else run.unseen_call(made, function.origin)

    def _is_loaded_model(self, function: Unknown, args: Arguments) -> bool:
        """Whether it came out of a file of torch's, and is called with a tensor: what is saved there and takes one is a
        module."""
        loaded = f"{function.path}.".startswith("torch.load.")
        options = [o for value in args.all() for o in self.run.options(value)] if loaded else []
        return any(isinstance(o, Tensor) or (isinstance(o, Unknown) and o.path.startswith(_MAKING)) for o in options)

    def call_library(self, path: str, args: Arguments, at: ast.AST) -> Value:
        head, _, name = path.rpartition(".")
        if head == "torch.Tensor" and len(args.positional) == 1 and not args.more and not name.startswith("_"):
            # torch.Tensor.backward(loss): a method by its class
            alone = Arguments(args.call, [], args.keywords)
            return self.call_method(args.positional[0], name, alone, at)
        return self.libraries.call_library(path, args, at)

    def _call_each(self, function: Join, args: Arguments, at: ast.AST) -> Value:
        callable_options = [o for o in function.options if not isinstance(o, (Const, Plain))]
        callable_options = [o for o in callable_options if self._takes(o, args, at)] or callable_options
        if not callable_options:
            return self.run.opaque(at, "call", args.all())
        # one after the other, not on paths of their own: what one does to itself does not touch the others, and a path
        # on which it did not run would keep what it held before
        results = [self.call_value(option, args, at) for option in callable_options]
        result = self.run.one_of(results, at)
        assert result is not None
        return result

    def call_instance(self, instance: Instance, args: Arguments, at: ast.AST) -> Value:
        """``obj(...)``: ``forward`` of a module, else ``__call__``."""
        run = self.run
        member = instance.cls.find("__call__")
        if member is None and instance.cls.is_module:
            member = self.class_member(instance.cls, "forward", at)
            first = run.clock + 1
            grad = run.s.grad
            args = self.torch.run_pre_hooks(instance, args, at)
            own = run.s.get((instance.oid, "forward"))
            if isinstance(own, Value):
                result = self.call_value(own, args, at)
            elif isinstance(member, Function):
                result = self.call_function(member, args, at, receiver=instance)
            elif (layer := self.torch.layer_of(instance)) is not None:
                result = self.torch.layer_output(layer, args, at)
            elif self.wraps(instance):
                result = self.wrapped_forward(instance, args, at)
            else:
                nodes = [n for v in args.all() for n in run.nodes_of(v)] + run.parameter_leaves(instance)
                result = run.unknown(instance.cls.name, run.node(at, NodeKind.MODULE, nodes, label="module"))
            result = self.torch.run_hooks(instance, args, result, at)
            self.torch.forwarded(at, instance, first, grad, "forward", args)
            return result
        if isinstance(member, Function):
            return self.call_function(member, args, at, receiver=instance)
        results = run.run_callbacks(args, at)
        made = run.opaque(at, instance.cls.name, [*args.all(), instance, *results])
        return run.unseen_call(made, instance.cls.name) if instance.cls.family == "function" else made

    def _takes(self, function: Value, args: Arguments, at: ast.AST) -> bool:
        """Whether a function, a class, or a module of the tree can be called so; of anything else that is not asked."""
        maker: Value | None = function
        if isinstance(function, Class):
            if function.info.calls_differently or function.info.of_metaclass("__call__") is not None:
                return True
            if function.info.find("__new__") is not None:
                return True
            maker = function.info.find("__init__")
        elif isinstance(function, Instance) and function.cls.is_module:
            maker = self._forward_of(function, at)
        if not isinstance(maker, Function) or maker.wrapped:
            return True
        return args.fit(maker.definition.args, bound=int(maker is not function))

    def _forward_of(self, module: Instance, at: ast.AST) -> Value | None:
        """The method that gets what a module is called with; None where it may get something else."""
        if module.cls.find("__call__") is not None or self.torch.hooks_of(module, before=True):
            return None
        if any(self.run.s.get((module.oid, name)) is not None for name in ("forward", ANY)):
            return None
        found = self.class_member(module.cls, "forward", at)
        return found if isinstance(found, Function) and found.kind is FunctionKind.FUNCTION else None
