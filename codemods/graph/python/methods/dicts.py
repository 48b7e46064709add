"""Methods of dicts."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Carrier, Value
from codemods.graph.model.state import VIEWS
from codemods.graph.model.values import NONE, TEXT, Const, Mapping, Tuple, is_setting
from codemods.graph.python.filling import Filling
from codemods.graph.python.methods.table import OF_DICTS
from codemods.graph.run.contents import COUNTS

_LOOKING = (ast.For, ast.AsyncFor, ast.comprehension, ast.Call, ast.Starred, ast.YieldFrom)
"""What stands around a view that is gone through where it is made."""


@OF_DICTS.of("values", "items", "keys", "copy")
def _view(engine: Filling, container: Mapping, name: str, args: Arguments, at: ast.AST) -> Value:
    view = engine.mapping_view(container, name)
    if name in VIEWS and not isinstance(engine.run.frame.file.parent(at), _LOOKING):
        # what is put in from here on is seen by who looks at it later
        others = engine.run.s.get((container.oid, VIEWS[name]))
        engine.run.s.set((container.oid, VIEWS[name]), view if others is None else engine.run.join(others, view))
    return view


@OF_DICTS.of("get", "setdefault", "pop")
def _get(engine: Filling, container: Mapping, name: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    engine.fill_registry(container.oid)
    given = args.positional
    cell = _cell(given)
    known = run.s.get((container.oid, cell)) if cell is not None else None
    stored = engine.under(container, given[0]) if cell is not None else run.one_of(run.elements(container))
    default = given[1] if len(given) > 1 else NONE
    if name == "pop" and cell is not None:
        run.s.delete((container.oid, cell))
    elif name == "pop":
        _take_any(engine, container)
    if name == "setdefault" and given and known is None and (cell is not None or stored is None):
        engine.torch.put_item(container, given[0], default)
    if not isinstance(stored, Value):
        return default
    run.read(stored, Carrier(CarrierKind.ELEMENT, container.oid, ""), at)
    # where it is only known that something lies under another key, nothing may lie under this one
    return stored if known is not None or cell is None else run.join(stored, default)


def _take_any(engine: Filling, container: Mapping) -> None:
    """Let one of the elements be gone: of a setting it is known no more that it is there."""
    for key in engine.run.mapping_keys(container):
        held = engine.run.s.get((container.oid, key))
        if is_setting(held):
            engine.run.s.set((container.oid, key), engine.run.join(held, engine.run.unknown("setting", data=True)))


def _cell(given: list[Value]) -> tuple[str, object] | None:
    """Where a dict keeps what lies under the first argument, if that is known."""
    return ("key", given[0].value) if given and isinstance(given[0], Const) else None


@OF_DICTS.of("update", "__ior__")
def _update(engine: Filling, container: Mapping, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.growing.note_updated(at)
    if engine.run.s.get((container.oid, COUNTS)) is not None and name == "update":
        _count(engine, container, args, at)
        return NONE
    for value in args.positional:
        engine.fill_mapping(container, value, at)
    for key, value in args.keywords.items():
        engine.torch.put_item(container, Const(key), value)
    for value in args.more:
        engine.fill_mapping(container, value, at)
    given = at.args[0] if isinstance(at, ast.Call) and at.args else None
    if isinstance(at, ast.AugAssign):
        # history |= {step: loss}
        given = at.value
    for name_of, expression in zip(given.keys, given.values, strict=True) if isinstance(given, ast.Dict) else ():
        if name_of is not None and not isinstance(name_of, ast.Constant) and expression in engine.run.values:
            # history.update({step: loss}); what lies under a name that is always the same is replaced each time
            engine.torch.note_storing(container, expression, engine.run.values[expression], name, expression)
    return NONE if name == "update" else container


def _count(engine: Filling, container: Mapping, args: Arguments, at: ast.AST) -> None:
    """``counter.update(...)`` adds to what lies under each name."""
    added = engine.make_mapping(args, at)
    for cell in engine.run.mapping_keys(added):
        key = Const(cell[1]) if isinstance(cell, tuple) else TEXT
        value, old = engine.run.s.get((added.oid, cell)), engine.under(container, key) or Const(0)
        if isinstance(value, Value):
            made = engine.binary("Add", old, value, at)
            engine.torch.put_item(container, key, made)
            engine.growing.note_counted(at, key, old, value, made)


@OF_DICTS.of("popitem")
def _popitem(engine: Filling, container: Mapping, name: str, args: Arguments, at: ast.AST) -> Value:
    _take_any(engine, container)
    return Tuple((TEXT, engine.run.one_of(engine.run.elements(container)) or engine.run.lost()))


@OF_DICTS.of("move_to_end")
def _move_to_end(engine: Filling, container: Mapping, name: str, args: Arguments, at: ast.AST) -> Value:
    cell = _cell(args.positional)
    names = engine.run.attributes.get(container.oid, {})
    if cell in names:
        names[cell] = names.pop(cell)
    return NONE


@OF_DICTS.of("clear")
def _clear(engine: Filling, container: Mapping, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.trace.emptied.append((container.oid, engine.run.clock))
    for key in engine.run.mapping_keys(container):
        engine.run.s.delete((container.oid, key))
    return NONE
