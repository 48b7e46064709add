"""Expressions that may come out the same whatever they say: bounds, fallbacks, what ends errors, moves to a device."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from codemods.terms.words import words

#: Of what torch bounds nothing shows whether the bound was met.
_BOUNDS = (
    *("clamp", "clamp_", "clamp_max", "clamp_min", "clip", "clip_", "hardtanh", "hardtanh_", "maximum", "minimum"),
    *("fmax", "fmin", "threshold", "threshold_", "islice", "narrow", "nlargest", "nsmallest", "most_common"),
)
_THRESHOLDS = (*_BOUNDS, "renorm", "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_")
#: What gives back some values as they were.
_SOMETIMES = (
    *("abs", "abs_", "absolute", "fabs", "relu", "relu_", "relu6", "leaky_relu", "leaky_relu_", "nan_to_num"),
    *("nan_to_num_", "masked_fill", "masked_fill_", "where", "fmod", "remainder", "unique", "sort", "sorted"),
    *("elu", "elu_", "celu", "selu", "prelu", "rrelu", "hardshrink", "softshrink", "copysign", "real"),
    *("nansum", "nanmean", "nanmedian", "nanmin", "nanmax", "nanstd", "nanvar", "nanquantile", "fromkeys", "filter"),
    *("strip", "lstrip", "rstrip", "lower", "upper", "replace", "fillna", "dropna", "drop_duplicates", "casefold"),
    *("capitalize", "swapcase", "removeprefix", "removesuffix", "zfill", "ljust", "rjust", "expandtabs"),
    *("normpath", "realpath", "abspath", "expanduser", "expandvars", "takewhile", "dropwhile", "compress"),
)
#: What gives the same for many values.
_COARSE = ("int", "round", "floor", "ceil", "trunc", "round_", "floor_", "ceil_", "trunc_", "isclose", "allclose")
_CHOICES = frozenset((*_THRESHOLDS, *_SOMETIMES, *_COARSE))
#: What ends errors by its name.
CATCHING = frozenset(("suppress", "raises", "assertRaises", "assertRaisesRegex"))
#: What makes processes, streams or a disk wait for each other: a short run may come out the same without it.
WAITING = frozenset(("barrier", "monitored_barrier", "synchronize", "wait_stream", "wait_event", "fsync"))
_EXITS = ("__exit__", "__aexit__")
_TYPES = words(
    "float float16 float32 float64 half double bfloat16 int8 int16 int32 int64 uint8 short int long bool complex64 "
    "complex128"
)
_PLACES = ("device", "map_location", "pin_memory", "non_blocking")


def is_number(node: ast.AST) -> bool:
    """Whether ``node`` is a number that stands in the text."""
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def is_coarse(node: ast.BinOp) -> bool:
    """Whether it is a division that drops a rest, or the rest."""
    text = isinstance(node.left, ast.JoinedStr) or isinstance(getattr(node.left, "value", None), str | bytes)
    return isinstance(node.op, ast.FloorDiv | ast.Mod) and not text


def is_choice(node: ast.Call) -> bool:
    """Whether it is the call of a bound, or of something else that may leave its argument unchanged."""
    name = name_of(node)
    if name in ("min", "max"):
        return isinstance(node.func, ast.Name) and len(node.args) > 1
    return name in _CHOICES or (name == "squeeze" and isinstance(node.func, ast.Attribute) and not node.args)


def fixed(node: ast.Call, sizes: Collection[str]) -> ast.expr | None:
    """The first size that a call gives a tensor, where the tensor is not asked for it: another batch may not fit.

    ``sizes`` are names of what tensors were asked for.
    """
    if not isinstance(node.func, ast.Attribute) or name_of(node) not in ("view", "reshape", "expand") or not node.args:
        return None
    if name_of(node.func.value) in ("weight", "bias"):
        # Parameters are of one size.
        return None
    first = node.args[0]
    if isinstance(first, ast.Tuple | ast.List) and first.elts:
        first = first.elts[0]
    if isinstance(first, ast.Constant) and first.value == 1:
        return None
    if isinstance(first, ast.UnaryOp | ast.Starred) or any(_asks(each, sizes) for each in ast.walk(first)):
        return None
    # A type, as `view` takes one, is no size.
    return None if name_of(first) in _TYPES else first


def sized(tree: ast.AST) -> frozenset[str]:
    """The variables of ``tree`` that are computed from the sizes of something."""
    found: set[str] = set()
    for node in ast.walk(tree):
        value = getattr(node, "value", None)
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) or not isinstance(value, ast.AST):
            continue
        if any(_asks(each, ()) for each in ast.walk(value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(name_of(each) for target in targets for each in (target, *getattr(target, "elts", ())))
    return frozenset(found - {""})


def _asks(node: ast.AST, sizes: Collection[str]) -> bool:
    asked = isinstance(node, ast.Attribute) and node.attr in ("size", "shape", "numel")
    return asked or (isinstance(node, ast.Name | ast.Attribute) and name_of(node) in {"len", *sizes})


def fallbacks(node: ast.Call) -> Iterator[ast.expr]:
    """The default that a call returns if it finds nothing."""
    name, args = name_of(node), node.args
    method = isinstance(node.func, ast.Attribute)
    if method and name in ("get", "pop", "setdefault", "getenv") and len(args) == 2:
        yield args[1]
    elif not method and name == "getattr" and len(args) == 3:
        yield args[2]
    elif not method and name == "next" and len(args) == 2:
        yield args[1]
    yield from (each.value for each in node.keywords if each.arg == "default" and name in ("get", "min", "max", "pop"))


def placing(node: ast.Call) -> ast.expr | None:
    """What a call says of the device on which something is, as an expression; None if it says nothing."""
    name = name_of(node)
    told = [each.value for each in node.keywords if each.arg in _PLACES and not _moves_nothing(each.value)]
    if isinstance(node.func, ast.Attribute) and name in ("to", "cuda", "cpu", "pin_memory"):
        told += [each for each in node.args if name_of(each) not in _TYPES]
        if name == "to" and not told:
            return None
    elif not told:
        return None
    return ast.Call(ast.Name(name), told, [])


def _moves_nothing(value: ast.expr) -> bool:
    """Whether torch's own default is written out: False and None in all of :data:`_PLACES`."""
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def catching(tree: ast.AST) -> frozenset[str]:
    """The names of functions and classes that ``tree`` defines, and that may end an error."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(isinstance(each, ast.ExceptHandler) for each in ast.walk(node)):
                found.add(node.name)
        elif isinstance(node, ast.ClassDef) and any(leaving(each) for each in node.body):
            found.add(node.name)
    return frozenset(found)


def leaving(tree: ast.AST) -> frozenset[ast.AST]:
    """The values that contexts of ``tree`` return when they are left, and that may end an error."""
    exits = (node for node in ast.walk(tree) if getattr(node, "name", "") in _EXITS)
    returns = (each for one in exits for each in ast.walk(one) if isinstance(each, ast.Return) and _may_be_true(each))
    return frozenset(each.value for each in returns if each.value is not None)


def _may_be_true(node: ast.Return) -> bool:
    return node.value is not None and not (isinstance(node.value, ast.Constant) and not node.value.value)


def name_of(node: ast.AST) -> str:
    """The last name of a callee or a name; empty where it has none."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
