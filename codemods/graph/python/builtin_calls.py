"""Calls of Python's builtins."""

from __future__ import annotations

import ast
import keyword
from dataclasses import replace

from codemods.graph.model import facts
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Frame, Unseen, Value
from codemods.graph.model.program import ClassInfo, walks
from codemods.graph.model.values import (
    DATA,
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
    Module,
    Namespace,
    Parameters,
    Plain,
    Sequence,
    Super,
    Tensor,
    TreeModule,
    Tuple,
    Unknown,
)
from codemods.graph.python.containers import Containers
from codemods.graph.run.contents import ANY, BACKING, ITEMS, REST, RETURNED
from codemods.graph.run.joins import MAX_OPTIONS


class BuiltinCalls(Containers):
    """The part of the engine that knows builtins."""

    # what the layers above supply

    def _set_directly(self, target: Value, name: Value, value: Value, at: ast.AST) -> None:
        """``object.__setattr__(target, name, value)``."""
        raise NotImplementedError

    def binary(self, name: str, left: Value, right: Value, at: ast.AST) -> Value:
        """An arithmetic operation."""
        raise NotImplementedError

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
            return self.is_instance(given)
        if name == "hasattr":
            return self._hasattr(given)
        if name == "getattr" and len(given) >= 2:
            return self._getattr(given, at)
        if name == "setattr" and len(given) >= 3:
            self.set_named(given[0], given[1], given[2], at)
            return NONE
        if name == "super":
            return self._super(given)
        if name in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"):
            if first is None:
                return self.new_sequence([], kind=name)
            if name == "iter" and len(given) > 1:
                # iter(function, sentinel)
                return self.new_sequence([], rest=self.call_value(first, Arguments(args.call), at), kind="turns")
            if name == "reversed" and isinstance(first, Instance):
                member = first.cls.find("__reversed__")
                if isinstance(member, Function):
                    return self.call_function(member, Arguments(), at, receiver=first)
            if name == "sorted" and "key" in args.keywords:
                self.ordered_by(args, self._every(first, at), at)
            return self._as_sequence(first, name, at)
        if name == "dict":
            return self.make_mapping(args, at)
        if name == "sum" and first is not None:
            elements = self._every(first, at) if not isinstance(first, (Tensor, Unknown)) else [first]
            begin = args.get(1, "start")
            start = [begin] if begin is not None else []
            if any(isinstance(o, Instance) for v in (*elements, *start) for o in self.options(v)):
                # objects add up by methods of their own
                total = start[0] if start else NUMBER
                for value in elements[:3]:
                    total = self.binary("Add", total, value, at)
                return total
            if start and isinstance(start[0], Sequence):
                return self.new_sequence([], rest=self.one_of([v for e in elements for v in self.flat(e)]))
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
            values = given if len(given) > 1 else (self._every(first, at) if first is not None else [])
            for value in values:
                self.use(value, "compare", at)
            self.ordered_by(args, values, at)
            default = args.keywords.get("default")
            return self.one_of([*values, *([default] if default is not None else [])]) or NUMBER
        if name in ("abs", "pow", "round", "divmod"):
            if isinstance(first, Instance):
                member = first.cls.find(f"__{name}__")
                if isinstance(member, Function):
                    return self.call_function(member, Arguments(None, given[1:]), at, receiver=first)
                return self.taken(at, first)
            if first is not None and any(self.nodes_of(v) for v in given):
                made = self.tensor_op(at, name, given, scalar=self.is_scalar(first))
                return Tuple((made, made)) if name == "divmod" else made
            if any(isinstance(v, Tensor) for v in given):
                return Tuple((DATA, DATA)) if name == "divmod" else DATA
            shadow = self.shadow_of(given)
            return Tensor(None, shadow=shadow) if any(isinstance(o, Unseen) for o in shadow) else NUMBER
        if name in ("range",):
            return self.unknown("range", data=True) if not given else Plain("range")
        if name in ("enumerate", "zip", "map", "filter", "next"):
            return self._iteration_builtin(name, args, at)
        if name == "vars" and first is not None:
            oid = getattr(first, "oid", None)
            if isinstance(first, TreeModule):
                return self.get_attribute(first, "__dict__", at)
            return Namespace(oid, first) if isinstance(oid, int) else self.lost(name)
        if name in ("vars", "locals", "globals"):
            local = name != "globals" and self.frame.function is not None
            return Namespace(self.frame.fid if local else self.frame.module_globals)
        if name == "dir":
            return self.unknown(name)
        if name in ("any", "all"):
            self.use(first, "truth", at)
            return NUMBER
        if name == "type":
            if len(given) > 1:
                self.escape_all(args.all(), "what makes the class may use it")
            return self._type(given, at)
        if name == "slice":
            return NUMBER
        if name == "property" and isinstance(first, Function):
            return replace(first, kind="property")
        if name == "object.__setattr__" and len(given) > 2:
            self._set_directly(given[0], given[1], given[2], at)
            return NONE
        if name in ("object.__getattribute__", "object.__getattr__") and len(given) > 1:
            return self._getattr(given, at)
        if name == "object.__new__" and isinstance(first, Class):
            return self.new_object(first.info)
        kind, _, method = name.partition(".")
        if kind in ("dict", "list", "set", "deque") and isinstance(first, (Instance, Sequence, Mapping)):
            # list.append(self, value) of a derived class
            inner = self.contained(first) or first
            if method == "__init__" and isinstance(first, Instance):
                self.s.set((first.oid, BACKING), self.builtin(kind, Arguments(args.call, given[1:], args.keywords), at))
                return NONE
            return self.container_method(inner, method, Arguments(args.call, given[1:], args.keywords, args.more), at)
        if name in ("eval", "exec"):
            for space in {self.frame.fid, self.frame.module_globals}:
                self.escape_all(self.elements(Namespace(space)), "code in a text may use it")
        if name in ("eval", "exec", "__import__", "compile"):
            return self.unknown(name)
        self.run_callbacks(args, at)
        return self.opaque(at, name, args.all())

    def _every(self, value: Value, at: ast.AST) -> list[Value]:
        """What is in something that is gone through from its begin to its end."""
        if isinstance(value, (Tuple, Sequence, Mapping)):
            return self.elements(value)
        return self.iterate(value, at)

    def make_mapping(self, args: Arguments, at: ast.AST) -> Mapping:
        """``dict(...)``."""
        made = self.new_mapping()
        for value in (*args.positional, *args.more):
            self.fill_mapping(made, value, at)
        for key, value in args.keywords.items():
            self.put_item(made, Const(key), value)
        return made

    def _getattr(self, given: list[Value], at: ast.AST) -> Value:
        """``getattr(obj, name, default)``."""
        owner, name = given[0], given[1]
        if isinstance(name, Const) and isinstance(name.value, str):
            default = given[2] if len(given) > 2 and isinstance(owner, (Instance, Unknown, Module)) else None
            if default is not None and isinstance(owner, (Instance, Unknown, Module)):
                there = isinstance(self.s.get((owner.oid, name.value)), Value)
                if there or (isinstance(owner, Instance) and owner.cls.find(name.value) is not None):
                    default = None
            found = self.get_attribute(owner, name.value, at)
            # what else it may be matters only where it may carry a graph
            return self.join(found, default) if default is not None and self.nodes_of(default) else found
        if isinstance(owner, Library) and owner.path == "torch.optim":
            # what can be called there are optimizers
            some = Library("torch.optim.Optimizer")
            return some if len(given) < 3 else self.join(some, given[2])
        if isinstance(owner, Instance) and isinstance(name, Plain):
            one = self._one_named(owner, name, at)
            if one is not None:
                return one
        if isinstance(owner, Library) and owner.path in facts.OF_CLASSES:
            return Library(f"{owner.path}.{facts.SOME}")
        space = self.get_attribute(owner, "__dict__", at) if isinstance(owner, TreeModule) else None
        chosen = self.defined_in(space) if isinstance(space, Namespace) else None
        if chosen is not None:
            return chosen
        plain = isinstance(owner, Unknown) and owner.module is None and owner.node is None
        if isinstance(owner, Unknown) and plain and not self.attributes.get(owner.oid) and not self.held_in([owner]):
            # nothing was written to it: what it has under one name, it may have under any
            found = self.unknown_attribute(owner, "[getattr]", at)
            return found if len(given) < 3 else self.join(found, given[2])
        made = self.taken(at, owner, "getattr")
        made.shadow = (*self.lost("getattr").shadow, *made.shadow)
        return made

    def _one_named(self, owner: Instance, name: Plain, at: ast.AST) -> Value | None:
        """An attribute of a module of which the begin or end of its name is known: one of those that are called so.

        None where there may be others: where nothing is known of the name, of a base, or of a part.
        """
        known = all(
            isinstance(base, Class) or (isinstance(base, Library) and base.path.startswith(("torch.nn.", "builtins.")))
            for info in owner.cls.mro()
            for base in info.bases
        )
        if not (name.begin or name.end) or not owner.cls.is_module or not known or self.special_names(owner.cls):
            return None
        held = [n for n in self.attributes.get(owner.oid, ()) if isinstance(n, str) and (n == ANY or name.may_be(n))]
        members = {n for info in owner.cls.mro() for n in info.members if name.may_be(n)}
        found = [self.get_attribute(owner, n, at) for n in (*held, *sorted(members.difference(held)))]
        return self.one_of(found) if len(found) <= MAX_OPTIONS else None

    def _type(self, given: list[Value], at: ast.AST) -> Value:
        """``type(obj)``, or ``type(name, bases, members)``."""
        if len(given) == 1 and isinstance(given[0], Instance):
            return Class(given[0].cls)
        if len(given) == 1 and isinstance(given[0], (Tuple, Mapping)) and not getattr(given[0], "names", ()):
            return Library("builtins.tuple" if isinstance(given[0], Tuple) else "builtins.dict")
        if len(given) == 1 and isinstance(given[0], Sequence) and given[0].kind in ("list", "set", "tuple"):
            return Library(f"builtins.{given[0].kind}")
        if len(given) == 3 and isinstance(given[0], Const) and isinstance(given[2], Mapping):
            bases = tuple(given[1].items) if isinstance(given[1], Tuple) else ()
            info = self.made_class(str(given[0].value), bases, [])
            for key in self.mapping_keys(given[2]):
                value = self.s.get((given[2].oid, key))
                if isinstance(key, tuple) and isinstance(value, Value):
                    info.members[str(key[1])] = replace(value, cls=info) if isinstance(value, Function) else value
            return Class(info)
        return self.unknown("builtins.type", public=True)

    def made_class(self, name: str, bases: tuple[Value, ...], fields: list[str]) -> ClassInfo:
        """A class that a call makes, as if it stood there as a statement."""
        body = [f"{field}: object" for field in fields if is_name(field)] or ["pass"]
        text = f"class {name if is_name(name) else 'Made'}:\n    " + "\n    ".join(body)
        statement = ast.parse(text).body[0]
        assert isinstance(statement, ast.ClassDef)
        return ClassInfo(name, statement, self.frame.file, bases, oid=self.new_oid())

    def _iteration_builtin(self, name: str, args: Arguments, at: ast.AST) -> Value:
        given = args.positional
        first = given[0] if given else None
        if name == "enumerate" and first is not None:
            turns = self.iterate(first, at)
            return self.new_sequence([Tuple((NUMBER, value)) for value in turns], kind="turns")
        if name == "zip":
            columns = [self.iterate(value, at) for value in given]
            if args.more or not columns:
                rows = self.taken(at, Tuple((*given, *args.more)), "zip")
                if rows.node is None and not rows.shadow:
                    return self.unknown("zip", data=True)
                return self.new_sequence([rows], rest=rows)
            turns = []
            for i in range(2):
                row = [column[min(i, len(column) - 1)] if column else self.unknown("item") for column in columns]
                turns.append(Tuple(tuple(row)))
            return self.new_sequence(list(turns), kind="turns")
        if name in ("map", "filter") and len(given) > 1:
            turns = self.iterate(given[1], at)
            if name == "filter":
                asked = given[0] if isinstance(given[0], Function) else None
                if asked is not None and asked.file.once(walks, asked.definition):
                    for turn in turns:
                        self.call_value(asked, Arguments(None, [turn]), at)
                return given[1] if isinstance(given[1], Parameters) else self.new_sequence(list(turns))
            if isinstance(given[0], Library) and given[0].path in ("builtins.float", "builtins.int", "builtins.str"):
                return self.new_sequence([], rest=NUMBER)
            others = [t for v in given[2:] if (t := self.iterate(v, at))]
            rows_of = [[v, *(t[min(i, len(t) - 1)] for t in others)] for i, v in enumerate(turns)]
            return self.new_sequence([self.call_value(given[0], Arguments(args.call, row), at) for row in rows_of])
        if name == "next" and first is not None:
            turns = [*self.iterate(first, at), *given[1:2]]
            ended = self.s.get((first.oid, RETURNED)) if isinstance(first, Sequence) else None
            if isinstance(ended, Value) and self.nodes_of(ended):
                stop = self.unknown("StopIteration")
                self.put_into(stop, "value", ended)
                self.thrown.append(stop)
            return self.one_of(turns) or self.unknown("next", data=True)
        return self.unknown(name)

    def _as_sequence(self, value: Value, kind: str, at: ast.AST) -> Value:
        if isinstance(value, Parameters):
            return value
        if isinstance(value, Instance):
            if kind == "iter" and value.cls.find("__next__") is not None and value.cls.find("__iter__") is None:
                return value
            inner = self.contained(value) if value.cls.find("__iter__") is None else None
            if inner is not None:
                value = inner
            else:
                turns = self.iterate(value, at)
                # how many there are is not known
                return self.new_sequence(turns[:1], rest=self.one_of(turns), kind="turns" if kind == "iter" else "list")
        if isinstance(value, Join):
            return self.one_of([self._as_sequence(o, kind, at) for o in value.options]) or self.new_sequence([])
        if isinstance(value, Tuple) and kind == "tuple":
            return value
        if isinstance(value, Mapping):
            return self.mapping_view(value, "keys")
        if isinstance(value, (Tuple, Sequence)):
            rest = self.s.get((value.oid, REST)) if isinstance(value, Sequence) else None
            items = list(value.items) if isinstance(value, Tuple) else list(self.s.get((value.oid, ITEMS)) or ())
            if kind == "tuple" and rest is None:
                return Tuple(tuple(items))
            if kind == "reversed":
                items.reverse()
            if kind == "sorted" and len(items) > 1:
                # which of them comes first is not followed
                rest = self.one_of([*items, *([rest] if rest is not None else [])])
            return self.new_sequence(items, rest, kind="list" if kind != "iter" else "turns")
        if isinstance(value, Instance) and value.cls.find("__iter__") is None:
            value = self.layer_of(value) or value
        if isinstance(value, Module) and value.name in facts.MODULE_CONTAINERS:
            return self.new_sequence(list(self.s.get((value.oid, ITEMS)) or ()), self.s.get((value.oid, REST)))
        if isinstance(value, Plain):
            return value
        if isinstance(value, (Tensor, Unknown)) and value.node is not None:
            return self.new_sequence([], rest=self.unknown("item", self.part(at, value, "item")))
        if self.held_in([value]):
            return self.new_sequence([], rest=self.taken(at, value))
        made = self.unknown(f"builtins.{kind}", data=isinstance(value, Unknown) and value.data, public=True)
        made.shadow = self.shadow_of([value])
        return made

    def is_instance(self, given: list[Value]) -> Value:
        if len(given) < 2:
            return NUMBER
        value, kinds = given[0], given[1]
        if isinstance(value, Join):
            each = {self.truth(self.is_instance([option, kinds])) for option in value.options}
            return Const(each.pop()) if len(each) == 1 and None not in each else NUMBER
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


def is_name(text: str) -> bool:
    """Whether a text can stand as a name in a program."""
    return text.isidentifier() and not keyword.iskeyword(text)
