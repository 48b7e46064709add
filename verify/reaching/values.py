"""What an expression could be that a program cannot compute here: by what the code does with it, never by its name.

The probe makes values of these (:mod:`verify.probe.calls.values`), and finds by trial with which the original goes on.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from verify.reaching.hints import SIZED, hints, roles_of, uses
from verify.syntax import Function, functions, last_name

#: What a value could be where nothing tells.
_ANYTHING = ("hollow", "tensor", "array", "loader", "int", "text", "labels", "float", "texts", "samples")
#: Calls that go over what they are given, or hand it on as it is.
_TURNING = frozenset({"enumerate", "iter", "tqdm", "trange", "reversed", "list", "zip", "sorted", "cycle"})
_ARRAYS = frozenset({"from_numpy", "asarray", "array", "astype", "ascontiguousarray", "concatenate", "stack"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: Assignments of one variable to another are followed so far.
_DEEPEST = 2

Form = dict[str, Any]


def wanted(node: ast.expr, tree: ast.AST, trees: Mapping[str, ast.AST]) -> Form:
    """What ``node``, an expression of ``tree``, could be.

    A form has ``roles`` in the order in which to try them, the ``name`` that it is bound to, ``item``, the form of what
    a loop over it gives, or ``parts``: the forms of what it is taken apart into.
    """
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    return _by_parent(node, parents, tree, trees)


def _by_parent(node: ast.expr, parents: Mapping[ast.AST, ast.AST], tree: ast.AST, trees: Mapping[str, ast.AST]) -> Form:
    parent = parents.get(node)
    scope = _scope(node, parents, tree)
    match parent:
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
            return _of_target(target, _class_of(target, node, parents) or scope, trees)
        case ast.For(target=target, iter=each) | ast.comprehension(target=target, iter=each) if each is node:
            return {"roles": ["loader", "samples"], "item": _of_target(target, scope, trees)}
        case ast.Call(func=func, args=args) if node is not func:
            return _as_argument(node, parent, args, parents, tree, trees)
        case ast.Expr() | ast.withitem():
            return {"roles": ["hollow"]}
        case ast.If() | ast.While() | ast.IfExp() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return {"roles": ["bool", "int"]}
        case ast.Compare():
            return {"roles": ["int", "float", "text", "tensor", "array"]}
        case ast.BinOp() | ast.AugAssign() | ast.UnaryOp():
            return {"roles": ["float", "int", "tensor", "array", "text"]}
        case ast.Attribute(attr=name):
            found = roles_of({name}, [], [])
            return {"roles": list(dict.fromkeys([*found, "tensor", "array", "hollow", "text"]))}
        case ast.Subscript(value=value) if value is node:
            return {"roles": ["array", "tensor", "loader", "text", "samples", "hollow"]}
        case ast.Starred() | ast.Await():
            return {"roles": ["loader", "hollow"]}
    return {"roles": list(_ANYTHING)}


def _as_argument(
    node: ast.expr,
    call: ast.Call,
    args: list[ast.expr],
    parents: Mapping[ast.AST, ast.AST],
    tree: ast.AST,
    trees: Mapping[str, ast.AST],
) -> Form:
    last = last_name(call.func)
    if last in _TURNING:
        around = _by_parent(call, parents, tree, trees)
        item = around.get("item", {"roles": ["tensor"]})
        if last == "enumerate" and len(item.get("parts", ())) == 2:
            item = item["parts"][1]
        if last == "zip" and "parts" in item and len(item["parts"]) == len(args):
            item = item["parts"][args.index(node)]
        return {"roles": ["loader", "samples"], "item": item}
    if last == "len":
        return {"roles": ["loader", "text", "texts"]}
    if last in _ARRAYS:
        return {"roles": ["array", "texts"]}
    if last == "DataLoader":
        return {"roles": ["samples"], "item": {"roles": ["tensor"]}}
    if last in SIZED or last in ("int", "float"):
        return {"roles": ["float" if last == "float" else "int", "tensor", "texts", "loader"]}
    for known in trees.values():
        for name, function in functions(known):
            if name == last or name == f"{last}.__init__":
                found = list(hints(function, trees).values())
                place = args.index(node) + name.endswith("__init__") if node in args else -1
                if 0 <= place < len(found):
                    return _form(found[place]["roles"], found[place]["texts"])
    return {"roles": list(dict.fromkeys([*roles_of(set(), [], [("handed", last)]), "int", "text", *_ANYTHING]))}


def _of_target(target: ast.AST, scope: ast.AST, trees: Mapping[str, ast.AST], deeper: int = _DEEPEST) -> Form:
    if isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(each, ast.Starred) for each in target.elts):
        return {"roles": ["parts"], "parts": [_of_target(each, scope, trees, deeper) for each in target.elts]}
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return {"roles": list(_ANYTHING)}
    return _of_name(ast.unparse(target), scope, trees, deeper)


def _of_name(name: str, scope: ast.AST, trees: Mapping[str, ast.AST], deeper: int) -> Form:
    form = _seen(name, scope, trees, deeper)
    form["roles"] = list(dict.fromkeys([*form["roles"], *_ANYTHING]))
    return {**form, "name": name.rpartition(".")[2]}


def _seen(name: str, scope: ast.AST, trees: Mapping[str, ast.AST], deeper: int) -> Form:
    """By all that is done in ``scope`` with the variable ``name``, and with those that it is assigned to; ``deeper``:
    so many times it is followed into functions of the tree that it is handed to."""
    known, waiting = {name: None}, [name]
    for _ in range(_DEEPEST):
        found = [
            ast.unparse(each.targets[0])
            for each in ast.walk(scope)
            if isinstance(each, ast.Assign) and any(_reads(each.value, name) for name in waiting)
        ]
        waiting = [each for each in found if each not in known]
        known.update(dict.fromkeys(waiting))
    form: Form = {"roles": []}
    # What a method keeps other methods read.
    whole = next((own for tree in trees.values() if (own := _methods(tree).get(scope)) is not None), scope)
    for each in known:
        more = _used(each, whole if "." in each else scope, trees, deeper)
        form["roles"] += more.pop("roles")
        form = {**more, **form}
    return form


def _used(name: str, scope: ast.AST, trees: Mapping[str, ast.AST], deeper: int) -> Form:
    found = list(uses(name, scope))
    texts = [text for kind, text in found if kind == "compared"]
    more = _handed(name, scope, trees, deeper - 1) if deeper else {}
    followed = more.pop("roles", [])
    roles = list(_further(name, scope))
    texts += more.pop("texts", ())
    for node in ast.walk(scope):
        match node:
            case ast.For(target=target, iter=each) | ast.comprehension(target=target, iter=each):
                if _reads(each, name):
                    more["item"] = _of_target(target, scope, trees, deeper)
                elif isinstance(each, ast.Call) and any(_reads(one, name) for one in each.args):
                    form = _of_target(target, scope, trees, deeper)
                    counted = getattr(each.func, "id", "") == "enumerate" and len(form.get("parts", ())) == 2
                    more["item"] = form["parts"][1] if counted else form
            case ast.Assign(targets=[(ast.Tuple() | ast.List()) as target], value=value) if _reads(value, name):
                more["parts"] = _of_target(target, scope, trees, deeper).get("parts") or []
                roles.insert(0, "parts")
    attributes = {attribute for kind, attribute in found if kind == "attribute"}
    told = ("attribute", "compared", "handed") if followed else ("attribute", "compared")
    roles += [*roles_of(attributes, texts, [each for each in found if each[0] not in told]), *followed]
    if not more.get("parts"):
        more.pop("parts", None)
        roles = [role for role in roles if role != "parts"]
    return {"roles": roles, "texts": texts, **more}


def _handed(name: str, scope: ast.AST, trees: Mapping[str, ast.AST], deeper: int) -> Form:
    """By what is done with it in the functions of the tree that the variable ``name`` is handed to."""
    found: Form = {}
    for call in ast.walk(scope):
        if not isinstance(call, ast.Call) or not any(_reads(each, name) for each in _given(call)):
            continue
        for parameter, function in _parameters(call, name, trees):
            form = _seen(parameter, function, trees, deeper)
            found = {**form, **found, "roles": [*found.get("roles", ()), *form["roles"]]}
    return found


def _parameters(call: ast.Call, name: str, trees: Mapping[str, ast.AST]) -> Iterator[tuple[str, Function]]:
    """The parameters that get ``name`` in ``call``, of the functions of the tree that it may call."""
    for tree in trees.values():
        for whole, function in _by_last(tree).get(last_name(call.func), ()):
            parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            parameters = parameters[1:] if "." in whole else parameters
            yield from (
                (each, function) for each, value in zip(parameters, call.args, strict=False) if _reads(value, name)
            )
            for keyword in call.keywords:
                if keyword.arg is not None and _reads(keyword.value, name):
                    yield keyword.arg, function


@functools.lru_cache(maxsize=4096)
def _methods(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """The class of each method in ``tree``."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {each: node for node in classes for each in node.body}


@functools.lru_cache(maxsize=4096)
def _by_last(tree: ast.AST) -> dict[str, list[tuple[str, Function]]]:
    """The functions of ``tree`` by the name that they are called by: constructors by that of their class."""
    found: dict[str, list[tuple[str, Function]]] = {}
    for whole, function in functions(tree):
        owner, _, last = whole.rpartition(".")
        found.setdefault(owner.rpartition(".")[2] if last == "__init__" else last, []).append((whole, function))
    return found


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _further(name: str, scope: ast.AST) -> Iterator[str]:
    """Roles by uses that arguments seldom have."""
    for node in ast.walk(scope):
        match node:
            case ast.Call(func=func, args=args):
                last = last_name(func)
                own = isinstance(func, ast.Attribute) and _reads(func.value, name)
                if last in _ARRAYS and (own or any(_reads(each, name) for each in args)):
                    yield "array"
                elif last == "DataLoader" and any(_reads(each, name) for each in args):
                    yield "samples"
                elif last in ("next", "iter") and any(_reads(each, name) for each in args):
                    yield "loader"
            case ast.Subscript(slice=index) if _reads(index, name):
                yield from ("labels", "int")
            case ast.UnaryOp(op=ast.Not(), operand=operand) if _reads(operand, name):
                yield "bool"
            case ast.While(test=test) | ast.If(test=test) if _reads(test, name):
                yield "bool"


def _form(roles: list[str], texts: list[str]) -> Form:
    kept = [role for role in roles if role not in ("object", "options")]
    return {"roles": list(dict.fromkeys([*kept, *_ANYTHING])), "texts": texts}


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name


def _scope(node: ast.AST, parents: Mapping[ast.AST, ast.AST], tree: ast.AST) -> ast.AST:
    """The function around ``node``, or the whole file."""
    at: ast.AST | None = node
    while at is not None and not isinstance(at, _SCOPES):
        at = parents.get(at)
    return tree if at is None else at


def _class_of(target: ast.AST, node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.AST | None:
    """The class around ``node``, where an attribute is assigned: other methods read it."""
    at: ast.AST | None = node if isinstance(target, ast.Attribute) else None
    while at is not None and not isinstance(at, ast.ClassDef):
        at = parents.get(at)
    return at


def without_hollow(form: Form) -> Form:
    """``form`` without what does nothing: it was tried, and is counted with."""
    found = {**form, "roles": [role for role in form["roles"] if role != "hollow"] or list(_ANYTHING[1:])}
    if "parts" in form:
        found["parts"] = [without_hollow(part) for part in form["parts"]]
    return found
