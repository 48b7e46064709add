"""Methods that change a tensor in place: its name, and what shares its memory, have another graph from then on."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import Altered, Marked, NodeKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import (
    Const,
    Join,
    Plain,
    Tensor,
    Unknown,
)
from codemods.graph.python.definitions import Definitions

_TENSORS = frozenset((Tensor, Unknown, Join))
_MAYBE_PLAIN = frozenset((Const, Plain, Join))


class InPlace(Definitions):
    """The part of the engine that follows changes in place."""

    def changed_in_place(self, function: ast.Attribute, receiver: Value, args: Arguments, result: Value) -> None:
        """``x.add_(y)`` gives the name a new node; ``h.detach_()`` takes it away."""
        run = self.run
        name = function.attr
        if not name.endswith("_") or name.startswith("_"):
            return
        self._altered(name, receiver, args, function)
        if name not in ("requires_grad_", "detach_"):
            run.leaf_refused(receiver, function)
        self.growing.note_added(function, receiver, args.call, result)
        if name in ("requires_grad_",) and run.nodes_of(receiver):
            return
        if name == "requires_grad_" and isinstance(receiver, (Tensor, Unknown)) and isinstance(result, Tensor):
            run.asked(receiver, result, function)
        if name == "detach_":
            # by whatever name: this may be what a turn of a loop put into a list or dict
            self.torch.forget_turns()
        if name == "detach_" and isinstance(receiver, (Tensor, Unknown)) and receiver.node is not None:
            run.replace_everywhere(receiver, result)
        target = function.value
        if run.s.grad is False and name != "detach_":
            # its values change, not its history
            if isinstance(target, ast.Attribute) and target.attr == "data":
                run.mark(Marked.DATA_WRITTEN, function)
            return
        if any(run.nodes_of(value) for value in args.all()):
            self._written_into(function, receiver, result)
        several = isinstance(receiver, Join) and self._are_tensors(receiver) and self._are_tensors(result)
        if several or (isinstance(receiver, (Tensor, Unknown)) and isinstance(result, Tensor)):
            self._rebound(target, receiver, result, function)

    def _written_into(self, function: ast.Attribute, receiver: Value, result: Value) -> None:
        """Give every tensor that shares memory with ``receiver`` the graph of the value written there."""
        run = self.run
        for option in run.options(receiver):
            if isinstance(option, Tensor) and isinstance(result, Tensor):
                run.write_through(option, result, function)
            elif isinstance(option, Unknown) and option.node is None and not run.is_module(option):
                option.node = run.node(
                    function, NodeKind.CALL, run.nodes_of(result), certain=False, label=function.attr
                )
                run.put_into(option, "[]", result)

    def _rebound(self, target: ast.expr, receiver: Value, result: Value, at: ast.AST) -> None:
        """Bind what a tensor has become to the expression that it is written as."""
        if isinstance(receiver, Tensor) and isinstance(result, Tensor) and receiver.aliases:
            result = replace(result, aliases=receiver.aliases)
        if isinstance(target, ast.Attribute) and target.attr in ("data", "grad"):
            if target.attr == "data":
                self.run.mark(Marked.DATA_WRITTEN, at)
        elif isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) and (
            # a frozen parameter with other values is the same parameter
            self.run.nodes_of(result) or self.run.holder(target) is None
        ):
            self.assign(target, result, None)

    def _are_tensors(self, value: Value) -> bool:
        """Whether all that a value may be can be changed in place as a tensor is."""
        options = self.run.options(value)
        return all(isinstance(o, (Tensor, Unknown)) for o in options) and any(isinstance(o, Tensor) for o in options)

    def _altered(self, name: str, receiver: Value, args: Arguments, at: ast.AST) -> None:
        how = self.run.altered_by(name)
        if how is not Altered.VALUES:
            self.run.alter(receiver, how, at)
        elif name not in ("share_memory_", "detach_"):
            self.run.write(receiver, args.all(), at)
