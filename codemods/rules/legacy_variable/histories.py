"""Which expressions of old code surely carry no history."""

from __future__ import annotations

import ast

from codemods.graph.model.facts.memory import MAY_COPY, VIEWS
from codemods.graph.model.facts.operations import FACTORIES, REDUCTIONS, WITHOUT_GRADIENT, ZERO_GRADIENT
from codemods.graph.model.program import ParsedFile
from codemods.proofs.syntax import FUNCTIONS, bare_method, bindings, defaults, method, reads, scope
from codemods.source.walking import last_name, walk
from codemods.terms.words import words

_ITSELF = VIEWS | MAY_COPY | frozenset(("short", "byte", "bool"))
"""Methods that may return the very object they are called on."""

_MAY_HAND_ON = words(
    "adjoint as_tensor asarray atleast_1d atleast_2d atleast_3d broadcast_tensors ravel cartesian_prod conj "
    "conj_physical dequantize flatten positive real resolve_conj resolve_neg"
)
"""Functions of torch that may return the very object they are given (ran)."""

_WITHOUT_HISTORY = FACTORIES - frozenset(
    ["load", "normal", "poisson", "multinomial", "from_file", "combinations", "cartesian_prod"]
)
"""What makes tensors without history of whatever it gets (ran)."""

_CONSTRUCTORS = frozenset(n for n in FACTORIES if n.endswith("Tensor")) | {"new"}
"""The same, unless it gets one tensor, which it hands on with its history (ran)."""

_NEW = frozenset({"new", "new_zeros", "new_ones", "new_tensor", "new_full", "new_empty"})

_FILLS = frozenset({"zero_", "normal_", "uniform_", "random_", "exponential_"})
"""Methods that overwrite a tensor with numbers."""

_COPIES = frozenset({"clone", "flip", "repeat", "roll", "tile"})
"""Methods that copy a tensor, and take no other."""


def _is_data(node: ast.expr) -> bool:
    """Whether it is ``x.data``, an object without history that nobody else has."""
    return isinstance(node, ast.Attribute) and node.attr == "data"


def is_cut(node: ast.expr) -> bool:
    """Whether it is ``x.data`` or ``x.detach()``."""
    return _is_data(node) or (isinstance(node, ast.Call) and bare_method(node) == "detach")


def is_cut_here(file: ParsedFile, node: ast.expr) -> bool:
    """Whether an expression is used for nothing but its ``.detach()`` or ``.data``."""
    outer = file.parent(node)
    data = isinstance(outer, ast.Attribute) and isinstance(outer.ctx, ast.Load) and outer.attr == "data"
    return data or is_detached_here(file, node)


def is_detached_here(file: ParsedFile, node: ast.expr) -> bool:
    """Whether an expression is used for nothing but its ``.detach()``."""
    outer = file.parent(node)
    around = file.parent(outer) if isinstance(outer, ast.Attribute) and outer.attr == "detach" else None
    return isinstance(around, ast.Call) and around.func is outer and not around.args


def is_fresh(file: ParsedFile, node: ast.expr) -> bool:
    """Whether an expression makes a tensor object that nothing else can hold."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)) or _is_data(node):
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, node.func.value
    if file.named(receiver) == "torch":
        return (
            name not in _MAY_HAND_ON
            and not name.endswith("_")
            and all(k.arg not in (None, "out") for k in node.keywords)
        )
    if name in _ITSELF or (name.endswith("_") and not name.startswith("_")):
        return is_fresh(file, receiver)
    made = FACTORIES | REDUCTIONS | WITHOUT_GRADIENT | ZERO_GRADIENT
    return name in made or name in ("clone", "repeat")


def may_be_none(file: ParsedFile, node: ast.expr, *, called: bool) -> bool:
    """Whether an expression is written as something that may be None: what lies under a key, if anything does, or what
    a tensor or a layer need not have; a name that is given such a thing, or stands for None unless a call that is not
    ``called`` in sight gives it something, and that nothing asks."""
    if not isinstance(node, ast.Name):
        return _gives_none(node)
    code = scope(file, node)
    bound = bindings(code, node.id)
    given = [one.value for one in map(file.parent, bound) if isinstance(one, ast.Assign)]
    given += (ast.Constant(None) for one in bound if _goes_over_none(file, one))
    if isinstance(code, FUNCTIONS) and not called:
        given += (default for name, default in defaults(code.args) if name == node.id)
    return any(map(_gives_none, given)) and not _asked(code, node.id)


def _goes_over_none(file: ParsedFile, target: ast.Name) -> bool:
    """Whether a loop binds a variable to elements of which some may be None: of what ``zip_longest`` fills up, or of a
    loader whose batches a function of the file makes that may give None."""
    loop = file.enclosing(target, ast.For, ast.AsyncFor, ast.stmt)
    if not isinstance(loop, (ast.For, ast.AsyncFor)) or all(n is not target for n in walk(loop.target)):
        return False
    calls = [n for n in walk(loop.iter) if isinstance(n, ast.Call)]
    if any(file.named(c.func).endswith("zip_longest") and not c.keywords for c in calls):
        return True
    rows = file.once(_hands_rows_on, file.tree) and file.once(_has_none_in_rows, file.tree)
    return rows or file.once(_puts_none_together, file.tree)


def _hands_rows_on(tree: ast.AST) -> bool:
    """Whether a loader is told to give rows as they are, or how to put them together: torch itself refuses None (docs:
    ``default_collate``)."""
    told = [
        k for n in walk(tree) if isinstance(n, ast.Call) for k in n.keywords if k.arg in ("collate_fn", "batch_size")
    ]
    return any((k.arg == "batch_size") is (isinstance(k.value, ast.Constant) and k.value.value is None) for k in told)


def _has_none_in_rows(tree: ast.AST) -> bool:
    """Whether None stands in what may be rows of data: as an element, or as what ``__getitem__`` gives."""
    shown = [part for n in walk(tree) for part in getattr(n, "elts", None) or getattr(n, "values", None) or ()]
    for function in walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name in ("__getitem__", "__iter__", "__next__"):
            kind = ast.Yield if function.name == "__iter__" else ast.Return
            given = [n.value for n in walk(function) if isinstance(n, kind)]
            if None in given:
                return True
            shown += (arm for one in given for arm in (one, getattr(one, "body", None), getattr(one, "orelse", None)))
    return any(isinstance(one, ast.Constant) and one.value is None for one in shown)


def _puts_none_together(tree: ast.AST) -> bool:
    """Whether a function that is given as ``collate_fn`` is written to give None, or part of what it gives is None."""
    given = [k.value for n in walk(tree) if isinstance(n, ast.Call) for k in n.keywords if k.arg == "collate_fn"]
    named = {last_name(one) for one in given}
    for function in (n for n in walk(tree) if isinstance(n, FUNCTIONS)):
        if function not in given and getattr(function, "name", "") not in named:
            continue
        returns = [n for n in walk(function) if isinstance(n, ast.Return)]
        results = [n.value for n in returns] if not isinstance(function, ast.Lambda) else [function.body]
        for one in filter(None, results):
            parts = one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one]
            arms = [arm for part in parts if isinstance(part, ast.IfExp) for arm in (part.body, part.orelse)]
            if any(isinstance(part, ast.Constant) and part.value is None for part in (*parts, *arms)):
                return True
    return False


def _gives_none(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("grad", "bias")
    if isinstance(node, ast.Constant):
        return node.value is None
    return method(node) == "get" and isinstance(node, ast.Call) and len(node.args) + len(node.keywords) == 1


def _asked(code: ast.AST, name: str) -> bool:
    """Whether something in a function depends on a variable of it: the author knows what it may be."""
    for node in walk(code):
        tests = getattr(node, "ifs", None) or [getattr(node, "test", None)]
        if isinstance(node, ast.BoolOp):
            tests = list(node.values)
        if any(test is not None and reads(test, name) for test in tests):
            return True
    return False


def is_plain(file: ParsedFile, node: ast.expr) -> bool:
    """Whether an expression is written as something that has no history, whatever its names hold."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, node.func.value
    if name in (_ITSELF | _FILLS | _COPIES) - {"requires_grad_"}:
        return is_plain(file, receiver)
    if name in _CONSTRUCTORS and len(node.args) == 1 and not isinstance(node.args[0], (ast.Constant, ast.List)):
        return False
    made = name in (_WITHOUT_HISTORY if file.named(receiver) == "torch" else _NEW)
    return made and not any(k.arg == "requires_grad" or k.arg is None for k in node.keywords)
