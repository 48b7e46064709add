"""Calls of Python's own libraries: what goes into them comes out again.

They know nothing of tensors, so that they cut no graph: they hand values on, put them into containers, and call what
they are given. What is not followed here carries what went in.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import SequenceKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.values import (
    NONE,
    NUMBER,
    TEXT,
    TRUE,
    Class,
    Const,
    Function,
    Instance,
    Library,
    Mapping,
    Namespace,
    Parameters,
    Partial,
    Sequence,
    Tuple,
)
from codemods.graph.python.builtins.classes import is_name, made_class
from codemods.graph.python.copying import Copying
from codemods.graph.python.unknowns import Unknowns
from codemods.graph.run.contents import ANY, BACKING, COUNTS, ITEMS, REST

_OPERATORS = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mult",
    "truediv": "Div",
    "floordiv": "FloorDiv",
    "mod": "Mod",
    "pow": "Pow",
    "matmul": "MatMult",
    "lshift": "LShift",
    "rshift": "RShift",
    "and_": "BitAnd",
    "or_": "BitOr",
    "xor": "BitXor",
}
"""Functions of ``operator`` that are arithmetic, by the names of the syntax (docs: operator)."""

_BOTH = ("heappushpop", "heapreplace")
"""Functions of ``heapq`` that put and take."""


class Standard(Unknowns):
    """The part of the engine that knows Python's own libraries."""

    def standard_call(self, path: str, args: Arguments, at: ast.AST) -> Value | None:
        """A call of one of these libraries; None for one that is not described here."""
        module, _, name = path.rpartition(".")
        given = args.positional
        first = given[0] if given else None
        if path in ("types.SimpleNamespace", "argparse.Namespace"):
            return self._namespace_of(path, args, at)
        if module == "collections":
            return self._collection(name, args, at)
        if module == "operator":
            return self._operator(name, args, at)
        if module == "functools":
            return self._functional(name, args, at)
        if module == "heapq" and isinstance(first, Sequence):
            return self._heap(first, name, args, at)
        if path in ("random.shuffle",) and isinstance(first, Sequence):
            return self.container_method(first, "sort", Arguments(), at)
        if module == "dataclasses":
            return self._dataclass(name, args, at)
        if module == "copy" and first is not None:
            return self._copy(name, first, args, at)
        if path == "typing.cast" and len(given) > 1:
            return given[1]
        if name in ("closing", "aclosing", "as_completed", "MappingProxyType") and first is not None:
            return self._given_back(path, first, at)
        if module == "itertools" and given:
            return self._iterator(name, args, at)
        if path in ("typing.NamedTuple", "collections.namedtuple"):
            return self._record(args)
        return None

    def _operator(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        given, last = args.positional, args.positional[-1] if args.positional else NONE
        if name in _OPERATORS and len(given) > 1:
            return self.binary(_OPERATORS[name], given[0], given[1], at)
        if name == "setitem" and len(given) > 2:
            self.set_item(given[0], given[1], given[2], at, None)
            return NONE
        if name == "getitem" and len(given) > 1:
            return self.get_item(given[0], given[1], at)
        if name == "ior" and len(given) > 1 and isinstance(given[0], (Mapping, Namespace)):
            return self.container_method(given[0], "__ior__", Arguments(args.call, given[1:]), at)
        if name == "methodcaller()" and len(given) > 1 and isinstance(given[0], Const):
            rest = Arguments(args.call, given[1:-1], args.keywords)
            return self.call_method(last, str(given[0].value), rest, at)
        if name == "itemgetter()" and len(given) > 1:
            found = [self.get_item(last, key, at) for key in given[:-1]]
            return found[0] if len(found) == 1 else Tuple(tuple(found))
        if name == "attrgetter()" and len(given) > 1 and all(isinstance(path, Const) for path in given[:-1]):
            found = [self._by_path(last, path, at) for path in given[:-1]]
            return found[0] if len(found) == 1 else Tuple(tuple(found))
        return None

    def _by_path(self, owner: Value, path: Value, at: ast.AST) -> Value:
        """``owner.a.b`` of the path ``"a.b"``."""
        for name in str(path.value).split(".") if isinstance(path, Const) else ():
            owner = self.get_attribute(owner, name, at)
        return owner

    def _given_back(self, path: str, first: Value, at: ast.AST) -> Value | None:
        """Of what a context closes it gives the object itself, and futures come in any order; a proxy shows what its
        dict holds, now and later."""
        module, _, name = path.rpartition(".")
        if path == "types.MappingProxyType":
            return first
        if module in ("concurrent.futures", "asyncio"):
            return self.run.new_sequence([], self.run.one_of(self.iterate(first, at)))
        if module != "contextlib":
            return None
        self.run.closing[at] = name.replace("closing", "close")
        return first

    def _copy(self, name: str, value: Value, args: Arguments, at: ast.AST) -> Value | None:
        if name == "replace":
            return self.copied(value, args.keywords, at=at)
        if name not in ("copy", "deepcopy"):
            return None
        own = value.cls.find(f"__{name}__") if isinstance(value, Instance) else None
        if isinstance(own, Function):
            memo: list[Value] = [self.run.new_mapping()] if name == "deepcopy" else []
            return self.call_function(own, Arguments(None, memo), at, receiver=value)
        return Copying(self.run, self.modules, at, deep=name == "deepcopy").of(value)

    # namespaces and records

    def _namespace_of(self, path: str, args: Arguments, at: ast.AST) -> Value:
        made: Value
        if path == "types.SimpleNamespace":
            # an object whose class has no code of its own
            made = self.new_object(made_class(self, "SimpleNamespace", (), []))
        else:
            made = self.run.unknown(path, data=True, public=True)
        for name, value in args.keywords.items():
            self.set_attribute(made, name, value, at)
        for value in (*args.positional, *args.more):
            filled = self.make_mapping(Arguments(None, [value]), at)
            for key in self.run.mapping_keys(filled):
                held = self.run.s.get((filled.oid, key))
                if isinstance(held, Value) and (self.run.nodes_of(held) or isinstance(key, tuple)):
                    self.set_attribute(made, str(key[1]) if isinstance(key, tuple) else ANY, held, at)
        return made

    def _record(self, args: Arguments) -> Value | None:
        """``namedtuple("P", "a b")``: a class, where its fields can be read."""
        name, fields = args.get(0, "typename"), args.get(1, "field_names") or args.get(1, "fields")
        if not isinstance(name, Const) or fields is None:
            return None
        if isinstance(fields, Const) and isinstance(fields.value, str):
            names: list[object] = list(fields.value.replace(",", " ").split())
        else:
            named = [v.items[0] if isinstance(v, Tuple) and v.items else v for v in self.run.elements(fields)]
            names = [v.value if isinstance(v, Const) else None for v in named]
        if not names or not all(isinstance(n, str) and is_name(n) for n in names):
            return None
        return Class(made_class(self, str(name.value), (Library("typing.NamedTuple"),), [str(n) for n in names]))

    def _dataclass(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        first = args.get(0, "obj")
        if name == "replace" and isinstance(first, Instance):
            return self.copied(first, args.keywords, at=at)
        if name == "asdict" and isinstance(first, Instance):
            made = self.run.new_mapping()
            for field in first.cls.fields():
                self.torch.put_item(made, Const(field), self.run.field(first, field))
            return made
        if name == "astuple" and isinstance(first, Instance):
            return Tuple(tuple(self.run.field(first, field) for field in first.cls.fields()))
        if name == "fields":
            info = first.cls if isinstance(first, Instance) else first.info if isinstance(first, Class) else None
            if info is not None:
                return Tuple(tuple(self._named_field(field) for field in info.fields()))
        if name == "make_dataclass" and isinstance(args.get(0, "cls_name"), Const):
            record = self._record(Arguments(None, args.positional[:2]))
            if isinstance(record, Class):
                info = record.info
                return Class(ClassInfo(info.name, info.node, info.file, (), oid=info.oid))
        return None

    def _named_field(self, name: str) -> Value:
        made = self.run.unknown("field", data=True)
        self.run.put_into(made, "name", Const(name))
        return made

    # containers

    def _collection(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        run = self.run
        given = args.positional
        if name == "namedtuple":
            return self._record(args)
        if name == "deque":
            filled = self.builtin("list", Arguments(args.call, given[:1]), at)
            items, several = run.apart(filled) if isinstance(filled, (Sequence, Tuple)) else ([], [])
            if not items and given and not isinstance(filled, Sequence):
                items = self.iterate(given[0], at)
            queue = run.new_sequence(items[:16], run.one_of([*items[16:], *several]), kind=SequenceKind.DEQUE)
            limit = args.keywords.get("maxlen", given[1] if len(given) > 1 else NONE)
            return self.counted_as(queue if run.is_none(limit) else replace(queue, bounded=True), filled)
        if name in ("OrderedDict", "UserDict"):
            return self.make_mapping(args, at)
        if name == "Counter":
            counter = self.make_mapping(args, at)
            run.s.set((counter.oid, COUNTS), TRUE)
            return counter
        if name == "UserList":
            return self.builtin("list", args, at)
        if name == "defaultdict":
            made = self.make_mapping(Arguments(args.call, given[1:], args.keywords, args.more), at)
            if given:
                run.s.set((made.oid, "factory"), given[0])
            return made
        if name == "ChainMap" and given:
            joined = run.one_of(list(given))
            # what is written goes to the first
            return joined if isinstance(joined, Mapping) or len(given) == 1 else self._chained(given, at)
        return None

    def _chained(self, maps: list[Value], at: ast.AST) -> Value:
        made = self.run.new_mapping()
        for value in reversed(maps):
            self.fill_mapping(made, value, at)
        return made

    def _heap(self, heap: Sequence, name: str, args: Arguments, at: ast.AST) -> Value | None:
        rest = Arguments(None, args.positional[1:])
        if name == "heappush" or name in _BOTH:
            self.container_method(heap, "append", rest, at)
        every = self.run.one_of(self.run.elements(heap))
        self.container_method(heap, "sort", Arguments(), at)
        if name in ("heappush", "heapify"):
            return NONE
        if name == "heappop" or name in _BOTH:
            self.run.trace.emptied.append((heap.oid, self.run.clock))
            return every if every is not None else self.run.lost()
        return None

    # functions

    def _functional(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        given = args.positional
        if name in ("partial", "partialmethod") and given:
            return Partial(given[0], tuple(given[1:]), tuple(args.keywords.items()), method=name == "partialmethod")
        if name == "reduce" and len(given) > 1:
            turns = [*given[2:3], *self.iterate(given[1], at)]
            if not turns:
                return self.run.lost()
            total = turns[0]
            for value in turns[1:]:
                total = self.run.join(total, self.call_value(given[0], Arguments(args.call, [total, value]), at))
            return total
        if name in ("wraps", "lru_cache", "cache", "total_ordering", "cached_property") and len(given) == 1:
            # the function itself, as far as its results go
            return given[0] if name != "wraps" and isinstance(given[0], (Function, Class)) else None
        return None

    def _iterator(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        run = self.run
        given = args.positional
        if name in ("chain", "cycle", "islice", "repeat", "tee") and any(isinstance(v, Parameters) for v in given):
            return run.new_sequence(list(given))
        if name == "repeat":
            return run.new_sequence([], rest=given[0])
        if name == "tee":
            inner = self.builtin("list", Arguments(args.call, given[:1]), at)
            # each of them is read by itself, so that neighbours meet
            items, several = run.apart(inner) if isinstance(inner, Sequence) else ([], [inner])
            rest = run.one_of([*items, *several])
            return Tuple(tuple(run.new_sequence([], rest=rest, kind=SequenceKind.TURNS) for _ in range(2)))
        if name in ("starmap", "accumulate") and (name == "starmap" or len(given) > 1 or "func" in args.keywords):
            return self._applied(name, args, at)
        if name == "chain":
            turns = [v for value in given for v in self.flat_or_turns(value, at)]
            more = [v for value in args.more for outer in self.flat_or_turns(value, at) for v in run.flat(outer)]
            return run.new_sequence([], rest=run.one_of([*turns, *more]))
        if name == "from_iterable":
            turns = [v for outer in self.flat_or_turns(given[0], at) for v in self.flat_or_turns(outer, at)]
            return run.new_sequence([], rest=run.one_of(turns))
        if name in ("cycle", "islice"):
            return run.new_sequence([], rest=run.one_of(self.flat_or_turns(given[0], at)))
        return None

    def flat_or_turns(self, value: Value, at: ast.AST) -> list[Value]:
        """The elements of a container, or what a loop over something else sees."""
        inner = self.run.elements(value)
        return inner or (self.iterate(value, at) if not isinstance(value, (Tuple, Sequence, Mapping)) else [])

    def _applied(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """What ``starmap`` or ``accumulate`` makes by a function."""
        run = self.run
        given = args.positional
        if name == "starmap":
            function, rows = given[0], self.iterate(given[1], at) if len(given) > 1 else []
            made = [
                self.call_value(
                    function,
                    Arguments(args.call, run.elements(row), {}, [] if run.elements(row) else [row]),
                    at,
                )
                for row in rows
            ]
            return run.new_sequence([], rest=run.one_of(made))
        added = given[1] if len(given) > 1 else args.keywords["func"]
        begin = args.keywords.get("initial")
        values = [*([] if begin is None else [begin]), *self.iterate(given[0], at)]
        total = values[0] if values else NUMBER
        for value in values[1:]:
            total = run.join(total, self.call_value(added, Arguments(args.call, [total, value]), at))
        return run.new_sequence([], rest=total)

    # mappings

    def by_items(self, mapping: Instance, name: str, args: Arguments, at: ast.AST) -> Value | None:
        """What ``collections.abc`` makes of a dict's method by items that are read and written; None of another
        method."""
        if name == "update":
            for value in self.run.elements(self.make_mapping(args, at)):
                self.set_item(mapping, TEXT, value, at, None)
            return NONE
        if name not in ("get", "pop", "setdefault", "popitem", "values", "items"):
            return None
        default = args.positional[1:]
        if name == "setdefault":
            self.set_item(mapping, TEXT, default[0] if default else NONE, at, None)
        got = self.get_item(mapping, TEXT, at)
        if name in ("values", "items"):
            return self.run.new_sequence([], rest=got if name == "values" else Tuple((TEXT, got)))
        return Tuple((TEXT, got)) if name == "popitem" else self.run.one_of([got, *default])

    # copies

    def copied(self, value: Value, changes: dict[str, Value] | None = None, *, at: ast.AST | None = None) -> Value:
        """A copy of a container or an object, with what it holds; other values are their own copies."""
        run = self.run
        if isinstance(value, Sequence):
            items = list(run.s.get((value.oid, ITEMS)) or ())
            return run.new_sequence(items, run.s.get((value.oid, REST)), kind=value.kind)
        if isinstance(value, Mapping):
            return self.mapping_view(value, "copy")
        if not isinstance(value, Instance) or value.cls.is_module:
            return value
        made = self.new_object(value.cls)
        for name in (*run.attributes.get(value.oid, ()), BACKING, ANY):
            held = run.s.get((value.oid, name))
            if isinstance(held, Value):
                run.s.set((made.oid, name), self.copied(held) if name == BACKING else held)
                if name != BACKING:
                    run.attributes[made.oid][name] = None
        for name, held in (changes or {}).items():
            self.set_attribute(made, name, held, at if at is not None else ast.Pass())
        return made
