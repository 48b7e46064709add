"""What assignments keep of models: states, and dicts of states."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.syntax import reads, scope
from codemods.source.walking import walk

MOVING = frozenset(["to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type", "to_empty", "apply"])


class Taken(NamedTuple):
    """The ``value`` that a ``statement`` gives to a ``target``, by itself or among others: a state, or a dict of
    some."""

    file: ParsedFile
    statement: ast.Assign
    target: ast.expr
    value: ast.expr


def plain(value: ast.expr) -> ast.expr:
    """Without a ``.copy()``, which copies the dict and not the tensors."""
    match value:
        case ast.Call(func=ast.Attribute(value=copied, attr="copy")):
            return copied
    return value


def states_in(value: ast.expr) -> dict[str | None, ast.expr]:
    """The states in a dict that is written out, by their keys; under None the value, if it is one itself."""
    if not isinstance(value, ast.Dict):
        return {None: value} if owner_of(value) is not None else {}
    keys = [key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    if len({*keys}) < len(value.keys):
        return {}
    return {key: part for key, part in zip(keys, value.values, strict=True) if owner_of(part) is not None}


def read_of(given: ast.expr) -> tuple[ast.expr, str | None]:
    """What is read, and the key of what is read of it; None for all of it."""
    match given:
        case ast.Subscript(value=ast.Name() as name, slice=ast.Constant(value=str() as key)):
            return name, key
    return given, None


def owner_of(value: ast.expr) -> ast.expr | None:
    """What the state is of that ``value`` takes, with or without a copy of the dict alone; None if it takes none, or
    one of a model that it moves."""
    match plain(value):
        case ast.Call(func=ast.Attribute(value=owner, attr="state_dict"), args=[], keywords=[]):
            moved = any(isinstance(node, ast.Attribute) and node.attr in MOVING for node in walk(owner))
            return None if moved else owner
        case _:
            return None


def named_in(state: ast.expr) -> str:
    """What the program calls the model of a state."""
    owner = owner_of(state)
    return ast.unparse(owner) if owner is not None else ""


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what, those of ``best, lowest = None, inf`` one by one."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def given_to(taken: ast.stmt, name: str, key: str | None) -> Iterator[ast.expr]:
    """The states that a statement gives to a variable, or to a key of it."""
    for target, value in assigned(taken):
        if ast.unparse(target) == name:
            yield from (state for at, state in states_in(value).items() if key is None or at == key)


def empty(value: ast.expr) -> bool:
    """Whether it holds no state: a constant, or a dict of numbers and the like."""
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.Dict)
        and all(isinstance(part, ast.Constant) or ast.unparse(part).startswith("float(") for part in value.values)
    )


def changed(file: ParsedFile, around: ast.AST, name: str, model: str) -> bool:
    """Whether what is kept is written to, or the model is made anew or moved."""
    made = 0
    for node in walk(around):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and ast.unparse(node.value) == name:
            return True
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            made += ast.unparse(node) == model
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on = ast.unparse(node.func.value)
            if on == name and node.func.attr != "copy":
                return True
            if on == model and node.func.attr in MOVING and isinstance(file.parent(node), ast.Expr):
                return True
    return made > 1


def handed_on(trace: Trace, file: ParsedFile, load: ast.AST, name: str) -> bool:
    """Whether anything is done with a dict but to save and to test it, and to read what is under its keys."""
    for node in reads(scope(file, load), name):
        match user := file.parent(node):
            case ast.Call() if trace.called.get(user) == "torch.save":
                pass
            case ast.Subscript(value=value, slice=ast.Constant(value=str()), ctx=ast.Load()) if value is node:
                outer = file.parent(user)
                if isinstance(outer, ast.Subscript) and not isinstance(outer.ctx, ast.Load):
                    return True
                if isinstance(outer, ast.Attribute) and outer.attr not in ("items", "keys", "values"):
                    return True
            case ast.Compare() | ast.If() | ast.While() | ast.UnaryOp() | ast.Return():
                pass
            case _:
                return True
    return False
