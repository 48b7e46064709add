"""Calls of Python's builtins."""

from __future__ import annotations

import ast

from codemods.graph import facts
from codemods.graph.arguments import Arguments
from codemods.graph.containers import Containers
from codemods.graph.contents import ITEMS, REST
from codemods.graph.trace import Frame
from codemods.graph.values import (
    NONE,
    NUMBER,
    TEXT,
    Class,
    Const,
    Instance,
    Library,
    Mapping,
    Module,
    Parameters,
    Plain,
    Sequence,
    Super,
    Tensor,
    Tuple,
    Unknown,
    Unseen,
    Value,
)


class BuiltinCalls(Containers):
    """The part of the engine that knows builtins."""

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
                return self.mapping_view(first, "copy")
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
            dimensionless = scalar and all(self.is_dimensionless(v) for v in (*elements, *start))
            return self.tensor_op(
                at, "sum", [*elements, *start], saves=False, scalar=scalar, dimensionless=dimensionless
            )
        if name in ("max", "min"):
            values = given if len(given) > 1 else (self.elements(first) if first is not None else [])
            for value in values:
                self.use(value, "compare", at)
            return self.one_of(list(values)) or NUMBER
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
            return self.unknown("builtins.type", public=True)
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
            return self.one_of(turns) or self.unknown("next", data=True)
        return self.unknown(name)

    def _as_sequence(self, value: Value, kind: str, at: ast.AST) -> Value:
        if isinstance(value, Parameters):
            return value
        if isinstance(value, Tuple) and kind == "tuple":
            return value
        if isinstance(value, Mapping):
            return self.mapping_view(value, "keys")
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
        made = self.unknown(f"builtins.{kind}", data=isinstance(value, Unknown) and value.data, public=True)
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
