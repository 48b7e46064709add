"""Loops that give the parameters of modules their first values: modules that are alike need one turn."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from codemods.graph.model.facts.layers import MODULE_CONTAINERS
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Const, Instance, Module, Plain, Tuple
from codemods.graph.run.run import Run
from codemods.source.walking import children, names_in

_STATEMENTS = (ast.If, ast.Expr, ast.Assign, ast.Pass, ast.Continue)
_EXPRESSIONS = (
    *(ast.Attribute, ast.Name, ast.Constant, ast.Subscript, ast.Tuple, ast.List, ast.keyword),
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Call),
)
_INITIALIZING = ("torch.nn.init.", "math.")
_ASKING = frozenset(f"builtins.{name}" for name in ("isinstance", "hasattr", "len", "float", "int"))
_SIZES = frozenset(("size", "numel", "dim"))


class _Form(NamedTuple):
    """What a loop calls if it only initializes: by names that ought to be public ones, and by names of builtins."""

    public: tuple[ast.expr, ...]
    builtin: tuple[ast.Name, ...]
    attributes: frozenset[str]
    """What it reads of its modules, and of what these hold."""
    items: bool
    """Whether it asks a module for a part of it by its place."""


def last_of_each(loop: ast.For, values: list[Value], run: Run, load: Callable[[str, ast.expr], Value]) -> list[Value]:
    """What a loop has to go through of ``values``.

    If its turns do nothing but ask what a module is and write values to its parameters, which no later turn asks for,
    that is the last one of those that they cannot tell apart: what is bound after the loop is the same. ``load`` reads
    a variable.
    """
    form = run.frame.file.once(_form, loop)
    if form is None or not all(run.frame.file.named(called).startswith(_INITIALIZING) for called in form.public):
        return values
    if any(getattr(load(called.id, called), "path", "") not in _ASKING for called in form.builtin):
        return values
    kept: dict[object, Value] = {}
    for i, value in enumerate(values):
        look = _look(value, form, run) or i
        kept.pop(look, None)
        kept[look] = value
    return list(kept.values())


def _look(value: Value, form: _Form, run: Run) -> object:
    """How something looks to a loop that only initializes; None of what it may tell from all others."""
    if isinstance(value, Tuple):
        # named_modules(): a name that is not known, and a module
        looks = [part.kind if isinstance(part, Plain) else _look(part, form, run) for part in value.items]
        return None if None in looks or all(isinstance(part, Plain) for part in value.items) else (*looks,)
    if isinstance(value, Instance):
        asked = ("__getattr__", "__getattribute__", *form.attributes)
        if form.items or not value.cls.is_module or any(value.cls.find(name) is not None for name in asked):
            return None
        kind: tuple[object, ...] = (value.cls,)
    elif isinstance(value, Module) and value.name and not (form.items and value.name in MODULE_CONTAINERS):
        kind = (value.name, value.inplace)
    else:
        return None
    cells = ((name, _kind(run.s.get((value.oid, name)))) for name in run.attributes.get(value.oid, ()))
    return *kind, value.leaf is None, value.within is None, *cells


def _kind(content: object) -> object:
    if isinstance(content, Const) and (content.value is None or isinstance(content.value, bool)):
        return content.value
    return content.__class__


def _form(loop: ast.For) -> _Form | None:
    bound = {
        target.id
        for node in _below(loop)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    elements = names_in(loop.target)
    public: list[ast.expr] = []
    builtin: list[ast.Name] = []
    for node in _below(loop):
        if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)):
            return None
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return None
        if isinstance(node, ast.Assign) and not bound.isdisjoint(names_in(node.value)):
            # a count of the turns, perhaps
            return None
        if isinstance(node, ast.If) and not bound.isdisjoint(names_in(node.test)):
            return None
        if not isinstance(node, ast.Call) or _is_of_element(node.func, elements):
            continue
        (builtin if isinstance(node.func, ast.Name) and _asks(node.func) else public).append(node.func)  # type: ignore[arg-type]
    attributes = frozenset(node.attr for node in _below(loop) if isinstance(node, ast.Attribute))
    items = any(
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in elements
        for node in _below(loop)
    )
    return _Form(tuple(public), tuple(builtin), attributes, items)


def _below(loop: ast.For) -> list[ast.AST]:
    found: list[ast.AST] = [*loop.body]
    for node in found:
        found += children(node)
    return found


def _asks(name: ast.Name) -> bool:
    return f"builtins.{name.id}" in _ASKING


def _is_of_element(called: ast.expr, elements: frozenset[str]) -> bool:
    """``m.weight.data.normal_`` and ``m.weight.size``, where ``m`` is what the loop goes through."""
    if not isinstance(called, ast.Attribute):
        return False
    holder = called.value
    written = (
        isinstance(holder, ast.Attribute)
        and holder.attr == "data"
        and called.attr.endswith("_")
        and not called.attr.startswith("_")
    )
    while isinstance(holder, ast.Attribute):
        holder = holder.value
    return (written or called.attr in _SIZES) and isinstance(holder, ast.Name) and holder.id in elements
