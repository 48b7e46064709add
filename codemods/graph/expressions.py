"""Expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from codemods.graph import facts
from codemods.graph.arguments import Arguments
from codemods.graph.calls import Calls
from codemods.graph.core import ITEMS, REST, BudgetEnded
from codemods.graph.torch_model import canonical
from codemods.graph.trace import OldForm
from codemods.graph.values import (
    ARRAY,
    DATA,
    INDEX,
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
    Module,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    TreeModule,
    Tuple,
    Unknown,
    Unseen,
    Value,
)

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Expressions(Calls):
    """The part of the engine that evaluates."""

    evaluators: ClassVar[dict[type[ast.AST], Callable[[Any, Any], Value]]] = {}
    """The method for each kind of expression, by its class: a look-up of names costs more than most of the methods."""

    def assign(self, target: ast.expr, value: Value, value_expr: ast.expr | None) -> None:
        """Bind a target."""
        raise NotImplementedError

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Value:
        """The value of a ``def`` or lambda."""
        raise NotImplementedError

    def run_turns(self, loop: ast.AST, values: list[Value], body: Callable[[Value], None]) -> None:
        """Run a body once for each of the turns' values."""
        raise NotImplementedError

    def evaluate(self, expression: ast.expr) -> Value:
        self.spent += 1
        if self.spent > self.budget:
            raise BudgetEnded
        method = self.evaluators.get(expression.__class__)
        if method is None:
            for child in ast.iter_child_nodes(expression):
                if isinstance(child, ast.expr):
                    self.evaluate(child)
            return self.unknown(type(expression).__name__)
        value = self.values[expression] = method(self, expression)
        return value

    def _eval_Constant(self, e: ast.Constant) -> Value:
        return Const(e.value)

    def _eval_Name(self, e: ast.Name) -> Value:
        value = self.load_name(e.id, e)
        self._note_plain(e, value)
        return value

    def _eval_Attribute(self, e: ast.Attribute) -> Value:
        value = self.get_attribute(self.evaluate(e.value), e.attr, e)
        self._note_plain(e, value)
        return value

    def _note_plain(self, e: ast.expr, value: Value) -> None:
        kind = value.__class__
        if (
            kind is Const
            or kind is Plain
            or (kind is Join and any(isinstance(option, (Const, Plain)) for option in self.options(value)))
        ):
            self.trace.plain.add(e)

    def _eval_Starred(self, e: ast.Starred) -> Value:
        return self.evaluate(e.value)

    def _eval_NamedExpr(self, e: ast.NamedExpr) -> Value:
        value = self.evaluate(e.value)
        self.assign(e.target, value, e.value)
        return value

    def _eval_Await(self, e: ast.Await) -> Value:
        return self.evaluate(e.value)

    def _eval_Yield(self, e: ast.Yield) -> Value:
        value = self.evaluate(e.value) if e.value is not None else NONE
        self.frame.yields.append(value)
        if self.frame.call is None:
            self.escape(value, "yielded to a caller that cannot be seen")
        return self.unknown("sent")

    def _eval_YieldFrom(self, e: ast.YieldFrom) -> Value:
        self.frame.yields += self.iterate(self.evaluate(e.value), e)
        return self.unknown("sent")

    def _eval_Lambda(self, e: ast.Lambda) -> Value:
        return self.define_function(e)

    def _eval_JoinedStr(self, e: ast.JoinedStr) -> Value:
        for part in e.values:
            if isinstance(part, ast.FormattedValue):
                self.use(self.evaluate(part.value), "format", part)
        return TEXT

    def _eval_FormattedValue(self, e: ast.FormattedValue) -> Value:
        self.use(self.evaluate(e.value), "format", e)
        return TEXT

    def _eval_Tuple(self, e: ast.Tuple) -> Value:
        if any(isinstance(x, ast.Starred) for x in e.elts):
            return self._display(e.elts, "tuple")
        return Tuple(tuple(self.evaluate(x) for x in e.elts))

    def _eval_List(self, e: ast.List) -> Value:
        return self._display(e.elts, "list")

    def _eval_Set(self, e: ast.Set) -> Value:
        return self._display(e.elts, "set")

    def _display(self, elements: list[ast.expr], kind: str) -> Value:
        items: list[Value] = []
        rest: Value | None = None
        for element in elements:
            value = self.evaluate(element)
            if isinstance(element, ast.Starred):
                inner = self.elements(value)
                if inner:
                    items += inner
                elif isinstance(value, Parameters):
                    # [*a.parameters(), *b.parameters()]: all of both, not either of them
                    items.append(value)
                elif not isinstance(value, (Tuple, Sequence)):
                    unseen = self.unknown("item", self.part(element, value, "item"))
                    rest = unseen if rest is None else self.join(rest, unseen)
            else:
                items.append(value)
        made = self.new_sequence(items[:16], rest, kind)
        for value in items[16:]:
            old = self.s.get((made.oid, REST))
            self.s.set((made.oid, REST), value if old is None else self.join(old, value))
        return made

    def _eval_Dict(self, e: ast.Dict) -> Value:
        made = self.new_mapping()
        for key_expr, value_expr in zip(e.keys, e.values, strict=True):
            value = self.evaluate(value_expr)
            if key_expr is None:
                if isinstance(value, Mapping):
                    for key in self.mapping_keys(value):
                        found = self.s.get((value.oid, key))
                        if isinstance(found, Value):
                            self.put_item(made, Const(key[1]) if isinstance(key, tuple) else TEXT, found)
                continue
            self.put_item(made, self.evaluate(key_expr), value)
        return made

    def _eval_Slice(self, e: ast.Slice) -> Value:
        for part in (e.lower, e.upper, e.step):
            if part is not None:
                self.evaluate(part)
        return NUMBER

    def _eval_Subscript(self, e: ast.Subscript) -> Value:
        container = self.evaluate(e.value)
        key = self.evaluate(e.slice)
        if isinstance(e.slice, ast.Constant) and type(e.slice.value) is int and e.slice.value == 0:
            self._first_element(e)
        if isinstance(e.slice, ast.Slice):
            if isinstance(container, Tuple) and e.slice.step is None:
                low = e.slice.lower.value if isinstance(e.slice.lower, ast.Constant) else None
                high = e.slice.upper.value if isinstance(e.slice.upper, ast.Constant) else None
                begins = isinstance(low, int) or e.slice.lower is None
                ends = isinstance(high, int) or e.slice.upper is None
                if begins and ends:
                    first = low if isinstance(low, int) else None
                    last = high if isinstance(high, int) else None
                    return Tuple(container.items[first:last])
            if isinstance(container, (Tuple, Sequence, Mapping)):
                return self.new_sequence(self.elements(container)[:12])
            if isinstance(container, (Module, Parameters)):
                return container
        if isinstance(container, Tensor):
            scalar = False
            saves = not isinstance(e.slice, (ast.Constant, ast.Slice, ast.UnaryOp))
            if container.node is not None and container.node.scalar and isinstance(key, Const):
                scalar = True  # loss.data[0] of old PyTorch
            if container.node is None:
                return Tensor(None, container.scalar, container.index, container.shadow, container.aliases)
            return self.tensor_op(e, "getitem", [container], saves=saves, scalar=scalar)
        return self.get_item(container, key, e)

    def _eval_UnaryOp(self, e: ast.UnaryOp) -> Value:
        value = self.evaluate(e.operand)
        if isinstance(e.op, ast.Not):
            self.use(value, "truth", e)
            truth = self.truth(value)
            return NUMBER if truth is None else Const(not truth)
        if isinstance(value, Const) and isinstance(value.value, (int, float)):
            if isinstance(e.op, ast.USub):
                return Const(-value.value)
            return value if isinstance(e.op, ast.UAdd) else NUMBER
        if isinstance(value, Plain):
            return value
        if isinstance(e.op, ast.Invert):
            return INDEX
        if self.nodes_of(value):
            return self.tensor_op(e, "neg", [value], saves=False, scalar=self.is_scalar(value))
        if isinstance(value, Tensor):
            return value
        made = self.unknown("neg")
        made.shadow = self.shadow_of([value])
        return made

    def _eval_BinOp(self, e: ast.BinOp) -> Value:
        left = self.evaluate(e.left)
        right = self.evaluate(e.right)
        return self.binary(type(e.op).__name__, left, right, e)

    def binary(self, name: str, left: Value, right: Value, at: ast.AST) -> Value:
        """An arithmetic operation."""
        if name == "Mod" and (
            (isinstance(left, Const) and isinstance(left.value, str))
            or (isinstance(left, Plain) and left.kind == "text")
        ):
            self.use(right, "format", at)
            return TEXT
        if isinstance(left, (Sequence, Tuple)) and isinstance(right, (Sequence, Tuple)) and name == "Add":
            if isinstance(left, Tuple) and isinstance(right, Tuple):
                return Tuple((*left.items, *right.items))
            return self.new_sequence([*self.elements(left), *self.elements(right)][:16])
        if isinstance(left, (Sequence, Parameters)) and isinstance(right, (Sequence, Parameters)) and name == "Add":
            # list(a.parameters()) + list(b.parameters())
            parts = [[v] if isinstance(v, Parameters) else self.elements(v) for v in (left, right)]
            return self.new_sequence([v for part in parts for v in part])
        if isinstance(left, (Sequence, Tuple)) and name == "Mult":
            items = self.elements(left)
            return self.new_sequence([*items, *items] if isinstance(left, Sequence) else items)
        plain = (Const, Plain)
        if isinstance(left, plain) and isinstance(right, plain):
            if any(isinstance(v, Plain) and v.kind == "array" for v in (left, right)):
                return ARRAY
            if isinstance(left, Const) and isinstance(left.value, str):
                if isinstance(right, Const) and isinstance(right.value, str) and name == "Add":
                    return Const(left.value + right.value)
                return TEXT
            return NUMBER
        if isinstance(left, Instance) or isinstance(right, Instance):
            method = {"Add": "__add__", "Mult": "__mul__", "Sub": "__sub__", "MatMult": "__matmul__"}.get(name)
            if isinstance(left, Instance) and method is not None:
                member = left.cls.find(method)
                if isinstance(member, Function):
                    return self.call_function(member, Arguments(None, [right]), at, receiver=left)
        if self.nodes_of(left) or self.nodes_of(right):
            scalar = self.is_scalar(left) and self.is_scalar(right) and name != "MatMult"
            saves = name not in ("Add", "Sub")
            if saves and name in ("Mult", "Div") and isinstance(right, plain):
                # a number is not a saved tensor
                saves = False
            if saves and name == "Mult" and isinstance(left, plain):
                saves = False
            label = name if not isinstance(right, plain) or isinstance(left, plain) else f"{name}:number"
            return self.tensor_op(at, label, [left, right], saves=saves, scalar=scalar)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            scalar = self.is_scalar(left) and self.is_scalar(right) and name != "MatMult"
            return Tensor(None, scalar, shadow=self.shadow_of([left, right]))
        if isinstance(left, Plain) and left.kind == "array" and isinstance(right, (Const, Plain)):
            return ARRAY
        data = all(v.data if isinstance(v, Unknown) else True for v in (left, right))
        made = self.unknown(name, data=data)
        made.shadow = self.shadow_of([left, right])
        return made

    def _eval_Compare(self, e: ast.Compare) -> Value:
        left = self.evaluate(e.left)
        result: Value = NUMBER
        for op, comparator in zip(e.ops, e.comparators, strict=True):
            right = self.evaluate(comparator)
            for asked, kind in ((left, right), (right, left)):
                is_type = isinstance(asked, Unknown) and asked.origin == "type"
                if is_type and isinstance(kind, Library) and canonical(kind.path) == "torch.autograd.Variable":
                    self.trace.old.append(OldForm("type-is-variable", self.place(e), e, kind))
            if isinstance(op, (ast.Is, ast.IsNot)):
                result = self._is(left, right, negated=isinstance(op, ast.IsNot))
            elif isinstance(op, (ast.In, ast.NotIn)):
                result = self._contains(left, right, negated=isinstance(op, ast.NotIn))
            else:
                result = self._compare(op, left, right, e)
            left = right
        return result if len(e.ops) == 1 else NUMBER

    def _compare(self, op: ast.cmpop, left: Value, right: Value, at: ast.expr) -> Value:
        for value in (left, right):
            self.use(value, "compare", at)
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                return Const(bool(_COMPARE[type(op)](left.value, right.value)))
            except TypeError:
                return NUMBER
        if isinstance(left, Unknown) and left.origin == "type" and isinstance(right, Library):
            # type(h) == Variable: what was meant, although today it never holds
            return Const(True) if right.path.endswith(("Variable", "Tensor")) else NUMBER
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return INDEX
        if isinstance(left, Plain) and left.kind == "array":
            return ARRAY
        return self.unknown("compare", data=True) if isinstance(left, Unknown) else NUMBER

    def _is(self, left: Value, right: Value, *, negated: bool) -> Value:
        answer: bool | None = None
        if isinstance(right, Const) and right.value is None:
            if isinstance(left, Const):
                answer = left.value is None
            elif isinstance(left, Join):
                kinds = {isinstance(o, Const) and o.value is None for o in left.options}
                answer = None if len(kinds) > 1 or any(isinstance(o, Unknown) for o in left.options) else kinds.pop()
            elif not isinstance(left, Unknown) or left.node is not None or left.module is not None:
                answer = False
        elif isinstance(left, Const) and isinstance(right, Const):
            answer = left.value is right.value
        if answer is None:
            return NUMBER
        return Const(answer is not negated)

    def _contains(self, left: Value, right: Value, *, negated: bool) -> Value:
        if isinstance(left, Const) and isinstance(right, (Tuple, Sequence)):
            items = self.elements(right)
            if items and all(isinstance(i, Const) for i in items):
                found = any(i.value == left.value for i in items if isinstance(i, Const))
                return Const(found is not negated)
        return NUMBER

    def _eval_BoolOp(self, e: ast.BoolOp) -> Value:
        stop_at = isinstance(e.op, ast.Or)
        result: Value | None = None
        perhaps = False
        for i, expression in enumerate(e.values):
            value = self.evaluate(expression)
            self.use(value, "truth", e)
            truth = self.truth(value)
            # what is asked only on some paths ends only those
            self.raises_here = self.raises_here and not perhaps
            perhaps = perhaps or truth is None
            if truth is stop_at:
                result = value if result is None else self.join(result, value)
                break
            if truth is None or i == len(e.values) - 1:
                result = value if result is None else self.join(result, value)
        if isinstance(result, (Plain,)) or result is None:
            return NUMBER
        if isinstance(result, Join) and all(isinstance(o, (Const, Plain)) for o in result.options):
            truths = {self.truth(o) for o in result.options}
            return Const(truths.pop()) if len(truths) == 1 and None not in truths else NUMBER
        return result

    def _eval_IfExp(self, e: ast.IfExp) -> Value:
        test = self.evaluate(e.test)
        self.use(test, "truth", e)
        truth = self.truth(test)
        if truth is not None:
            return self.evaluate(e.body if truth else e.orelse)
        base = self.s
        self.s = base.fork()
        first = self.evaluate(e.body)
        after_first = self.s
        first_raises, self.raises_here = self.raises_here, False
        self.s = base.fork()
        second = self.evaluate(e.orelse)
        after_second = self.s
        # where one way raises, the other one goes on
        self.raises_here = self.raises_here and first_raises
        self.meet([after_first, after_second], base)
        return self.join(first, second)

    # calls

    def _eval_Call(self, e: ast.Call) -> Value:
        function = e.func
        if isinstance(function, ast.Attribute):
            receiver = self.evaluate(function.value)
            args = self._arguments(e)
            self._note_old_call(e, receiver, function.attr)
            result = self.call_method(receiver, function.attr, args, e)
            self._in_place(function, receiver, args, result)
            return result
        target = self.evaluate(function)
        args = self._arguments(e)
        self._note_old_call(e, target, "")
        return self.call_value(target, args, e)

    def _note_old_call(self, e: ast.Call, target: Value, method: str) -> None:
        """Record calls that today's PyTorch wants in another form; ``method`` is empty where ``target`` is called."""
        if isinstance(target, Library):
            path = canonical(f"{target.path}.{method}" if method else target.path)
            head, _, last = path.rpartition(".")
            if path in facts.RENAMED_CALLS or path in facts.REMOVED_CALLS:
                self.trace.old.append(OldForm("call", self.place(e), e.func, Library(path)))
            elif head in ("torch.nn", "torch.nn.functional") and (
                last in facts.SIZE_AVERAGE_AT or any(k.arg in ("size_average", "reduce") for k in e.keywords)
            ):
                self.trace.old.append(OldForm("loss", self.place(e), e.func, Library(path)))
            elif head == "torch.optim.lr_scheduler" and any(k.arg == "verbose" for k in e.keywords):
                self.trace.old.append(OldForm("verbose", self.place(e), e.func, Library(path)))
        elif method in facts.OLD_METHODS and not isinstance(target, (Instance, Class, TreeModule)):
            self.trace.old.append(OldForm(f"method:{method}", self.place(e), e.func, target))

    def _arguments(self, e: ast.Call) -> Arguments:
        args = Arguments(e)
        for expression in e.args:
            value = self.evaluate(expression)
            if isinstance(expression, ast.Starred):
                inner = list(value.items) if isinstance(value, Tuple) else None
                if inner is None and isinstance(value, Sequence) and self.s.get((value.oid, REST)) is None:
                    inner = list(self.s.get((value.oid, ITEMS)) or ())
                if inner is not None and not args.more:
                    args.positional += inner
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
            elif isinstance(value, Mapping):
                for key in self.mapping_keys(value):
                    found = self.s.get((value.oid, key))
                    if isinstance(key, tuple) and isinstance(found, Value) and isinstance(key[1], str):
                        args.keywords[key[1]] = found
                    elif isinstance(found, Value):
                        args.more.append(found)
            else:
                args.more.append(value)
        return args

    def _in_place(self, function: ast.Attribute, receiver: Value, args: Arguments, result: Value) -> None:
        """``x.add_(y)`` gives the name a new node; ``h.detach_()`` takes it away."""
        name = function.attr
        if not name.endswith("_") or name.startswith("_"):
            return
        self._altered(name, receiver, args, function)
        if name in ("requires_grad_",) and self.nodes_of(receiver):
            return
        if name == "detach_" and isinstance(receiver, (Tensor, Unknown)) and receiver.node is not None:
            self.replace_everywhere(receiver, result)
        target = function.value
        several = isinstance(receiver, Join) and self._are_tensors(receiver) and self._are_tensors(result)
        if not several and (not isinstance(receiver, (Tensor, Unknown)) or not isinstance(result, Tensor)):
            return
        if isinstance(receiver, Tensor) and isinstance(result, Tensor) and receiver.aliases:
            result = replace(result, aliases=receiver.aliases)
        if isinstance(target, ast.Attribute) and target.attr in ("data", "grad"):
            if target.attr == "data":
                self.mark("data-written", function)
        elif isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            if not self.nodes_of(result) and self.holder(target) is not None:
                # a frozen parameter with other values is the same parameter
                return
            self.assign(target, result, None)

    def _are_tensors(self, value: Value) -> bool:
        """Whether all that a value may be can be changed in place as a tensor is."""
        options = self.options(value)
        return all(isinstance(o, (Tensor, Unknown)) for o in options) and any(isinstance(o, Tensor) for o in options)

    def _altered(self, name: str, receiver: Value, args: Arguments, at: ast.AST) -> None:
        if name == "requires_grad_":
            self.alter(receiver, "requires_grad", at)
        elif name.removesuffix("_") in facts.CHANGES_SHAPE:
            self.alter(receiver, "shape", at)
        elif name not in ("share_memory_", "detach_"):
            self.alter(receiver, "attached" if any(self.nodes_of(v) for v in args.all()) else "values", at)

    def _first_element(self, e: ast.Subscript) -> None:
        """Record ``loss.data[0]`` and its like."""
        subject = first_element(e)
        value = self.values.get(subject) if subject is not None else None
        if subject is not None and value is not None:
            self.trace.old.append(OldForm("first-element", self.place(e), subject, value))

    # comprehensions

    def _eval_ListComp(self, e: ast.ListComp) -> Value:
        found: list[Value] = []
        self._comprehend(e, e.generators, lambda: found.append(self.evaluate(e.elt)))
        return self.new_sequence(found)

    def _eval_GeneratorExp(self, e: ast.GeneratorExp) -> Value:
        found: list[Value] = []
        self._comprehend(e, e.generators, lambda: found.append(self.evaluate(e.elt)))
        return self.new_sequence(found, kind="generator")

    def _eval_SetComp(self, e: ast.SetComp) -> Value:
        found: list[Value] = []
        self._comprehend(e, e.generators, lambda: found.append(self.evaluate(e.elt)))
        return self.new_sequence(found, kind="set")

    def _eval_DictComp(self, e: ast.DictComp) -> Value:
        made = self.new_mapping()

        def put() -> None:
            key = self.evaluate(e.key)
            self.put_item(made, key, self.evaluate(e.value))

        self._comprehend(e, e.generators, put)
        return made

    def _comprehend(self, e: ast.expr, generators: list[ast.comprehension], body: Callable[[], None]) -> None:
        if not generators:
            body()
            return
        first, rest = generators[0], generators[1:]
        values = self.iterate(self.evaluate(first.iter), e)

        def turn(value: Value) -> None:
            self.assign(first.target, value, None)
            for condition in first.ifs:
                if self.truth(self.evaluate(condition)) is False:
                    return
            self._comprehend(e, rest, body)

        self.run_turns(e, values, turn)

    # iteration

    def iterate(self, value: Value, at: ast.AST) -> list[Value]:
        """The values that a loop over ``value`` sees in its two turns: the first element, and one of the others."""
        if isinstance(value, Tuple):
            return self._two(list(value.items))
        if isinstance(value, Sequence):
            items = list(self.s.get((value.oid, ITEMS)) or ())
            rest = self.s.get((value.oid, REST))
            if value.kind == "turns" and len(items) == 2:
                return items
            if value.kind == "modules":
                return items
            if rest is not None:
                items += [rest, rest]
            for item in items:
                self.read(item, Carrier("element", value.oid, ""), at)
            if not items:
                return []
            return self._two(items)
        if isinstance(value, Mapping):
            keys = [k for k in self.mapping_keys(value) if self.s.get((value.oid, k)) is not None]
            found: list[Value] = [Const(k[1]) for k in keys if isinstance(k, tuple)]
            return self._two(found) if found else [self.unknown("key", data=True)] * 2
        if isinstance(value, Join):
            per_option = [self.iterate(o, at) for o in value.options if not isinstance(o, (Const,))]
            per_option = [turns for turns in per_option if turns]
            if not per_option:
                return []
            result = []
            for i in range(max(len(t) for t in per_option)):
                joined: Value | None = None
                for turns in per_option:
                    item = turns[min(i, len(turns) - 1)]
                    joined = item if joined is None else self.join(joined, item)
                assert joined is not None
                result.append(joined)
            return result
        if isinstance(value, Module) and value.name in ("ModuleList", "Sequential", "ParameterList"):
            items = list(self.s.get((value.oid, ITEMS)) or ())
            rest = self.s.get((value.oid, REST))
            if not items and rest is None:
                # filled in a way that was not followed
                return [self.lost("layer", "call"), self.lost("layer", "call")]
            return self._two([*items, *([rest] if rest is not None else [])])
        if isinstance(value, Parameters):
            element = Parameters(value.owner, element=True)
            made: Value = Tuple((TEXT, element)) if value.named else element
            return [made, made]
        if isinstance(value, Plain):
            return [ARRAY if value.kind == "array" else NUMBER] * 2
        if isinstance(value, Const):
            if isinstance(value.value, str) and len(value.value) >= 1:
                return [TEXT, TEXT]
            return [NUMBER, NUMBER]
        if isinstance(value, Instance):
            return self._iterate_instance(value, at)
        if isinstance(value, Tensor):
            if value.node is None:
                return [Tensor(None, index=value.index, shadow=value.shadow)] * 2
            return [self.tensor_op(at, "getitem", [value], saves=False) for _ in range(2)]
        if isinstance(value, Unknown):
            if value.node is not None:
                return [self.unknown("item", self.part(at, value, "item")) for _ in range(2)]
            stored = self.s.get((value.oid, "[]"))
            if isinstance(stored, Value):
                return [stored, stored]
            first, second = self.unknown("item", data=True), self.unknown("item", data=True)
            # an argument that is gone through is a loader most often; what an unseen call made need not be
            first.shadow = tuple(o for o in value.shadow if isinstance(o, Unseen) and o.kind == "call")
            second.shadow = first.shadow
            return [first, second]
        if isinstance(value, (Library, TreeModule)):
            return [self.unknown("item", data=True), self.unknown("item", data=True)]
        return [DATA, DATA]

    def _iterate_instance(self, value: Instance, at: ast.AST) -> list[Value]:
        for name in ("__iter__", "__next__", "__getitem__"):
            member = value.cls.find(name)
            if isinstance(member, Function):
                args = Arguments(None, [NUMBER] if name == "__getitem__" else [])
                got = self.call_function(member, args, at, receiver=value)
                if name != "__iter__":
                    return [got, got]
                if got is value or isinstance(got, Instance):
                    following = (got if isinstance(got, Instance) else value).cls.find("__next__")
                    if isinstance(following, Function):
                        item = self.call_function(following, Arguments(), at, receiver=value)
                        return [item, item]
                    return [self.unknown("item", data=True)] * 2
                return self.iterate(got, at)
        items = self.s.get((value.oid, ITEMS))
        if items:
            return self._two(list(items))
        return [self.unknown("item", data=True), self.unknown("item", data=True)]

    def _two(self, items: list[Value]) -> list[Value]:
        if len(items) <= 3:
            return items
        last = items[1]
        for item in items[2:]:
            last = self.join(last, item)
        return [items[0], last]


def first_element(e: ast.expr) -> ast.expr | None:
    """The tensor of ``loss.data[0]`` and its like: how PyTorch before 0.4 took the one number of a tensor."""
    if not (isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Constant) and type(e.slice.value) is int):
        return None
    subject = e.value
    while e.slice.value == 0:
        if isinstance(subject, ast.Attribute) and subject.attr == "data":
            subject = subject.value
        elif (
            isinstance(subject, ast.Call)
            and isinstance(subject.func, ast.Attribute)
            and subject.func.attr in facts.BEFORE_FIRST_ELEMENT
            and not subject.args
        ):
            subject = subject.func.value
        else:
            break
    return None if subject is e.value else subject


Expressions.evaluators = {
    getattr(ast, name.removeprefix("_eval_")): method
    for name, method in vars(Expressions).items()
    if name.startswith("_eval_")
}
