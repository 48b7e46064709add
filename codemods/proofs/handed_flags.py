"""Where a flag stands that a backward is called with: at the call itself, at a call that hands it on, in a name."""

from __future__ import annotations

import ast
from typing import NamedTuple

from codemods.graph.model.nodes import Place, Walk
from codemods.graph.model.program import ParsedFile
from codemods.proofs.syntax import defaults
from codemods.source.walking import walk as walk_tree


class Flag(NamedTuple):
    """A place at which a backward is told to keep its graph."""

    file: ParsedFile
    call: ast.Call
    """The call that has the argument: the backward, or one that leads to it."""
    argument: str | int | None
    """The argument that can be dropped there; None where it stands elsewhere."""
    doubt: str = ""
    """Why nobody can be sure that it is to go."""


def flag_of(walk: Walk) -> Flag | None:
    """The flag that keeps the graph of ``walk``; None where there is none, or where its value cannot be seen."""
    argument = walk.retain_argument
    if argument is None or walk.call is None or walk.creates is not False or walk.asked is not True:
        return None
    file = walk.place.frame.file
    given = _given(walk.call, argument)
    if isinstance(given, ast.Constant):
        # another one stands there where arguments were given before the call
        return Flag(file, walk.call, argument) if given.value else None
    if walk.asked_by is not None:
        place, name = walk.asked_by
        if isinstance(place.node, ast.Call) and _only_handed_on(walk.place, place, name):
            return Flag(place.frame.file, place.node, name)
    if not isinstance(given, (ast.Name, ast.Attribute)):
        elsewhere = "what brings it here may serve other calls" if given is None else "it is computed"
        return Flag(file, walk.call, None if given is None else argument, elsewhere)
    function = walk.place.frame.function
    if isinstance(given, ast.Name) and function is not None and given.id in _parameters(function.definition.args):
        return Flag(file, walk.call, argument, f"the callers decide by `{given.id}`, and those in the tree need it not")
    return Flag(file, walk.call, argument)


def _given(call: ast.Call, argument: str | int) -> ast.expr | None:
    if isinstance(argument, int):
        return call.args[argument] if argument < len(call.args) else None
    return next((k.value for k in call.keywords if k.arg == argument), None)


def _parameters(spec: ast.arguments) -> list[str]:
    return [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def _only_handed_on(inner: Place, outer: Place, name: str) -> bool:
    """Whether the functions between two calls do nothing with an argument but hand it on, and are called without it as
    if it were False."""
    chain = inner.chain()
    between = chain[: chain.index(outer)]
    for place in reversed(between):
        function = place.frame.function
        if function is None or not isinstance(place.node, ast.Call):
            return False
        spec = function.definition.args
        named = name in _parameters(spec)
        local = name if named else spec.kwarg.arg if spec.kwarg is not None else None
        if local is None or (named and not _false_by_default(spec, name)):
            return False
        if sum(isinstance(n, ast.Name) and n.id == local for n in walk_tree(function.definition)) != 1:
            return False
        handed = [k.arg for k in place.node.keywords if isinstance(k.value, ast.Name) and k.value.id == local]
        if len(handed) != 1 or (handed[0] is None) is named:
            return False
        name = handed[0] or name
    return True


def _false_by_default(spec: ast.arguments, name: str) -> bool:
    default = dict(defaults(spec)).get(name)
    return isinstance(default, ast.Constant) and not default.value
