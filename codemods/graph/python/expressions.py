"""Expressions are evaluated; operators stand in :mod:`codemods.graph.python.operators`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import Escape, PlainKind, SequenceKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.values import (
    NONE,
    NUMBER,
    TEXT,
    Const,
    Instance,
    Join,
    Library,
    Mapping,
    Module,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    written_plainly,
)
from codemods.graph.python.comprehensions import Comprehensions
from codemods.graph.python.old_forms import note_first_element, note_old_call
from codemods.graph.run.contents import ITEMS, REST, RETURNED
from codemods.graph.run.core import BudgetEnded
from codemods.source.walking import children

_TENSORS = frozenset((Tensor, Unknown, Join))
_MAYBE_PLAIN = frozenset((Const, Plain, Join))


class Expressions(Comprehensions):
    """The part of the engine that evaluates."""

    evaluators: ClassVar[dict[type[ast.AST], Callable[[Any, Any], Value]]] = {}
    """The method for each kind of expression, by its class: a look-up of names costs more than most of the methods."""

    def evaluate(self, expression: ast.expr) -> Value:
        run = self.run
        run.spent += 1
        if run.spent > run.budget:
            raise BudgetEnded
        method = self.evaluators.get(expression.__class__)
        if method is None:
            for child in children(expression):
                if isinstance(child, ast.expr):
                    self.evaluate(child)
            return run.unknown(type(expression).__name__)
        value = method(self, expression)
        if expression in run.walked_at and run.s.grad is not False:
            value = self.torch.with_graph(value, expression)
        run.values[expression] = value
        return value

    def _eval_Constant(self, e: ast.Constant) -> Value:
        return Const(e.value)

    def _eval_Name(self, e: ast.Name) -> Value:
        value = self.load_name(e.id, e)
        self._note_plain(e, value)
        if value.__class__ is Tensor and value.node is None and self.run.gradients:
            self.run.gradient_named(value, e)
        return value

    def _eval_Attribute(self, e: ast.Attribute) -> Value:
        receiver = self.evaluate(e.value)
        if receiver.__class__ in _MAYBE_PLAIN and isinstance(e.ctx, ast.Load):
            self.run.wants_tensor(receiver, e.attr, e)
        value = self.get_attribute(receiver, e.attr, e)
        self._note_plain(e, value)
        return value

    def _note_plain(self, e: ast.expr, value: Value) -> None:
        kind = value.__class__
        if kind in _MAYBE_PLAIN and (
            kind is not Join or any(o.__class__ in _MAYBE_PLAIN for o in self.run.options(value))
        ):
            self.run.trace.plain.add(e)

    def _eval_Starred(self, e: ast.Starred) -> Value:
        return self.evaluate(e.value)

    def _eval_NamedExpr(self, e: ast.NamedExpr) -> Value:
        value = self.evaluate(e.value)
        self.growing.note_sum(e.target, e.value, value)
        self.assign(e.target, value, e.value)
        self.growing.note_growth(e.target, e.value, value)
        return value

    def _eval_Await(self, e: ast.Await) -> Value:
        awaited = self.evaluate(e.value)
        # what others put into a future
        held = isinstance(awaited, Unknown) and awaited.node is None and self.run.held_in([awaited])
        return self.run.taken(e, awaited) if held else awaited

    def _eval_Yield(self, e: ast.Yield) -> Value:
        run = self.run
        value = self.evaluate(e.value) if e.value is not None else NONE
        run.frame.yields.append(value)
        run.frame.yielded = run.clock
        if run.frame.call is None:
            run.escape(value, Escape.YIELDED)
        sent = run.lost("sent")
        if not isinstance(run.frame.statement, ast.Expr):
            run.frame.sent.append(sent)
        return sent

    def _eval_YieldFrom(self, e: ast.YieldFrom) -> Value:
        inner = self.evaluate(e.value)
        self.run.frame.yields += self.iterate(inner, e)
        self.run.frame.yielded = self.run.clock
        returned = self.run.s.get((inner.oid, RETURNED)) if isinstance(inner, Sequence) else None
        return returned if isinstance(returned, Value) else self.run.lost("sent")

    def _eval_Lambda(self, e: ast.Lambda) -> Value:
        return self.define_function(e)

    def _eval_JoinedStr(self, e: ast.JoinedStr) -> Value:
        given = []
        for part in e.values:
            if isinstance(part, ast.FormattedValue):
                given.append(self.evaluate(part.value))
                self.run.use(given[-1], UseKind.FORMAT, part)
        plainly = not any(isinstance(p, ast.FormattedValue) and (p.format_spec or p.conversion > 0) for p in e.values)
        number = plainly and len(given) == 1 and written_plainly(given[0])
        ends = [str(part.value) if isinstance(part, ast.Constant) else "" for part in e.values]
        made = Plain(PlainKind.TEXT, ends[0], ends[-1], number=number) if len(ends) > 1 else TEXT
        parts = [p for p in e.values if isinstance(p, ast.FormattedValue)]
        # a tensor of one element is formatted as its number
        shown = [v for p, v in zip(parts, given, strict=True) if p.conversion > 0 or not isinstance(v, Tensor)]
        return self.run.text_of(made, *shown)

    def _eval_FormattedValue(self, e: ast.FormattedValue) -> Value:
        self.run.use(self.evaluate(e.value), UseKind.FORMAT, e)
        return TEXT

    # containers

    def _eval_Tuple(self, e: ast.Tuple) -> Value:
        if any(isinstance(x, ast.Starred) for x in e.elts):
            return self._display(e.elts, SequenceKind.TUPLE)
        return Tuple(tuple(self.evaluate(x) for x in e.elts), closed=True)

    def _eval_List(self, e: ast.List) -> Value:
        return self._display(e.elts, SequenceKind.LIST)

    def _eval_Set(self, e: ast.Set) -> Value:
        return self._display(e.elts, SequenceKind.SET)

    def _display(self, elements: list[ast.expr], kind: SequenceKind) -> Value:
        items: list[Value] = []
        rest: Value | None = None
        spread: list[Value] = []
        for element in elements:
            value = self.evaluate(element)
            if isinstance(element, ast.Starred):
                spread.append(value)
                inner, several = self.run.apart(value)
                if several:
                    # how many there are is not known: what stands after them may stand anywhere
                    rest = self.run.one_of([*([rest] if rest is not None else []), *several])
                if inner or several:
                    items += inner
                elif isinstance(value, Parameters):
                    # [*a.parameters(), *b.parameters()]: all of both, not either of them
                    items.append(value)
                elif not isinstance(value, (Tuple, Sequence)):
                    for unseen in self.iterate(value, element):
                        rest = unseen if rest is None else self.run.join(rest, unseen)
            else:
                items.append(value)
        made = self.run.new_sequence(
            items[:16], self.run.one_of([*items[16:], *([rest] if rest is not None else [])]), kind
        )
        return self.counted_as(made, *spread)

    def _eval_Dict(self, e: ast.Dict) -> Value:
        made = self.run.new_mapping()
        for key_expr, value_expr in zip(e.keys, e.values, strict=True):
            value = self.evaluate(value_expr)
            if key_expr is None:
                self.fill_mapping(made, value, e)
                continue
            key = self.evaluate(key_expr)
            self.run.use(key, UseKind.IDENTITY, e, "{}")
            self.torch.put_item(made, key, value)
        return made

    def _eval_Slice(self, e: ast.Slice) -> Value:
        for part in (e.lower, e.upper, e.step):
            if part is not None:
                self.evaluate(part)
        return NUMBER

    def _eval_Subscript(self, e: ast.Subscript) -> Value:
        run = self.run
        container = self.evaluate(e.value)
        if container.__class__ in _MAYBE_PLAIN:
            run.wants_tensor(container, "[]", e)
        key = self.evaluate(e.slice)
        if isinstance(e.slice, ast.Constant) and type(e.slice.value) is int and e.slice.value == 0:
            note_first_element(self.run, e)
        if isinstance(e.slice, ast.Slice):
            if isinstance(container, Tuple) and e.slice.step is None:
                low = e.slice.lower.value if isinstance(e.slice.lower, ast.Constant) else None
                high = e.slice.upper.value if isinstance(e.slice.upper, ast.Constant) else None
                begins = isinstance(low, int) or e.slice.lower is None
                ends = isinstance(high, int) or e.slice.upper is None
                if begins and ends:
                    first = low if isinstance(low, int) else None
                    last = high if isinstance(high, int) else None
                    return Tuple(container.items[first:last], closed=container.closed)
            if isinstance(container, Instance) and container.cls.find("__getitem__") is None:
                container = run.contained(container) or self.torch.layer_of(container) or container
            if isinstance(container, (Tuple, Sequence, Mapping)):
                every, several = run.apart(container)
                start = e.slice.lower.value if isinstance(e.slice.lower, ast.Constant) else None
                known = isinstance(start, int) and 0 <= start < len(every) and e.slice.step is None
                left = every[start:] if isinstance(start, int) and known else every
                part = run.new_sequence(left, run.one_of(several))
                if not self.is_counted(container) or not known:
                    run.uncounted.add(part.oid)
                if not known and (e.slice.lower is not None or e.slice.step is not None):
                    # which of them are left is not known; else the first stay the first
                    self.mix(part)
                return part
            if isinstance(container, (Module, Parameters)):
                return container
        if isinstance(container, Tensor):
            scalar = False
            saves = not isinstance(e.slice, (ast.Constant, ast.Slice, ast.UnaryOp))
            if container.node is not None and container.node.scalar and isinstance(key, Const):
                scalar = True  # loss.data[0] of old PyTorch
            if container.node is None:
                return replace(container, either=(), bases=run.memory(container))
            return run.tensor_op(e, "getitem", [container], saves=saves, scalar=scalar)
        item = self.get_item(container, key, e)
        if isinstance(container, (Tuple, Sequence, Mapping)) and (nodes := run.nodes_of(item)):
            run.frame.took.setdefault(e, []).extend(nodes)
        return item

    # calls

    def _eval_Call(self, e: ast.Call) -> Value:
        function = e.func
        if isinstance(function, ast.Attribute):
            receiver = self.evaluate(function.value)
            if receiver.__class__ in _MAYBE_PLAIN:
                self.run.wants_tensor(receiver, function.attr, function)
                receiver = self.run.only_tensors(receiver, function.attr)
            args = self._arguments(e)
            note_old_call(self.run, e, receiver, function.attr)
            self._note_callee(e, self._callee(receiver, function.attr))
            given, entered = self._given(args), len(self.run.trace.frames)
            result = self.call_method(receiver, function.attr, args, e)
            self._note_passed(given, entered, function.attr, e)
            self.changed_in_place(function, receiver, args, result)
            return result
        target = self.evaluate(function)
        args = self._arguments(e)
        note_old_call(self.run, e, target, "")
        self._note_callee(e, self._callee(target, ""))
        given, entered = self._given(args), len(self.run.trace.frames)
        result = self.call_value(target, args, e)
        self._note_passed(given, entered, "call", e)
        return result

    def _given(self, args: Arguments) -> list[tuple[Value, int]]:
        """The arguments of a call that carry graphs, with how much is noted of each."""
        given = [v for v in args.all() if v.__class__ in _TENSORS and self.run.nodes_of(v)]
        return [(value, self._noted(value)) for value in given]

    def _note_passed(self, given: list[tuple[Value, int]], entered: int, name: str, at: ast.AST) -> None:
        """Note a use of the arguments of a call that entered nothing in the tree, of which nothing else was noted: it
        got them. ``entered`` is how many calls had entered anything before."""
        if given and len(self.run.trace.frames) == entered:
            for value, noted in given:
                if self._noted(value) == noted:
                    self.run.use(value, UseKind.PASSED, at, name)

    def _noted(self, value: Value) -> int:
        return sum(len(n.uses) + len(n.children) + len(n.stores) + len(n.escapes) for n in self.run.nodes_of(value))

    def _note_callee(self, e: ast.Call, path: str) -> None:
        known = self.run.trace.called.setdefault(e, path)
        if known != path:
            self.run.trace.called[e] = ""

    def _callee(self, target: Value, method: str) -> str:
        """The public name of the callee: ``target``, or a ``method`` of it."""
        if isinstance(target, Library):
            return canonical(f"{target.path}.{method}" if method else target.path)
        if not method:
            return target.path if isinstance(target, Unknown) and target.module is None else ""
        if isinstance(target, Unknown) and target.public:
            return f"{target.path}.{method}"
        if isinstance(target, Tensor):
            return f"torch.Tensor.{method}"
        if isinstance(target, (Sequence, Mapping, Tuple, Plain, Const)):
            return f"builtins.object.{method}"
        return f"?.{method}" if isinstance(target, Unknown) and target.module is None else ""

    def _arguments(self, e: ast.Call) -> Arguments:
        run = self.run
        args = Arguments(e)
        for expression in e.args:
            value = self.evaluate(expression)
            if isinstance(expression, ast.Starred):
                if isinstance(value, Instance):
                    value = run.contained(value) or value
                inner = list(value.items) if isinstance(value, Tuple) else None
                if inner is None and isinstance(value, Sequence) and run.s.get((value.oid, REST)) is None:
                    inner = list(run.s.get((value.oid, ITEMS)) or ())
                if inner is not None and not args.more:
                    args.positional += inner
                    args.uncounted |= isinstance(value, Sequence) and value.oid in run.uncounted
                else:
                    args.more.append(value)
            elif args.more:
                args.more.append(value)
            else:
                args.positional.append(value)
        for keyword in e.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                args.keywords[keyword.arg] = value
                continue
            if not isinstance(value, (Mapping, Unknown)):
                value = self.make_mapping(Arguments(None, [value]), keyword)
            if isinstance(value, Mapping):
                for key in run.mapping_keys(value):
                    found = run.s.get((value.oid, key))
                    if isinstance(key, tuple) and isinstance(found, Value) and isinstance(key[1], str):
                        args.keywords[key[1]] = found
                    elif isinstance(found, Value):
                        args.more.append(found)
            else:
                args.more.append(value)
        return args


Expressions.evaluators = {
    getattr(ast, name.removeprefix("_eval_")): getattr(Expressions, name)
    for name in dir(Expressions)
    if name.startswith("_eval_")
}
