"""Calls of methods of modules: looked up in the table of those that every module has."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import NAMED_PARTS
from codemods.graph.model.facts.libraries import KEEPING_NOTHING, RUN_BY_PARTS
from codemods.graph.model.kinds import Marked, NodeKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.trace import Handing
from codemods.graph.model.values import Instance, Module, Tensor
from codemods.graph.torch.layers import Layers
from codemods.graph.torch.module_methods import OF_MODULES, register_hook, shows_module


class Modules(Layers):
    """The part of the engine that calls methods of modules."""

    def module_method(self, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that every ``nn.Module`` has, called on a module."""
        within = module.within if isinstance(module, (Module, Instance)) else None
        if within is not None:
            within.as_module |= shows_module(self, name, args)
        handler = OF_MODULES.get(name)
        found = handler(self, module, name, args, at) if handler is not None else None
        if found is not None:
            return found
        if isinstance(module, Module) and (module.name, name) in NAMED_PARTS:
            part = Module(self.run.new_oid(), NAMED_PARTS[module.name, name], module.leaf)
            return self.run.interpreter.call_value(part, args, at)
        if isinstance(module, Module) and _runs_layers(module, args):
            return self.run.interpreter.call_value(module, args, at)
        if name.startswith(("register_", "_register_")) and name.endswith("hook"):
            return register_hook(self, module, name, args, at)
        return self._own_method(module, name, args, at)

    def _own_method(self, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of a class that cannot be seen: it may run a forward of its own."""
        run = self.run
        first = run.clock + 1
        grad = run.s.grad
        nodes = [n for v in args.all() for n in run.nodes_of(v)] + run.parameter_leaves(module)
        # ``transformer.encoder(x)`` runs what its module is made of
        label = module.name if isinstance(module, Module) and module.name else name
        if isinstance(module, Module) and module.leaf is not None:
            known = module.leaf.label.startswith(KEEPING_NOTHING)
            label = f"{module.leaf.label}.{name}" if known else label
        result = run.unseen_result(name, run.node(at, NodeKind.CALL, nodes, certain=False, label=label), args.all(), at)
        for value in args.all():
            run.use(value, UseKind.UNSEEN_CALL, at, name)
        models = run.brings_model(args.all())
        run.trace.handings.append(Handing(run.place(at), (*args.all(), module), models))
        run.mark(Marked.UNSEEN_MODULE_METHOD, at)
        self.forwarded(at, module, first, grad, name, args)
        return result


def _runs_layers(module: Module, args: Arguments) -> bool:
    """Whether it is a public model that is given a tensor by one of its methods, or by an attribute: a layer of it."""
    public = module.leaf is not None and module.leaf.label.startswith(RUN_BY_PARTS)
    return public and any(isinstance(value, Tensor) for value in args.positional)
