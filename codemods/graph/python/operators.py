"""Arithmetic, comparisons, ``not``, ``and`` and ``or``, and the conditional expression."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.saved import SUMS
from codemods.graph.model.kinds import OldKind, PlainKind, SequenceKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.trace import OldForm
from codemods.graph.model.values import (
    ARRAY,
    INDEX,
    NUMBER,
    Const,
    EnumMember,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    formatted,
)
from codemods.graph.python.calls import Calls
from codemods.graph.python.plain_values import begin_of, end_of, is_text, of_plain
from codemods.graph.run.contents import REST
from codemods.source.walking import walk

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


_METHODS = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "Div": "truediv",
    "FloorDiv": "floordiv",
    "Mod": "mod",
    "Pow": "pow",
    "MatMult": "matmul",
    "LShift": "lshift",
    "RShift": "rshift",
    "BitAnd": "and",
    "BitOr": "or",
    "BitXor": "xor",
    "USub": "neg",
    "UAdd": "pos",
    "Invert": "invert",
    "Eq": "eq",
    "NotEq": "ne",
    "Lt": "lt",
    "LtE": "le",
    "Gt": "gt",
    "GtE": "ge",
}
"""The special methods that classes define operators by (docs: data model)."""

_LATER: dict[tuple[type[ast.cmpop], object], bool] = {
    (ast.Eq, 0): False,
    (ast.LtE, 0): False,
    (ast.Lt, 1): False,
    (ast.NotEq, 0): True,
    (ast.Gt, 0): True,
    (ast.GtE, 1): True,
}
"""What a comparison of the number of a turn gives in all turns but the first one, where that gives something else."""

_WHOLE = re.compile(r"%(\(\w*\))?[-#0 +]*[\d*]*(\.[\d*]+)?[sra]")
"""What formats a value as ``str`` or ``repr`` writes it."""

_CONTAINERS = (Mapping, Sequence, Tuple)

MAX_TIMES = 16
"""A tuple times a number has at most so many elements; of a longer one they are not told apart."""

MAX_LEVELS = 6
"""How often a number that goes down from call to call is followed."""


class Operators(Calls):
    """The part of the engine that evaluates operators."""

    # arithmetic

    def _eval_UnaryOp(self, e: ast.UnaryOp) -> Value:
        run = self.run
        value = self.evaluate(e.operand)
        if isinstance(e.op, ast.Not):
            run.use(value, UseKind.TRUTH, e)
            truth = run.truth(value)
            return NUMBER if truth is None else Const(not truth)
        if isinstance(value, Const) and isinstance(value.value, (int, float)):
            if isinstance(e.op, ast.USub):
                return Const(-value.value)
            return value if isinstance(e.op, ast.UAdd) else NUMBER
        if isinstance(value, Plain):
            return value
        if isinstance(value, Instance):
            member = value.cls.find(f"__{_METHODS[type(e.op).__name__]}__")
            if isinstance(member, Function):
                return self.call_function(member, Arguments(), e, receiver=value)
            return run.taken(e, value)
        if isinstance(e.op, ast.Invert):
            return INDEX
        if run.nodes_of(value):
            dimensionless = run.is_dimensionless(value)
            return run.tensor_op(
                e, "neg", [value], saves=False, scalar=run.is_scalar(value), dimensionless=dimensionless
            )
        if isinstance(value, Tensor):
            return value
        made = run.unknown("neg")
        made.shadow = run.shadow_of([value])
        return made

    def _eval_BinOp(self, e: ast.BinOp) -> Value:
        left = self.evaluate(e.left)
        right = self.evaluate(e.right)
        if isinstance(left, Const) and isinstance(right, Const) and (found := self._level(e, left.value, right.value)):
            return found
        return self.binary(type(e.op).__name__, left, right, e)

    def _level(self, e: ast.BinOp, left: object, right: object) -> Const | None:
        """``level - 1`` where a function hands it to itself, or a constructor to another object of its class.

        Anywhere else a number may be one that a loop counts: of that only two turns are seen.
        """
        if type(left) is not int or type(right) is not int or not isinstance(e.op, (ast.Add, ast.Sub)):
            return None
        frame = self.run.frame
        if frame.function is None or self.run.active.count(frame.function.definition) > MAX_LEVELS:
            return None
        call = frame.file.parent(e)
        if isinstance(call, ast.keyword):
            call = frame.file.parent(call)
        if not isinstance(call, ast.Call):
            return None
        own = {getattr(frame.function.definition, "name", "")}
        if frame.function.cls is not None and "__init__" in own:
            own = {frame.function.cls.name}
        if not isinstance(call.func, (ast.Name, ast.Attribute)):
            return None
        if (call.func.id if isinstance(call.func, ast.Name) else call.func.attr) not in own:
            return None
        return Const(left + right if isinstance(e.op, ast.Add) else left - right)

    def binary(self, name: str, left: Value, right: Value, at: ast.AST) -> Value:
        """An arithmetic operation."""
        run = self.run
        if name == "Mod" and (
            (isinstance(left, Const) and isinstance(left.value, str))
            or (isinstance(left, Plain) and left.kind is PlainKind.TEXT)
        ):
            run.use(right, UseKind.FORMAT, at)
            pattern = str(left.value) if isinstance(left, Const) else "%s"
            shown = [right, *run.elements(right)] if _WHOLE.search(pattern) else []
            return run.text_of(formatted(left, "%", [right]), left, *shown)
        if isinstance(left, (Sequence, Tuple, Parameters)):
            found = self._of_sequences(name, left, right)
            if found is not None:
                return found
        plain = (Const, Plain)
        if isinstance(left, plain) and isinstance(right, plain):
            return run.text_of(of_plain(name, left, right), *(v for v in (left, right) if is_text(v)))
        if isinstance(left, Mapping) and isinstance(right, Mapping) and name == "BitOr":
            return self.make_mapping(Arguments(None, [left, right]), at)
        if isinstance(left, Instance) or isinstance(right, Instance):
            found = self._by_operator(name, left, right, at)
            if found is not None:
                return found
        if isinstance(left, _CONTAINERS) or isinstance(right, _CONTAINERS):
            return self._of_containers(name, left, right, at)
        if run.nodes_of(left) or run.nodes_of(right) or run.held_in([left, right]):
            scalar = run.is_scalar(left) and run.is_scalar(right) and name != "MatMult"
            # a product with a number saves that number: a second backward raises (ran)
            saves = name not in SUMS and name != "Mod"
            label = name if not isinstance(right, plain) or isinstance(left, plain) else f"{name}:number"
            if name == "Div" and not (run.nodes_of(left) or run.held_in([left])):
                label = "Div:by"
            dimensionless = run.is_dimensionless(left) and run.is_dimensionless(right)
            return run.tensor_op(at, label, [left, right], saves=saves, scalar=scalar, dimensionless=dimensionless)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            scalar = run.is_scalar(left) and run.is_scalar(right) and name != "MatMult"
            return Tensor(None, scalar, shadow=run.shadow_of_new([left, right]))
        if isinstance(left, Plain) and left.kind is PlainKind.ARRAY and isinstance(right, (Const, Plain)):
            return ARRAY
        if name == "Add" and Unknown in (left.__class__, right.__class__) and (is_text(left) or is_text(right)):
            # no number and no tensor takes a text
            return Plain(PlainKind.TEXT, begin_of(left), end_of(right))
        data = all(v.data if isinstance(v, Unknown) else True for v in (left, right))
        made = run.unknown(name, data=data)
        made.shadow = run.shadow_of([left, right])
        return made

    def _of_containers(self, name: str, left: Value, right: Value, at: ast.AST) -> Value:
        """What an operation makes of a container and of what cannot be seen: no tensor takes a list or a dict, so that
        the other one is a container as well, and so is the result."""
        inside = self.run.taken(at, Tuple((left, right)), name)
        if isinstance(left, Plain) or isinstance(right, Plain):
            return inside
        if name == "BitOr" and Mapping in (left.__class__, right.__class__):
            made = self.run.new_mapping()
            self.run.s.set((made.oid, REST), inside)
            return made
        known = left if isinstance(left, _CONTAINERS) else right
        if name in ("Add", "BitOr") and isinstance(known, Sequence | Tuple):
            kind = known.kind if isinstance(known, Sequence) else SequenceKind.TUPLE
            return self.run.new_sequence([], rest=inside, kind=kind)
        return inside

    def _of_sequences(self, name: str, left: Sequence | Tuple | Parameters, right: Value) -> Value | None:
        """``left + right`` or ``left * right`` of lists, ``left | right`` of sets; None of other operations."""
        run = self.run
        if isinstance(left, Tuple) and isinstance(right, Tuple) and name == "Add":
            return Tuple((*left.items, *right.items))
        if isinstance(left, (Sequence, Tuple)) and isinstance(right, (Sequence, Tuple)) and name == "Add":
            (first, many), (second, more) = run.apart(left), run.apart(right)
            every = [*first, *second]
            return self.counted_as(run.new_sequence(every[:16], run.one_of([*every[16:], *many, *more])), left, right)
        if not isinstance(left, Tuple) and isinstance(right, (Sequence, Parameters)) and name == "Add":
            # list(a.parameters()) + list(b.parameters())
            parts = [[v] if isinstance(v, Parameters) else run.elements(v) for v in (left, right)]
            return run.new_sequence([v for part in parts for v in part])
        if isinstance(left, (Sequence, Tuple)) and name == "Mult":
            items, several = run.apart(left)
            times = right.value if isinstance(right, Const) and isinstance(right.value, int) else 2
            if isinstance(left, Tuple) and not several and 0 <= times * len(items) <= MAX_TIMES:
                return Tuple(tuple(items) * times)
            every = [*items, *items] if isinstance(left, Sequence) else items
            made = run.new_sequence(every, run.one_of(several))
            run.repeated.add(made.oid)
            if len(items) == 1 and not several:
                run.lengths[made.oid] = right
            return self.counted_as(made, left)
        if isinstance(left, Sequence) and isinstance(right, Sequence):
            # sets
            return run.new_sequence(
                [], rest=run.one_of([*run.elements(left), *run.elements(right)]), kind=SequenceKind.SET
            )
        return None

    def changed_object(self, name: str, old: Instance, added: Value, at: ast.AST) -> Value | None:
        """What ``old += added`` makes of an object whose class says so; None where it does not."""
        member = old.cls.find(f"__i{_METHODS.get(name, '')}__")
        if isinstance(member, Function):
            return self.call_function(member, Arguments(None, [added]), at, receiver=old)
        inner = self.run.contained(old)
        if name == "Add" and isinstance(inner, Sequence):
            self.container_method(inner, "extend", Arguments(None, [added]), at)
            return old
        return None

    def _by_operator(self, name: str, left: Value, right: Value, at: ast.AST) -> Value | None:
        """What the classes of two objects make of an operator."""
        method = _METHODS.get(name, "")
        if isinstance(left, Instance):
            member = left.cls.find(f"__{method}__")
            if isinstance(member, Function):
                return self.call_function(member, Arguments(None, [right]), at, receiver=left)
        if isinstance(right, Instance):
            member = right.cls.find(f"__r{method}__")
            if isinstance(member, Function):
                return self.call_function(member, Arguments(None, [left]), at, receiver=right)
        inner = [self.run.contained(v) or v for v in (left, right)]
        if inner != [left, right]:
            return self.binary(name, inner[0], inner[1], at)
        made = self.run.taken(at, Tuple((left, right)), name)
        return made if made.node is not None else None

    # comparisons

    def _eval_Compare(self, e: ast.Compare) -> Value:
        run = self.run
        left = self.evaluate(e.left)
        result: Value = NUMBER
        for op, comparator in zip(e.ops, e.comparators, strict=True):
            right = self.evaluate(comparator)
            for asked, kind in ((left, right), (right, left)):
                is_type = isinstance(asked, Unknown) and asked.path == "builtins.type"
                if is_type and isinstance(kind, Library) and canonical(kind.path) == "torch.autograd.Variable":
                    run.trace.old.append(OldForm(OldKind.TYPE_IS_VARIABLE, run.place(e), e, kind))
            if isinstance(op, (ast.Is, ast.IsNot)):
                if run.nodes_of(left) and run.nodes_of(right):
                    # what is detached, or a number, is another object
                    run.use(left, UseKind.HISTORY_READ, e, "is")
                    run.use(right, UseKind.HISTORY_READ, e, "is")
                result = self._is(left, right, negated=isinstance(op, ast.IsNot))
            elif isinstance(op, (ast.In, ast.NotIn)):
                run.use(left, UseKind.IDENTITY, e, "in")
                for option in run.options(right):
                    run.looked_into(option, e)
                result = self._contains(left, right, negated=isinstance(op, ast.NotIn))
            else:
                result = self._compare(op, left, right, e)
            left = right
        return result if len(e.ops) == 1 else NUMBER

    def _compare(self, op: ast.cmpop, left: Value, right: Value, at: ast.expr) -> Value:
        for value in (left, right):
            self.run.use(value, UseKind.COMPARE, at)
        if isinstance(left, Instance):
            member = left.cls.find(f"__{_METHODS.get(type(op).__name__, '')}__")
            if isinstance(member, Function):
                return self.call_function(member, Arguments(None, [right]), at, receiver=left)
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                return Const(bool(_COMPARE[type(op)](left.value, right.value)))
            except TypeError:
                return NUMBER
        if isinstance(left, Unknown) and left.path == "builtins.type" and isinstance(right, Library):
            # type(h) == Variable: what was meant, although today it never holds
            named = isinstance(op, (ast.Eq, ast.NotEq)) and right.path.endswith(("Variable", "Tensor"))
            return Const(isinstance(op, ast.Eq)) if named else NUMBER
        if isinstance(op, (ast.Eq, ast.NotEq)) and (same := _same_type(left, right)) is not None:
            return Const(same is isinstance(op, ast.Eq))
        options = (*self.run.options(left), *self.run.options(right))
        if any(isinstance(option, Tensor) for option in options):
            return self.run.index_of(options)
        if any(isinstance(option, Plain) and option.kind is PlainKind.ARRAY for option in options):
            return ARRAY
        return self.run.unknown("compare", data=True) if any(isinstance(o, Unknown) for o in options) else NUMBER

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
            one = isinstance(left.value, EnumMember) and left.value == right.value
            answer = one or left.value is right.value
        else:
            answer = _same_type(left, right)
        if answer is None:
            return NUMBER
        return Const(answer is not negated)

    def _contains(self, left: Value, right: Value, *, negated: bool) -> Value:
        if isinstance(left, Const) and isinstance(right, (Tuple, Sequence)):
            items = self.run.elements(right)
            if items and all(isinstance(i, Const) for i in items):
                found = any(i.value == left.value for i in items if isinstance(i, Const))
                return Const(found is not negated)
        if isinstance(left, Library) and isinstance(right, (Tuple, Sequence)):
            same = {_same_type(left, kind) for kind in self.run.elements(right)}
            if True in same or same == {False}:
                return Const((True in same) is not negated)
        return NUMBER

    # conditions

    def _eval_BoolOp(self, e: ast.BoolOp) -> Value:
        stop_at = isinstance(e.op, ast.Or)
        result: Value | None = None
        perhaps = False
        for i, expression in enumerate(e.values):
            value = self.evaluate(expression)
            self.run.use(value, UseKind.TRUTH, e)
            truth = self.run.truth(value)
            # what is asked only on some paths ends only those
            self.raises_here = self.raises_here and not perhaps
            perhaps = perhaps or truth is None
            if truth is stop_at:
                result = value if result is None else self.run.join(result, value)
                break
            if truth is None or i == len(e.values) - 1:
                result = value if result is None else self.run.join(result, value)
        if isinstance(result, (Plain,)) or result is None:
            return NUMBER
        if isinstance(result, Join) and all(isinstance(o, (Const, Plain)) for o in result.options):
            truths = {self.run.truth(o) for o in result.options}
            return Const(truths.pop()) if len(truths) == 1 and None not in truths else NUMBER
        return result

    def _eval_IfExp(self, e: ast.IfExp) -> Value:
        run = self.run
        test = self.evaluate(e.test)
        run.use(test, UseKind.TRUTH, e)
        truth = run.truth(test)
        if truth is None:
            truth = self.in_this_turn(e)
        if truth is not None:
            return self.evaluate(e.body if truth else e.orelse)
        base = run.s
        run.s = base.fork(run.clock)
        first = self.evaluate(e.body)
        after_first = run.s
        first_raises, self.raises_here = self.raises_here, False
        run.s = base.fork(run.clock)
        second = self.evaluate(e.orelse)
        after_second = run.s
        # where one way raises, the other one goes on
        self.raises_here = self.raises_here and first_raises
        run.meet([after_first, after_second], base)
        return run.join(first, second)

    def in_this_turn(self, e: ast.IfExp | ast.If) -> bool | None:
        """What a condition gives that only asks whether a loop is in its first turn, where one of the ways takes what
        the turn before left in a container: ``states[t - 1]``. None of others: a state that goes through a variable
        takes turns that begin with and without it."""
        test, negated = e.test, False
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, negated = test.operand, True
        subject, later = test, True
        if isinstance(test, ast.Compare):
            limit = test.comparators[0]
            asked = type(test.ops[0]), getattr(limit, "value", None)
            if len(test.ops) > 1 or type(asked[1]) is not int or asked not in _LATER:
                return None
            subject, later = test.left, _LATER[asked]
        if not isinstance(subject, ast.Name):
            return None
        number = self.run.values.get(subject)
        if not isinstance(number, Plain) or number.turn is None or number.counts is None:
            return None
        if not self._goes_up(number.counts[0]) or not any(map(_is_before, walk(e), itertools.repeat(subject.id))):
            return None
        return (later if number.turn else not later) is not negated

    def _goes_up(self, through: ast.AST) -> bool:
        """Whether a loop around goes through this, and counts its turns from 0, in their order."""
        around = any(getattr(loop, "iter", None) is through for loop, _ in self.run.frame.loops)
        called = self.run.values.get(through.func) if around and isinstance(through, ast.Call) else None
        return isinstance(called, Library) and called.path in ("builtins.range", "builtins.enumerate")


def _is_before(node: ast.AST, name: str) -> bool:
    """Whether it is an element under the number before that of a ``name``."""
    place = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(place, ast.BinOp) or not isinstance(place.op, ast.Sub) or not isinstance(place.left, ast.Name):
        return False
    return place.left.id == name and isinstance(place.right, ast.Constant) and place.right.value == 1


def _same_type(left: Value, right: Value) -> bool | None:
    """Whether a builtin type, as ``type(x)`` gives it, is another type; None where that cannot be seen."""
    if not isinstance(left, Library) or not isinstance(right, Library) or not left.path.startswith("builtins."):
        return None
    # what is derived from a dict is known as a dict; other libraries may give builtin types other names
    other = () if left.path == "builtins.dict" else ("torch.", "numpy.", "collections.")
    return left.path == right.path if right.path.startswith(("builtins.", *other)) else None
