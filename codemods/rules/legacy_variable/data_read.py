"""``x.data``: where nothing is different without it, and where ``detach()`` does the same."""

from __future__ import annotations

import ast

from codemods.graph.model.cutting import FRESH, INTEGERS, PLAIN
from codemods.graph.model.program import ParsedFile
from codemods.proofs.observations import Site
from codemods.proofs.repackaging import is_variable
from codemods.proofs.syntax import method, scope
from codemods.rules.legacy_variable.aliases import History
from codemods.rules.legacy_variable.changes import Change, change_of, loses_comments, short_of
from codemods.rules.legacy_variable.histories import is_cut, is_detached_here
from codemods.source.walking import mentions_data, walk
from codemods.terms.edits import KeepPart
from codemods.terms.words import words

_ASKS_OF_HISTORY = words("is_leaf requires_grad retains_grad output_nr name numpy")
"""What depends on it."""

_WITHOUT_DATA = (PLAIN["Tensor"] - _ASKS_OF_HISTORY) | words(
    "type new new_zeros new_ones new_empty new_full new_tensor"
)
"""What is the same with or without a history, so that nothing need stand for ``.data``."""

_UNATTACHED = frozenset(name for name in INTEGERS["Tensor"] if not name.endswith("_"))
"""Methods whose results are no part of a graph, whatever they are called on."""

_LIKENING = frozenset(name for name in FRESH["torch"] if name.endswith("_like"))
"""Functions that make a tensor like their first argument."""

_ANSWERING = PLAIN["torch"] | frozenset(name for name in INTEGERS["torch"] if not name.endswith("_"))
"""Functions whose results are no part of a graph, whatever they are given."""


def data(site: Site, file: ParsedFile) -> Change | None:
    """``x.data``, where nothing is different without it or ``detach()`` does the same."""
    node = file.find(site.span, ast.Attribute)
    assert isinstance(node, ast.Attribute)
    if loses_comments(file, node, node.value) or _writes_data(file, node) or _is_packed(file, node.value):
        return None
    outer = file.parent(node)
    if isinstance(outer, ast.Call) and node in outer.args and (_likens(file, outer, node) or _asks(file, outer)):
        message, suffix = ".data does nothing where only type or shape is read", ""
    elif isinstance(outer, ast.Attribute) and outer.attr in _WITHOUT_DATA and not _casts(file, outer):
        message, suffix = f".data does nothing before .{outer.attr}", ""
    elif is_cut(node.value):
        message, suffix = ".data does nothing after detach()", ""
    elif is_detached_here(file, node):
        message, suffix = ".data does nothing before detach()", ""
    elif _decides(file, node) or _is_answered(file, outer):
        message, suffix = ".data does nothing where the result has no history anyway", ""
    elif _is_plain(site, file, node):
        message, suffix = ".data does nothing on a tensor without a history", ""
    else:
        message, suffix = ".data hides changes of the tensor from autograd; detach() reads the same values", ".detach()"
    return change_of(
        file,
        node,
        message,
        f"write `{short_of(node.value)}{suffix}`",
        KeepPart(site.span, file.span(node.value), suffix),
        given=None if suffix else node.value,
    )


def _is_plain(site: Site, file: ParsedFile, node: ast.Attribute) -> bool:
    """Whether the tensor has no history, and nothing asks for another object than the tensor itself.

    What becomes of a ``Variable`` that is made of it, or of which it is the data, leaves the cut to it.
    """
    if {o.facts["history"] for o in site.observations} != {History.PLAIN} or site.any("changed"):
        return False
    inner: ast.AST | None = node.value
    while isinstance(inner, ast.expr):
        if isinstance(inner, ast.Call) and is_variable(file, inner.func):
            return False
        inner = file.parent(inner)
    return True


def _is_packed(file: ParsedFile, subject: ast.expr) -> bool:
    """Whether the code around it takes it for a packed sequence: it reads a field that no tensor has."""
    text = ast.unparse(subject)
    return any(
        isinstance(n, ast.Attribute) and n.attr in INTEGERS["PackedSequence"] and ast.unparse(n.value) == text
        for n in walk(scope(file, subject))
    )


def _likens(file: ParsedFile, call: ast.Call, given: ast.expr) -> bool:
    """Whether a call only makes a tensor like ``given``."""
    if _function_of_torch(file, call) in _LIKENING:
        return given is call.args[0]
    return method(call) in ("type_as", "view_as", "expand_as", "reshape_as")


def _is_answered(file: ParsedFile, outer: ast.AST | None) -> bool:
    """Whether a function of torch gets it whose result has no history."""
    return isinstance(outer, ast.Call) and _function_of_torch(file, outer) in _ANSWERING


def _function_of_torch(file: ParsedFile, call: ast.Call) -> str:
    """The name of the function of torch that is called, empty for any other."""
    module, _, name = file.named(call.func).rpartition(".")
    return name if module == "torch" else ""


def _asks(file: ParsedFile, call: ast.Call) -> bool:
    """Whether a call asks for the length of its first argument, or whether that is of a type of torch's tensors."""
    if not isinstance(call.func, ast.Name) or call.keywords:
        return False
    if call.func.id == "len":
        return len(call.args) == 1
    if call.func.id != "isinstance" or len(call.args) != 2:
        return False
    types = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
    names = [file.named(one) or "" for one in types]
    return all(name.startswith("torch.") and name.endswith("Tensor") for name in names)


def _decides(file: ParsedFile, node: ast.expr) -> bool:
    """Whether nothing comes of it that has a history: ``x.data > 0``, ``x.data.eq(y)``, ``x.data.long()``.

    What stands on its left decides how things are compared.
    """
    outer = file.parent(node)
    if isinstance(outer, ast.Compare):
        compares = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
        return node is outer.left and len(outer.ops) == 1 and isinstance(outer.ops[0], compares)
    return isinstance(outer, ast.Attribute) and outer.attr in _UNATTACHED and _is_called(file, outer)


def _is_called(file: ParsedFile, method: ast.Attribute) -> bool:
    call = file.parent(method)
    return isinstance(call, ast.Call) and call.func is method


def _casts(file: ParsedFile, method: ast.Attribute) -> bool:
    """Whether it is ``type(...)`` with an argument, which returns a tensor."""
    call = file.parent(method)
    return method.attr == "type" and isinstance(call, ast.Call) and bool(call.args or call.keywords)


def _writes_data(file: ParsedFile, node: ast.expr) -> bool:
    """Whether its statement writes through a ``.data``: there the two are kept alike."""
    statement = file.enclosing(node, ast.stmt)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return any(map(mentions_data, _written_by(statement.value)))
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(target is not None and mentions_data(target) for target in targets)


def _written_by(call: ast.Call) -> list[ast.expr]:
    """What a call writes in place: `x.add_(...)`, `torch.add(..., out=x)`."""
    written = [keyword.value for keyword in call.keywords if keyword.arg == "out"]
    if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        written.append(call.func.value)
    return written
