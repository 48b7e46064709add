"""What code back-propagates, by its look."""

from __future__ import annotations

import ast
import re

from codemods.graph.model.program import ParsedFile
from codemods.source.walking import children, walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_KEEPING = frozenset({"append", "appendleft", "add", "extend", "insert", "put", "setdefault", "update", "backward"})
"""Methods by which Python's own containers keep what they get, and the one that walks it."""

_BACKWARD = re.compile(r"\b(?:manual_)?backward\b")
_AUTOGRAD = re.compile("autograd")
_GRAD = re.compile(r"\bgrad\b")


def walks(scope: ast.AST) -> bool:
    """Whether the code in ``scope`` back-propagates, reached or not."""
    return any(_is_walk(node) for node in walk(scope) if isinstance(node, ast.Call))


def _is_walk(call: ast.Call) -> bool:
    name = _called(call)
    return name in ("backward", "manual_backward") or (
        name == "grad" and ast.unparse(call.func).endswith("autograd.grad")
    )


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def keeps(definition: ast.AST) -> bool:
    """Whether the code of a function stores anything, or calls a method with arguments: it may keep what goes through
    it."""
    for node in walk(definition):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
            return True
    return False


def may_walk(file: ParsedFile, code: ast.AST) -> bool:
    """Whether a stretch of code back-propagates, or calls something that does by a name of a function of its file."""
    if not _named(file):
        return False
    return file.once(walks, code) or not _calls(code).isdisjoint(file.once(_walking, file.tree))


def _calls(code: ast.AST) -> set[str]:
    """The last names of what is called in a stretch of code."""
    return {_called(node) for node in walk(code) if isinstance(node, ast.Call)}


def _walking(tree: ast.AST) -> set[str]:
    """The names of the functions of a file that back-propagate, or call one that does."""
    calls: dict[_Function, set[str]] = {}
    around: dict[_Function, _Function | None] = {}
    walking: set[_Function] = set()
    stack: list[tuple[ast.AST, _Function | None]] = [(tree, None)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            around[node], calls[node], owner = owner, set(), node
        elif owner is not None and isinstance(node, ast.Call):
            calls[owner].add(_called(node))
            if _is_walk(node):
                walking.add(owner)
        stack += [(child, owner) for child in children(node)]
    for inner, outer in reversed(around.items()):
        # what stands in a function within a function stands in both
        if outer is not None:
            calls[outer] |= calls[inner]
            if inner in walking:
                walking.add(outer)
    found = {function.name for function in walking}
    while more := {f.name for f, called in calls.items() if f.name not in found and not called.isdisjoint(found)}:
        found |= more
    return found


def _named(file: ParsedFile) -> bool:
    """Whether a name that back-propagates stands in a file: without, no code in it does."""
    # Python takes letters of other alphabets for these
    if not file.text.isascii() or file.holds(_BACKWARD):
        return True
    return file.holds(_AUTOGRAD) and file.holds(_GRAD)
