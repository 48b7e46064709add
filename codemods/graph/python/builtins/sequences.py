"""Builtins that make lists, tuples, sets and dicts, and those that go through one from its begin to its end."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import MODULE_CONTAINERS
from codemods.graph.model.kinds import SequenceKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import (
    NUMBER,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Mapping,
    Module,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.python.builtins.table import BUILTINS
from codemods.graph.python.containers import Containers
from codemods.graph.run.contents import ITEMS, REST

_ADDED = 3
"""So many objects are added up by methods of their own: the sum of more is made the same way."""


def _every(engine: Containers, value: Value, at: ast.AST) -> list[Value]:
    """What is in something that is gone through from its begin to its end."""
    if isinstance(value, (Tuple, Sequence, Mapping)):
        return engine.run.elements(value)
    return engine.iterate(value, at)


@BUILTINS.of("dict")
def _dict(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.make_mapping(args, at)


@BUILTINS.of("list", "tuple", "set", "frozenset")
def _list(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    return _made_of(engine, name, args.positional, at)


#: What builtins make of nothing, but for lists.
_EMPTY = {kind.value: kind for kind in (SequenceKind.TUPLE, SequenceKind.SET, SequenceKind.FROZEN_SET)}


def _made_of(engine: Containers, name: str, given: list[Value], at: ast.AST) -> Value:
    if given:
        return _as_sequence(engine, given[0], name, at)
    return engine.run.new_sequence([], kind=_EMPTY.get(name, SequenceKind.LIST))


def _made_by(name: str) -> SequenceKind:
    return SequenceKind.TURNS if name == "iter" else SequenceKind.LIST


@BUILTINS.of("sorted")
def _sorted(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    if args.positional and "key" in args.keywords:
        engine.ordered_by(args, _every(engine, args.positional[0], at), at)
    return _made_of(engine, name, args.positional, at)


@BUILTINS.of("reversed")
def _reversed(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    first = args.positional[0] if args.positional else None
    if isinstance(first, Instance):
        member = first.cls.find("__reversed__")
        if isinstance(member, Function):
            return engine.call_function(member, Arguments(), at, receiver=first)
    return _made_of(engine, name, args.positional, at)


@BUILTINS.of("iter")
def _iter(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    if len(args.positional) > 1:
        # iter(function, sentinel)
        with engine.run.at_another_time():
            made = engine.call_value(args.positional[0], Arguments(args.call), at)
        return engine.run.new_sequence([], rest=made, kind=SequenceKind.TURNS)
    return _made_of(engine, name, args.positional, at)


def _as_sequence(engine: Containers, value: Value, name: str, at: ast.AST) -> Value:
    """``list(value)``, or what the builtin ``name`` makes of it."""
    if isinstance(value, Parameters):
        return value
    if isinstance(value, Instance):
        return _of_object(engine, value, name, at)
    if isinstance(value, Class):
        turns = engine.iterate(value, at)
        return engine.run.new_sequence(turns[:1], rest=engine.run.one_of(turns), kind=_made_by(name))
    if isinstance(value, Join):
        made = engine.run.one_of([_as_sequence(engine, o, name, at) for o in value.options])
        return made or engine.run.new_sequence([])
    if isinstance(value, Tuple) and name == "tuple":
        return value
    if isinstance(value, Mapping):
        return engine.mapping_view(value, "keys")
    if isinstance(value, (Tuple, Sequence)):
        return _of_sequence(engine, value, name)
    return _of_other(engine, value, name, at)


def _of_object(engine: Containers, value: Instance, name: str, at: ast.AST) -> Value:
    if name == "iter" and value.cls.find("__next__") is not None and value.cls.find("__iter__") is None:
        return value
    inner = engine.run.contained(value) if value.cls.find("__iter__") is None else None
    if inner is None:
        turns = engine.iterate(value, at)
        # how many there are is not known
        return engine.run.new_sequence(turns[:1], rest=engine.run.one_of(turns), kind=_made_by(name))
    if isinstance(inner, (Instance, Parameters)):
        return _of_other(engine, inner, name, at)
    return _as_sequence(engine, inner, name, at)


def _of_sequence(engine: Containers, value: Tuple | Sequence, name: str) -> Value:
    rest = engine.run.s.get((value.oid, REST)) if isinstance(value, Sequence) else None
    items = list(value.items) if isinstance(value, Tuple) else list(engine.run.s.get((value.oid, ITEMS)) or ())
    if name == "tuple" and rest is None and (isinstance(value, Tuple) or value.oid not in engine.run.uncounted):
        return Tuple(tuple(items))
    made = engine.run.new_sequence(items[::-1] if name == "reversed" else items, rest, kind=_made_by(name))
    if (name == "sorted" and len(items) > 1) or (name == "reversed" and rest is not None):
        engine.mix(made)
    return engine.counted_as(made, value)


def _of_other(engine: Containers, value: Value, name: str, at: ast.AST) -> Value:
    run = engine.run
    if isinstance(value, Instance) and value.cls.find("__iter__") is None:
        value = engine.torch.layer_of(value) or value
    if isinstance(value, Module) and value.name in MODULE_CONTAINERS:
        return run.new_sequence(list(run.s.get((value.oid, ITEMS)) or ()), run.s.get((value.oid, REST)))
    if isinstance(value, Module) and not value.name and value.leaf is not None and value.within is None:
        # parts of a module that cannot be seen, and not of what unseen code made of one
        return run.new_sequence([], rest=Module(run.new_oid(), "", value.leaf))
    if isinstance(value, Plain):
        return value
    if isinstance(value, (Tensor, Unknown)) and value.node is not None:
        return run.new_sequence([], rest=run.unknown("item", run.part(at, value, "item")))
    if run.held_in([value]):
        return run.new_sequence([], rest=run.taken(at, value))
    made = run.unknown(f"builtins.{name}", data=isinstance(value, Unknown) and value.data, public=True)
    made.shadow = run.shadow_of([value])
    return made


@BUILTINS.of("max", "min")
def _extreme(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    values = given if len(given) > 1 else [v for value in given for v in _every(engine, value, at)]
    for value in values:
        engine.run.use(value, UseKind.COMPARE, at)
    engine.ordered_by(args, values, at)
    default = args.keywords.get("default")
    return engine.run.one_of([*values, *([default] if default is not None else [])]) or NUMBER


@BUILTINS.of("sum")
def _sum(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    run = engine.run
    if not args.positional:
        return None
    first = args.positional[0]
    whole = isinstance(first, (Tensor, Unknown))
    elements = [first] if whole else _every(engine, first, at)
    begin = args.get(1, "start")
    start = [begin] if begin is not None else []
    every = [*elements, *start]
    if any(isinstance(o, Instance) for v in every for o in run.options(v)):
        # objects add up by methods of their own
        total = start[0] if start else NUMBER
        for value in elements[:_ADDED]:
            total = engine.binary("Add", total, value, at)
        return total
    if start and isinstance(start[0], Sequence):
        return run.new_sequence([], rest=run.one_of([v for e in elements for v in run.flat(e)]))
    if not any(run.nodes_of(v) for v in every):
        if all(isinstance(v, (Plain, Const)) for v in elements):
            return NUMBER
        made = run.unknown("sum")
        made.shadow = run.shadow_of(every)
        return made
    scalar = all(run.is_scalar(v) for v in every) and not whole
    dimensionless = scalar and all(run.is_dimensionless(v) for v in every)
    return run.tensor_op(at, "sum", every, saves=False, scalar=scalar, dimensionless=dimensionless)
