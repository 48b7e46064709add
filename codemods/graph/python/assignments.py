"""Targets are bound: assignments, sums that grow by themselves, unpacking, ``del``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from operator import is_not
from types import NoneType
from typing import TypeVar

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import Marked, PlainKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.trace import Accumulation
from codemods.graph.model.values import (
    NONE,
    NUMBER,
    Const,
    Instance,
    Join,
    Mapping,
    Module,
    Namespace,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.python.deferred import later
from codemods.graph.python.operators import Operators
from codemods.graph.run.contents import ITEMS, REST
from codemods.source.walking import walk

_PLACES = (ast.Name, ast.Attribute, ast.Subscript)

_EXTENDED = ("ModuleList", "ParameterList", "Sequential")
"""Containers of modules that ``+=`` extends (docs: torch.nn)."""

_Statement = TypeVar("_Statement", ast.Assign, ast.AugAssign)


class Assignments(Operators):
    """The part of the engine that assigns."""

    # statements

    def _do_Assign(self, s: ast.Assign) -> None:
        self._for_each(s, s.targets[0] if len(s.targets) == 1 else s, s.value, self._bind)

    def _bind(self, s: ast.Assign) -> None:
        value = self.evaluate(s.value)
        for target in s.targets:
            self.growing.note_sum(target, s.value, value)
            self.assign(target, value, s.value)
            self.growing.note_growth(target, s.value, value)

    def _do_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is not None:
            self.assign(s.target, self.evaluate(s.value), s.value)

    def _do_AugAssign(self, s: ast.AugAssign) -> None:
        self._for_each(s, s.target, s.target, self._grow)

    def _for_each(self, s: _Statement, target: ast.AST, source: ast.expr, run: Callable[[_Statement], None]) -> None:
        """Run ``x[i] = f(x)`` once for each thing that ``x`` may be, a tensor among them: what is computed of one of
        them is not written into another."""
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            name = target.value.id
            cell = (self.run.frame.fid, name)
            several = self.run.s.get(cell)
            tensors = isinstance(several, Join) and any(isinstance(o, Tensor) for o in several.options)
            if tensors and any(isinstance(n, ast.Name) and n.id == name for n in walk(source)):
                after: list[Value] = []
                for option in self.run.options(several):
                    self.run.s.set(cell, option)
                    run(s)
                    left = self.run.s.get(cell)
                    after.append(left if isinstance(left, Value) else option)
                self.run.s.set(cell, self.run.one_of(after))
                return
        run(s)

    def _grow(self, s: ast.AugAssign) -> None:
        run = self.run
        old = self.evaluate(s.target)
        added = self.evaluate(s.value)
        if isinstance(s.target, (ast.Name, ast.Attribute)):
            run.write(old, [added], s)
            run.array_written(old, s)
            run.leaf_refused(old, s)
        name = type(s.op).__name__
        value: Value
        listed = name == "Add" and isinstance(added, (Parameters, Sequence))
        if isinstance(old, Parameters) and (old.element or not listed):
            run.mark_owned(Marked.PARAMETERS_CHANGED, s, old)
        if listed and isinstance(old, (Parameters, Sequence)) and Parameters in (old.__class__, added.__class__):
            # params += list(net.parameters())
            value = super().binary(name, old, added, s)
        elif name == "Add" and isinstance(old, Sequence):
            self.container_method(old, "extend", Arguments(None, [added]), s)
            value = old
        elif name == "Add" and isinstance(old, Mapping):
            # only counters can be added
            self.container_method(old, "update", Arguments(None, [added]), s)
            value = old
        elif name == "BitOr" and isinstance(old, (Mapping, Namespace)):
            value = self.container_method(old, "__ior__", Arguments(None, [added]), s)
        elif name == "Add" and isinstance(old, Module) and old.name in _EXTENDED:
            # layers += [layer]
            value = self.torch.module_method(old, "extend", Arguments(None, [added]), s)
        elif isinstance(old, Instance) and (changed := self.changed_object(name, old, added, s)) is not None:
            value = changed
        elif isinstance(old, Plain) and old.shares is not None:
            # changed in place
            value = old
        elif isinstance(old, Tensor) and old.node is not None and run.s.grad is False:
            # changed in place: its history stays
            value = old
        else:
            value = super().binary(name, old, added, s)
            if isinstance(old, Tensor) and isinstance(value, Tensor) and run.nodes_of(added):
                run.write_through(old, value, s)
            if isinstance(value, (Plain, Const)):
                value = NUMBER if not (isinstance(value, Plain) and value.kind is not PlainKind.NUMBER) else value
        if name == "Add":
            run.trace.accumulations.append(
                Accumulation(
                    run.place(s),
                    s.target,
                    old,
                    added,
                    value,
                    self.growing.carrier(s.target),
                    run.s.grad,
                    tuple(self.torch.parts_of(s.value)),
                )
            )
        self.assign(s.target, value, None)
        if name == "Add" and isinstance(old, Tuple) and isinstance(value, Tuple):
            self.torch.note_grown(value, self.growing.parts_of_container(s.value))

    def take(self, target: ast.expr, through: Value, at: ast.AST, value: Value) -> None:
        """Assign what a turn of a loop begins with: ``value``, or what the generator that it goes ``through`` reads
        when it goes on."""
        self.assign(target, self.run.one_of([value, *later(self.run, through, at)]) or value, None)

    def _do_Delete(self, s: ast.Delete) -> None:
        run = self.run
        for target in s.targets:
            if isinstance(target, ast.Name):
                run.s.delete((run.frame.fid if run.frame.function else run.frame.module_globals, target.id))
            elif isinstance(target, ast.Subscript):
                container = self.evaluate(target.value)
                key = self.evaluate(target.slice)
                for option in run.options(container):
                    if isinstance(option, Sequence) and isinstance(target.slice, ast.Slice):
                        if (target.slice.lower, target.slice.upper) == (None, None):
                            # del rewards[:] empties the list, as clear() does
                            self.container_method(option, "clear", Arguments(), s)
                        else:
                            self._leave_some(option, target.slice)
                    elif isinstance(option, (Sequence, Mapping, Namespace)):
                        self.container_method(option, "pop", Arguments(None, [key]), s)
            elif isinstance(target, ast.Attribute):
                for owner in run.options(self.evaluate(target.value)):
                    self.delete_attribute(owner, target.attr, target)

    def _leave_some(self, container: Sequence, part: ast.Slice) -> None:
        """Take a part out of a list: where it is not known which, each of the elements may stay, at any place."""
        run = self.run
        run.trace.emptied.append((container.oid, run.clock))
        run.lengths.pop(container.oid, None)
        items, rest = list(run.s.get((container.oid, ITEMS)) or ()), run.one_of(run.elements(container))
        ends = [NONE if end is None else self.evaluate(end) for end in (part.lower, part.upper, part.step)]
        bounds = [end.value for end in ends if isinstance(end, Const) and isinstance(end.value, (int, NoneType))]
        known = len(bounds) == len(ends) and run.s.get((container.oid, REST)) is None
        if known and container.oid not in run.displaced:
            del items[slice(*bounds)]
        elif rest is not None:
            items = []
            run.s.set((container.oid, REST), rest)
        run.s.set((container.oid, ITEMS), tuple(items))

    # targets

    def assign(self, target: ast.expr, value: Value, value_expr: ast.expr | None) -> None:
        """Bind a target."""
        run = self.run
        if isinstance(target, ast.Name):
            self.store_name(target.id, value, target)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value)
            self.set_attribute(owner, target.attr, value, target)
            if target.attr == "requires_grad" and run.truth(value) is True:
                self._ask_for_gradients(target, owner)
        elif isinstance(target, ast.Subscript):
            container = self.evaluate(target.value)
            key = self.evaluate(target.slice)
            options = run.options(container)
            after = [self._written(o, value, target, value_expr) if isinstance(o, Tensor) else o for o in options]
            for option in options:
                if not isinstance(option, Tensor) and (len(options) == 1 or not isinstance(option, (Const, Plain))):
                    self.set_item(option, key, value, target, value_expr)
            rebound = any(map(is_not, after, options)) and isinstance(target.value, _PLACES)
            if rebound and (changed := run.one_of(after)) is not None:
                self.assign(target.value, changed, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, value_expr)
        elif isinstance(target, ast.Starred):
            items, several = run.apart(value)
            self.assign(target.value, self.counted_as(run.new_sequence(items, run.one_of(several)), value), None)

    def _written(self, tensor: Tensor, value: Value, target: ast.Subscript, expression: ast.expr | None) -> Tensor:
        """A tensor of which an element was written in place: it now depends on the value as well."""
        run = self.run
        run.write(tensor, [value], target)
        run.leaf_refused(tensor, target)
        if run.s.grad is False or (tensor.node is None and not run.nodes_of(value)):
            return tensor
        changed = run.tensor_op(target, "setitem", [tensor, value], saves=False)
        self.torch.note_element(target, expression, value, changed)
        if run.nodes_of(value):
            run.write_through(tensor, changed, target)
        return changed

    def _ask_for_gradients(self, target: ast.Attribute, owner: Value) -> None:
        """``x.requires_grad = True`` makes a leaf of data, as ``requires_grad_()`` does."""
        if not isinstance(owner, (Tensor, Unknown)) or owner.node is not None or self.run.is_module(owner):
            return
        if self.run.thawed(target.value):
            return
        if isinstance(target.value, (ast.Name, ast.Attribute, ast.Subscript)):
            leaf = self.run.leaf(target, "input")
            # an argument may be attached already: then nothing changes
            leaf.shadow = owner.shadow
            asked = Tensor(leaf, isinstance(owner, Tensor) and owner.scalar, shadow=leaf.shadow)
            self.run.asked(owner, asked, target)
            self.assign(target.value, asked, None)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, value_expr: ast.expr | None) -> None:
        count = len(target.elts)
        starred = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
        exprs: list[ast.expr | None] = [None] * count
        if isinstance(value_expr, (ast.Tuple, ast.List)) and len(value_expr.elts) == count and starred is None:
            exprs = list(value_expr.elts)
        columns = self.columns(value, count, starred, target)
        for element, part, expr in zip(target.elts, columns, exprs, strict=True):
            self.assign(element, part, expr)

    # sums
