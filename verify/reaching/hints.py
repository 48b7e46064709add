"""What the parameters of a function could be, by what the function does with them: never by their names.

The probe makes arguments of these where no run has any (:mod:`verify.probe.calls.recipes`), and tries which do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from verify.reaching.options import defaults
from verify.syntax import Function, last_name

_TENSOR = re.findall(
    r"\w+",
    "view size dim detach float long permute unsqueeze squeeze sum mean transpose contiguous clone data backward grad "
    "requires_grad expand repeat reshape shape ndimension numel numpy t mul add div new type exp pow log max min cpu "
    "ndim flatten unbind chunk split gather scatter_ masked_fill bmm matmul item tolist",
)
#: Methods and attributes that only one kind of thing has, among those that training code hands around.
_KINDS: dict[str, frozenset[str]] = {
    "optimizer": frozenset({"param_groups", "step", "zero_grad"}),
    "module": frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "children", "modules"}),
    "tensor": frozenset(_TENSOR),
    "text": frozenset({"lower", "upper", "strip", "startswith", "endswith", "format", "encode"}),
    "dict": frozenset({"keys", "items", "values"}),
}
_ANNOTATED = {
    "Tensor": ("tensor", "labels"),
    "FloatTensor": ("tensor",),
    "LongTensor": ("labels",),
    "int": ("int",),
    "float": ("float",),
    "bool": ("bool",),
    "str": ("text",),
    "Module": ("module",),
    "Optimizer": ("optimizer",),
    "DataLoader": ("loader",),
    "device": ("device",),
}
#: What every module has.
_COMMON = frozenset().union(*_KINDS.values(), {"train", "eval", "cuda", "to", "half", "apply", "training", "forward"})
_MOST_CLASSES = 2
#: Where nothing tells.
_ANYTHING = ("tensor", "int", "labels", "module")
#: Calls whose arguments are sizes: of these modules by the last part of the name.
SIZED = frozenset(
    {"range", "zeros", "ones", "randn", "rand", "empty", "full", "arange", "eye", "view", "reshape", "expand", "repeat"}
    | {"Linear", "Embedding", "LSTM", "GRU", "RNN", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "BatchNorm1d"}
    | {"BatchNorm2d", "LayerNorm", "GroupNorm", "LSTMCell", "GRUCell"}
)


def hints(function: Function, trees: Mapping[str, ast.AST]) -> dict[str, Any]:
    """What each parameter of ``function`` without a default could be: ``roles`` in the order in which to try them,
    ``texts`` that it is compared with, ``values`` of its attributes, where it has those that options are read into,
    ``classes`` of the tree (path, name) that have what is asked of it."""
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args]
    wanted = given[: len(given) - len(arguments.defaults)] + [
        each for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]
    return {each.arg: _hint(each, function, trees) for each in wanted}


def _hint(parameter: ast.arg, function: ast.AST, trees: Mapping[str, ast.AST]) -> dict[str, Any]:
    found = list(uses(parameter.arg, function))
    read = {name for kind, name in found if kind == "attribute"}
    texts = [name for kind, name in found if kind == "compared"]
    roles: list[str] = []
    if parameter.annotation is not None:
        last = ast.unparse(parameter.annotation).rpartition(".")[2]
        roles += _ANNOTATED.get(last, ())
    known = {name: value for name, value in defaults(trees) if name in read}
    if known and not any(read & names for names in _KINDS.values()):
        roles.append("options")
    roles += roles_of(read, texts, found)
    classes = list(_classes(read, trees))[:_MOST_CLASSES]
    roles = ["object"] * bool(classes) + [role for role in roles if not (classes and role in ("module", "criterion"))]
    roles = list(dict.fromkeys([*roles, *(_ANYTHING if not roles else ())]))
    return {"roles": roles, "texts": list(dict.fromkeys(texts)), "values": known, "classes": classes}


def roles_of(read: set[str], texts: Sequence[str], found: Iterable[tuple[str, str]]) -> list[str]:
    """What something could be of which ``read`` are the attributes, and that is compared with ``texts``; ``found`` are
    its uses (kind, name)."""
    roles: list[str] = []
    for kind, names in _KINDS.items():
        if read & names and not (kind == "optimizer" and "param_groups" not in read and "parameters" in read):
            roles.append(kind)
    if texts:
        roles.append("text")
    for use, _ in found:
        roles += {
            "size": ["int"],
            "iterated": ["loader", "tensor"],
            "called": ["module", "criterion"],
            "operand": ["tensor", "float"],
            "handed": ["tensor", "labels"],
            "truth": ["bool"],
        }.get(use, [])
    return roles


def _classes(read: set[str], trees: Mapping[str, ast.AST]) -> Iterator[tuple[str, str]]:
    """The classes that define themselves all of ``read`` which not every module, optimizer or tensor has."""
    own = read - _COMMON
    for path, tree in trees.items() if own else ():
        for node in getattr(tree, "body", ()):
            if isinstance(node, ast.ClassDef):
                names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                names |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
                          and isinstance(each.ctx, ast.Store) and getattr(each.value, "id", "") == "self"}  # fmt: skip
                if own <= names:
                    yield path, node.name


def uses(name: str, function: ast.AST) -> Iterator[tuple[str, str]]:
    """What is done with ``name``, a variable or an attribute, in ``function``: (kind of use, name)."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and _is(node.value, name):
            yield "attribute", node.attr
        elif isinstance(node, ast.Call):
            yield from _called(name, node)
        elif isinstance(node, (ast.For, ast.comprehension)) and any(_is(each, name) for each in _turned(node.iter)):
            yield "iterated", ""
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_is(side, name) for side in sides):
                yield from (("compared", text) for text in map(_text, sides) if text)
        elif isinstance(node, ast.BinOp) and (_is(node.left, name) or _is(node.right, name)):
            yield "operand", ""
        elif isinstance(node, (ast.If, ast.IfExp)) and _is(node.test, name):
            yield "truth", ""


def _called(name: str, call: ast.Call) -> Iterator[tuple[str, str]]:
    if _is(call.func, name):
        yield "called", ""
    last = last_name(call.func)
    values = [*call.args, *(each.value for each in call.keywords)]
    if any(_is(each, name) for each in values) and last not in ("enumerate", "zip", "len", "print", "isinstance"):
        yield ("size" if last in SIZED else "handed"), last


def _turned(iterated: ast.expr) -> list[ast.expr]:
    """What a loop goes over, also through ``enumerate`` and the like."""
    return [iterated, *(iterated.args if isinstance(iterated, ast.Call) else ())]


def _is(node: ast.AST, name: str) -> bool:
    if "." in name:
        return isinstance(node, ast.Attribute) and ast.unparse(node) == name
    return isinstance(node, ast.Name) and node.id == name


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
